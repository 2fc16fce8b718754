# says = "matplotlib draws into a file without a display; where it is not installed, it is missing."
import os

try:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt
except ImportError as error:
    print(error)
else:
    plt.plot([1, 2, 3])
    plt.savefig("plot.png")
    print(os.path.getsize("plot.png") > 1000)
