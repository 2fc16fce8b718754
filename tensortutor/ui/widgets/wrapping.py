"""Lines that are too long for the place where they stand: broken, with a mark at the margin."""

from rich.cells import cell_len
from textual.content import Content
from textual.css.styles import RulesMap
from textual.selection import Selection
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import Label

from tensortutor.ui.terminal import symbols


def margin() -> str:
    """What stands before the rest of a line that was broken."""
    return f"{symbols.current().wrapped} "


def pieces(line: str, width: int) -> list[str]:
    """A line in parts that fit, the later ones behind the margin.

    It breaks behind a space where there is one in the second half of a row. Joined, the parts are
    the line again.
    """
    found: list[str] = []
    rest = line
    while rest:
        room = max(width - (cell_len(margin()) if found else 0), 1)
        if cell_len(rest) <= room:
            found.append(rest)
            break
        end = _fitting(rest, room)
        space = rest.rfind(" ", end // 2, end) + 1
        end = space or end
        found.append(rest[:end])
        rest = rest[end:]
    return found or [""]


def _fitting(text: str, room: int) -> int:
    """How many characters of a text fit into so many cells; at least one."""
    if text.isascii():
        return room
    end = used = 0
    while end < len(text) and (used := used + cell_len(text[end])) <= room:
        end += 1
    return max(end, 1)


class Wrapped(Visual):
    """Content whose long lines are broken at any width."""

    def __init__(self, content: Content) -> None:
        self._content = content
        self._at: tuple[int, Content] = (0, content)

    def at(self, width: int) -> Content:
        """The content as it stands in so many cells."""
        if self._at[0] != width:
            self._at = (width, self._broken(width))
        return self._at[1]

    def _broken(self, width: int) -> Content:
        lines = self._content.split("\n", allow_blank=True)
        if width <= 0 or all(line.cell_length <= width for line in lines):
            return self._content
        mark = Content.styled(f"\n{margin()}", "$foreground 66%")
        rows = []
        for line in lines:
            parts, start = [], 0
            for piece in pieces(line.plain, width):
                parts.append(line[start : start + len(piece)])
                start += len(piece)
            rows.append(mark.join(parts))
        return Content("\n").join(rows)

    def render_strips(
        self, width: int, height: int | None, style: Style, options: RenderOptions
    ) -> list[Strip]:
        """The rows."""
        return self.at(width).render_strips(width, height, style, options)

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        """As wide as the longest line, if there is room."""
        return self._content.get_optimal_width(rules, container_width)

    def get_height(self, rules: RulesMap, width: int) -> int:
        """How many rows."""
        return self.at(width).get_height(rules, width)


class CodeLabel(Label):
    """A block of code or a message, no line of which is cut."""

    _wrapped: Wrapped | None = None

    def render(self) -> Visual:
        """The text, broken where that is needed."""
        visual = self.visual
        if not isinstance(visual, Content):
            return visual
        if self._wrapped is None or self._wrapped._content is not visual:
            self._wrapped = Wrapped(visual)
        return self._wrapped

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under the mouse's selection, its broken lines whole again."""
        visual = self.render()
        if not isinstance(visual, Wrapped):
            return None
        rows = visual.at(self.content_size.width).plain
        return selection.extract(rows).replace(f"\n{margin()}", ""), "\n"
