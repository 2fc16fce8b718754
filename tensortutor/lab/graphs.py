"""Graphs: a box for each value, with arrows from what it is computed from."""

from typing import Any

from tensortutor.lab import inputs
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.isolation import never_traced
from tensortutor.lab.pictures import calling_line
from tensortutor.protocol.drawings import LONGEST_WORDS, MOST_BOXES, MOST_LINES, Box, BoxGraph


@never_traced
def graph(nodes: Any, edges: Any, caption: str | None = None, *, title: str = "") -> None:
    """Draw a graph from left to right: a box for each value, arrows to what is computed from it.

    nodes: a dict from names to what stands in the boxes, each a dict from words to numbers or
    strings, `{"data": 6.0, "grad": 16.0}`; or anything with the attributes `data` and `grad`, such
    as a tensor. Of a tensor of several elements the shape is written. edges: pairs (from, to) of
    names. A value that is used several times is one box with several arrows; a pair that comes
    twice is one arrow. caption: words below. title: a later graph of the same title takes this
    one's place. If left out, those of the same line of the program do.

    Values are read when this is called. At most 24 boxes of 6 lines. Where they do not fit beside
    each other, each is a line of text that names what it is computed from.

    Raises TypeError or ValueError for nodes and edges of another kind, for a name that no node has,
    for a circle and for more than 24 nodes.
    """
    title = (str(title) or calling_line())[:LONGEST_WORDS]
    read = inputs.graph_boxes(nodes, edges, MOST_BOXES)
    boxes = []
    for name, lines, parents in read:
        short = tuple(line[:LONGEST_WORDS] for line in lines[:MOST_LINES])
        boxes.append(Box(name[:LONGEST_WORDS], short, parents))
    drawing = BoxGraph(title, tuple(boxes), str(caption or "")[:LONGEST_WORDS])
    DISPLAY.draw(title, lambda: drawing)
