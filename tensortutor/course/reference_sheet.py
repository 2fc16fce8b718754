"""The page of the reference that is printed on one sheet of paper, as text and as Markdown."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from tensortutor.course.problems import Problem
from tensortutor.course.reference import SHEET_COLUMNS, Entry, Page

SHEET_ROWS = 110
"""Two columns of 64 and 110 rows fill a page of A4 or Letter at 18 characters an inch."""
GAP = "   "


def sheet_of(pages: Sequence[Page]) -> Page | None:
    """The first page of kind "sheet"."""
    return next((page for page in pages if page.kind == "sheet"), None)


def sheet_text(page: Page) -> list[str]:
    """The page in two columns: at most 131 characters a line, no space at the end of one."""
    blocks = [_block(entry) for entry in page.entries]
    left, right = _halves(blocks)
    rows = zip_longest(left, right, fillvalue="")
    title = f"{page.title}. {page.about}"
    return [title, "", *(f"{a:<{SHEET_COLUMNS}}{GAP}{b}".rstrip() for a, b in rows)]


def sheet_markdown(page: Page) -> str:
    """The page as Markdown: a heading and a block of code for each entry."""
    parts = [f"# {page.title}\n\n{page.about}\n"]
    for entry in page.entries:
        code = "".join(f"```python\n{sample.source}```\n" for sample in entry.samples)
        parts.append(f"## {entry.title}\n\nLessons: {', '.join(entry.lessons)}\n\n{code}")
    return "\n".join(parts)


def sheet_problems(root: Path, pages: Sequence[Page]) -> Iterator[Problem]:
    """A sheet that does not fit on one page."""
    for page in pages:
        rows = len(sheet_text(page)) if page.kind == "sheet" else 0
        if rows > SHEET_ROWS:
            path = page.path.relative_to(root).as_posix()
            yield Problem(path, 1, f"printed, it has {rows} rows of {SHEET_ROWS}: shorten it")


def _block(entry: Entry) -> list[str]:
    """Title, code and an empty line. The title leads to a lesson, if there is room for it."""
    lesson = entry.lessons[0] if entry.lessons else ""
    code = [line for sample in entry.samples for line in sample.source.splitlines()]
    return [f"{entry.title.upper()}  {lesson}".strip()[:SHEET_COLUMNS], *code, ""]


def _halves(blocks: Sequence[list[str]]) -> tuple[list[str], list[str]]:
    """The blocks in two columns, in order, cut where the longer one is shortest."""

    def joined(some: Sequence[list[str]]) -> list[str]:
        return [line for block in some for line in block][:-1]

    cuts = ((joined(blocks[:n]), joined(blocks[n:])) for n in range(1, len(blocks) + 1))
    return min(cuts, key=lambda cut: max(map(len, cut)))
