"""The autograd graph as a tree in which operation, saved values, gradient and marks differ."""

import re
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

PARTS = re.compile(
    r"^(?P<name>\w+)|(?<=  )(?:(?P<saved>saved .*?)|(?P<grad>grad(?: \S+)?)"
    r"|(?P<mark>freed|accumulated|detached))(?=  |$)"
)
"""What `lens.trees.node_text` writes, by its parts."""


class GraphTree(Tree[str]):
    """Colours come from the theme, so that they change with it."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "graph--name", "graph--saved", "graph--grad", "graph--mark",
    }  # fmt: skip

    def render_label(self, node: TreeNode[str], base_style: Style, style: Style) -> Text:
        """The label, its parts in their colours."""
        label = super().render_label(node, base_style, style)
        if not node.data:
            return label  # the head of a graph
        shift = len(label.plain) - len(str(node.label))
        for found in PARTS.finditer(str(node.label)):
            look = self.get_component_rich_style(f"graph--{found.lastgroup}", partial=True)
            label.stylize(look, found.start() + shift, found.end() + shift)
        return label
