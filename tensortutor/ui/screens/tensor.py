"""One tensor in full: facts, the way through its storage, values; and a second one beside it."""

from typing import ClassVar

from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tensortutor.lens import tensor_details
from tensortutor.lens.tables import full_name
from tensortutor.plaintext import visible
from tensortutor.protocol.lens import Storage, TensorInfo, Tensors
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText, subtitle
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.terminal import symbols

LEGEND = (
    "[x]: the element. (x): where the index of this dimension leads. A dot: not of this tensor."
)
WAYS = ("back", "along", "dimension_back", "dimension")


class TensorScreen(Page):
    """Arrow keys move an index; the storage below shows where its element lies."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.PAGE, *key_bindings.TENSOR]
    ABOUT = (
        "One tensor: its facts, and where the element at an index lies in the storage. The keys "
        "walk through the index; a tensor that was marked in the table is shown beside it."
    )

    def __init__(self, event: Tensors, tensor: TensorInfo, other: TensorInfo | None) -> None:
        self._text = Static(id="tensor", markup=False)
        super().__init__(f"{full_name(tensor)}: {tensor.words}", self._text)
        self._tensor = tensor
        self._other = other if other is not tensor else None
        storages = {storage.id: storage for storage in event.storages}
        self._storage: Storage | None = storages.get(tensor.storage)
        self._index = [0] * len(tensor.shape)
        self._dim = max(len(tensor.shape) - 1, 0)

    def on_mount(self) -> None:
        """Say which keys there are, and draw for the first time."""
        walk = " ".join(self.key_for(f"tensor.{name}") for name in WAYS)
        close = self.key_for("page.close")
        subtitle(self.query_one(VerticalScroll), OutsideText(f"{walk} walk   {close} closes"))
        self._draw()

    def on_resize(self) -> None:
        """As many cells in a row as there is room for."""
        self.call_after_refresh(self._draw)

    def action_along(self, by: int) -> None:
        """The index of the chosen dimension, one on or back."""
        if self._can_walk:
            size = self._tensor.shape[self._dim]
            self._index[self._dim] = (self._index[self._dim] + by) % size
            self._draw()

    def action_dimension(self, by: int) -> None:
        """Another dimension."""
        if self._can_walk:
            self._dim = (self._dim + by) % len(self._tensor.shape)
            self._draw()

    @property
    def _can_walk(self) -> bool:
        one = self._tensor
        return one.layout == "strided" and len(one.stride) == len(one.shape) > 0 and all(one.shape)

    def _draw(self) -> None:
        width = max(self._text.content_region.width, 40)
        lines = [f"{label:<10}{text}" for label, text in tensor_details.facts(self._tensor)]
        lines += self._walk(width)
        if self._tensor.sample is not None:
            shades = list(tensor_details.heat_map(self._tensor.sample, symbols.current().ascii))
            lines += ["", "Values", *shades] if shades else []
        if self._other is not None:
            lines += ["", *tensor_details.together(self._tensor, self._other)]
            if self._storage is not None and self._other.storage == self._tensor.storage:
                name = full_name(self._other)
                lines += [f"1: {full_name(self._tensor)}  2: {name}  #: both"]
                lines += tensor_details.both(self._tensor, self._other, self._storage, width)
        shown = "\n".join(lines)
        if symbols.current().ascii:
            shown = shown.replace("·", ".")
        self._text.update(Content(visible(shown)))

    def _walk(self, width: int) -> list[str]:
        one = self._tensor
        if one.layout != "strided" or not all(one.shape) or len(one.stride) != len(one.shape):
            return []
        index = tuple(self._index)
        lines = [""]
        if one.shape:
            dims = f"dimension {self._dim} of {len(one.shape)}, stride {one.stride[self._dim]}"
            lines += [f"index {list(index)}, {dims}", tensor_details.step(one, index)]
        if self._storage is not None and self._storage.cells:
            lines += ["", "Storage"]
            lines += tensor_details.strip(one, self._storage, index, self._dim, width)
            lines += [LEGEND] if one.shape else []
        return lines
