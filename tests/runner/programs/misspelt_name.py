# says = "Python names the nearest name when it reports one that is not there."
# stderr = ["NameError: name 'dtypo' is not defined. Did you mean: 'dtype'?"]
def ones(dtype):
    return [dtypo(1), dtypo(1)]  # noqa: F821


ones(float)
