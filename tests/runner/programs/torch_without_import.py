# says = "A name that is not imported is not there."
# stderr = ["NameError: name 'torch' is not defined"]
print(torch.ones(2))  # noqa: F821
