"""The tab of the tensors: a table of the names, filtered and sorted, and what is behind each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.widgets import Static

from tensortutor.plaintext import visible
from tensortutor.protocol.lens import Tensors
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText, add_columns, add_row
from tensortutor.ui.widgets.lenspane import LensPane

if TYPE_CHECKING:
    from rich.text import Text
    from textual.events import Key
    from textual.widgets import DataTable, Input

    from tensortutor.protocol.events import Event
    from tensortutor.protocol.lens import TensorInfo

ORDER = (0, 1, 10, 11, 5, 9, 2, 3, 4, 6, 7, 8)
"""The columns of the tensor table in the order of what is looked for first."""
NOTHING_TOLD = {"offset": "0"}
"""What a column says that says nothing: where all of its cells do, it is left out."""


class TensorsPane(LensPane):
    """A table of the names, and behind each a screen of its own."""

    TITLE = "Tensors"
    NOTHING = "No tensors yet. After a run, the names that hold tensors stand here."
    KINDS = (Tensors,)
    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.TENSORS]

    class Opened(Message):
        """A tensor is to be shown in full, with another one beside it."""

        def __init__(self, tensors: Tensors, tensor: TensorInfo, other: TensorInfo | None) -> None:
            super().__init__()
            self.tensors = tensors
            self.tensor = tensor
            self.other = other

    def __init__(self) -> None:
        super().__init__(id="pane-tensors")
        self._event: Tensors | None = None
        self._marked = ""
        self._sorted = 0
        self._wanted = ""

    def forget(self) -> None:
        """Nothing is known, nothing is marked."""
        self._event, self._marked, self._sorted, self._wanted = None, "", 0, ""
        super().forget()

    def take(self, events: Sequence[Event]) -> None:
        """Show the table of the last event."""
        event = next(reversed(self.relevant(events)), None)
        if not isinstance(event, Tensors):
            return
        self._event = event
        self._fill()

    def _fill(self) -> None:
        """The tensors that were chosen, in the order that was chosen."""
        from textual.widgets import DataTable

        from tensortutor.lens.tables import tensor_table
        from tensortutor.lens.tensor_filter import ORDERS, matching_rows

        event = self._event
        if event is None:
            return
        table = tensor_table(event)
        rows = matching_rows(event.tensors, self._wanted)
        if self._sorted:
            rows.sort(key=lambda row: ORDERS[self._sorted - 1][1](event.tensors[row]))
        used = [
            i for i in ORDER
            if any(row[i] not in ("", NOTHING_TOLD.get(table.columns[i])) for row in table.rows)
        ]  # fmt: skip
        right = [place for place, i in enumerate(used) if i in table.right]
        grid = self.grid
        if grid is None:
            grid = DataTable(cursor_type="row", zebra_stripes=False, id="tensors")
            below = Static(id="tensors-below", markup=False)
            self.empty()
            self.room.mount(grid, below)
        else:
            below = self.room.query_one("#tensors-below", Static)
            grid.clear(columns=True)
        add_columns(grid, (OutsideText(table.columns[i] or "note") for i in used), right)
        for row in rows:
            add_row(grid, (OutsideText(table.rows[row][i]) for i in used), str(row), right)
        words = list(table.below)
        if self._wanted:
            words.insert(0, f"{len(rows)} of {len(table.rows)} fit: {self._wanted}")
        below.update(visible("\n".join(words)))
        below.display = bool(words)

    @property
    def grid(self) -> DataTable[Text] | None:
        """The table, once there is one."""
        from textual.widgets import DataTable

        return next(iter(self.room.query(DataTable)), None)

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Open the tensor of a row, with the marked one beside it."""
        event.stop()
        if self._event is None or event.row_key.value is None:
            return
        tensor = self._event.tensors[int(event.row_key.value)]
        other = self._find(self._marked)
        self.post_message(self.Opened(self._event, tensor, other))

    def _find(self, key: str) -> TensorInfo | None:
        return self._event.tensors[int(key)] if self._event is not None and key else None

    def action_pair(self) -> None:
        """Mark the tensor under the cursor: the next one that is opened stands beside it."""
        grid = self.grid
        if grid is None or not grid.row_count:
            return
        key = grid.coordinate_to_cell_key(grid.cursor_coordinate).row_key.value or ""
        self._marked = "" if key == self._marked else key
        one = self._find(self._marked)
        name = OutsideText(one.name if one is not None else "").line
        self.notify(
            f"{name} is marked: open another tensor to see which cells they share."
            if one is not None else "Nothing is marked.",
            markup=False,
        )  # fmt: skip

    def action_sort(self) -> None:
        """The next order; after the last, as the program has it."""
        from tensortutor.lens.tensor_filter import ORDERS

        if self._event is None:
            return
        self._sorted = (self._sorted + 1) % (len(ORDERS) + 1)
        self._fill()
        order = f"by {ORDERS[self._sorted - 1][0]}" if self._sorted else "as the program has them"
        self.notify(f"The tensors stand {order}.", markup=False)

    def action_filter(self) -> None:
        """Ask which tensors to show; the table follows while one types."""
        from textual.widgets import Input

        from tensortutor.lens.tensor_filter import HELP

        if self._event is None:
            return
        for field in self.query(Input):
            field.focus()
            return
        field = Input(self._wanted, placeholder=HELP, compact=True, id="tensors-filter")
        self.room.mount(field, before=0)
        field.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """What fits so far."""
        event.stop()
        self._wanted = event.value.strip()
        self._fill()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """To the table."""
        event.stop()
        self._leave_filter(event.input)

    def key_escape(self, event: Key) -> None:
        """Out of the field, and all tensors again."""
        from textual.widgets import Input

        for field in self.query(Input):
            event.stop()
            event.prevent_default()
            self._wanted = ""
            self._leave_filter(field)
            self._fill()

    def _leave_filter(self, field: Input) -> None:
        grid = self.grid
        if grid is not None:
            grid.focus()
        field.remove()
