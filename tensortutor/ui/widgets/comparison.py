"""Two programs, line by line: side by side where both fit, else one below the other."""

from collections.abc import Sequence

from rich.cells import cell_len
from textual.app import RenderResult
from textual.content import Content
from textual.geometry import Size
from textual.widget import Widget

from tensortutor.learner.solution_diff import MINE, SAME, THEIRS, Pair, unified
from tensortutor.plaintext import visible
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.wrapping import margin, pieces

LOOKS = {SAME: "$foreground 70%", MINE: "$text-primary", THEIRS: "$text-accent"}
"""Neither red nor green: both programs are right."""
TITLES = ("Yours", "Another way")
MARK = 2
"""Cells for a line's mark and the space behind it."""


class Comparison(Widget):
    """The learner's program and the solution. A mark stands before each line that differs."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        super().__init__()
        self._pairs = [
            Pair(_shown(pair.mine), _shown(pair.theirs), pair.same) for pair in pairs
        ]  # fmt: skip

    def fits_beside(self, width: int) -> bool:
        """Whether both programs fit beside each other into so many cells."""
        return all(
            cell_len(line or "") + MARK <= (width - len(self._bar())) // 2
            for pair in self._pairs
            for line in (pair.mine, pair.theirs)
        )

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """The lines of whichever of the two it is."""
        del container, viewport
        return len(self._content(width).split("\n", allow_blank=True))

    def render(self) -> RenderResult:
        """As wide as there is room."""
        return self._content(self.size.width)

    def _content(self, width: int) -> Content:
        return self._beside(width) if self.fits_beside(width) else self._below(width)

    def _beside(self, width: int) -> Content:
        half = (width - len(self._bar())) // 2
        bar = Content.styled(self._bar(), "$foreground 66%")
        titles = [Content.styled(f"{'':{MARK}}{title}".ljust(half), "bold") for title in TITLES]
        lines = [titles[0] + bar + titles[1]]
        for pair in self._pairs:
            marks = (SAME, SAME) if pair.same else (MINE, THEIRS)
            cells = [
                _marked(mark, line, half)
                for mark, line in zip(marks, (pair.mine, pair.theirs), strict=True)
            ]
            lines.append(cells[0] + bar + cells[1])
        return Content("\n").join(lines)

    def _below(self, width: int) -> Content:
        mine, theirs = TITLES
        lines = [
            Content.styled(f"{MINE} {mine.lower()}", LOOKS[MINE])
            + Content("   ")
            + Content.styled(f"{THEIRS} {theirs.lower()}", LOOKS[THEIRS]),
            Content(),
        ]
        for mark, line in unified(self._pairs):
            # What is too long goes on below, behind the same mark and that of a broken line.
            first, *rest = pieces(line, max(1, width - MARK))
            lines += [_marked(mark, part, 0) for part in (first, *(margin() + p for p in rest))]
        return Content("\n").join(lines)

    def _bar(self) -> str:
        return " | " if symbols.current().ascii else " │ "


def _marked(mark: str, line: str | None, width: int) -> Content:
    text = "" if line is None else f"{mark} {line}"
    return Content.styled(text + " " * (width - cell_len(text)), LOOKS[mark])


def _shown(line: str | None) -> str | None:
    return None if line is None else visible(line)
