# says = "Causes and contexts are told."
# stderr = ["KeyError: 'lr'", "The above exception was the direct cause", "ValueError: no rate"]
try:
    {}["lr"]
except KeyError as error:
    raise ValueError("no rate") from error
