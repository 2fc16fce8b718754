# says = "inspect finds the source, linecache the lines."
import inspect
import linecache


def double(x):
    # a comment that must be there
    return 2 * x


class Model:
    size = 3


print(inspect.getsource(double))
print(inspect.getsource(Model))
print(inspect.getsourcelines(double)[1], linecache.getline(__file__, 2))
