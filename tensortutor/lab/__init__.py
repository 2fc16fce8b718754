"""What a learner's program may import to be seen: `from tensortutor.lab import plot, image, show`.

In the tutor the drawings appear beside the code while the program runs. Without it, in a plain
`python file.py`, they are printed as text (see `display`), so nothing depends on the tutor.
"""

from tensortutor.lab.pictures import image, show
from tensortutor.lab.plots import plot

__all__ = ["image", "plot", "show"]
