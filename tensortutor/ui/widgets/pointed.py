"""A list of options whose cursor is a sign as well as a colour."""

from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import OptionList

from tensortutor.ui.terminal import symbols


class PointedList(OptionList):
    """Puts a pointer into the first cell of the option under the cursor; that cell is padding."""

    def render_line(self, y: int) -> Strip:
        """A line of an option."""
        strip = super().render_line(y)
        line = self.scroll_offset.y + y
        if self.highlighted is None or line >= len(self._lines):
            return strip
        if self._lines[line] != (self.highlighted, 0):
            return strip
        style = next((segment.style for segment in strip), None)
        return Strip.join([Strip([Segment(symbols.current().pointer, style)]), strip.crop(1)])
