# says = "A warning is shown once per line, on standard error, and names the file."
# stderr = ["lesson_code.py:7: UserWarning: once"]
import warnings


def warn():
    warnings.warn("once", stacklevel=1)


for _ in range(3):
    warn()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warn()
    warn()
print(len(caught), caught[0].category.__name__)
