# says = "The same of an attribute, also of the error that another one led to."
# stderr = ["AttributeError: 'Points' object has no attribute 'shap'. Did you mean: 'shape'?"]
class Points:
    shape = (2, 3)


try:
    [].popp()
except AttributeError:
    Points().shap
