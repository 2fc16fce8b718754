"""What a learner's program may import to draw and to read the data of the lessons.

    from tensortutor.lab import contour, data, graph, grid, hist, image, plot, regions, show

In the tutor the drawings appear beside the code while the program runs. Without it, in a plain
`python file.py`, they are printed as text (see `display`), so nothing depends on the tutor.
"""

from tensortutor.lab.datasets import data
from tensortutor.lab.graphs import graph
from tensortutor.lab.grids import grid
from tensortutor.lab.histograms import hist
from tensortutor.lab.maps import contour, regions
from tensortutor.lab.pictures import image, show
from tensortutor.lab.plots import plot

__all__ = ["contour", "data", "graph", "grid", "hist", "image", "plot", "regions", "show"]
