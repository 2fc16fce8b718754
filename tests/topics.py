"""Write docs/topics.md: what the course promises to teach, and where each of it stands.

    python -m tests.topics

The topics and their lessons are in tests/topics.toml. Which entries of the reference and which
errors of the atlas belong to a topic follows from the lessons that they name.
"""

import sys
from pathlib import Path
from typing import Any

from tensortutor.course.atlas import read_atlas
from tensortutor.course.catalog import open_course
from tensortutor.course.reference import read_reference

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
TARGET = ROOT / "docs/topics.md"
FEW = 3
HEAD = """\
# Topics

What the course teaches, and where: the lessons, entries of the reference, and errors that it
explains. `python -m tests.topics` makes this page from `tests/topics.toml`, and a test keeps it
true.
"""


def groups() -> list[dict[str, Any]]:
    """The groups of topics, each with `title` and `topics`: pairs of a topic and ids of lessons."""
    table = tomllib.loads((ROOT / "tests/topics.toml").read_text("utf-8"))
    found: list[dict[str, Any]] = table["groups"]
    return found


def page() -> str:
    """The text of docs/topics.md."""
    course = open_course(ROOT)
    written = {lesson.id for lesson in course.lessons}
    pages = [page for page in read_reference(ROOT)[0] if page.kind != "sheet"]
    entries = [entry for page in pages for entry in page.entries]
    errors = read_atlas(ROOT)[0]
    lines = [HEAD]
    for group in groups():
        lines += [f"## {group['title']}", "", "| Topic | Lessons | Reference | Errors |"]
        lines.append("|---|---|---|---|")
        for topic, ids in group["topics"]:
            lessons = [f"`{id}`" if id in written else f"`{id}` (to come)" for id in ids]
            titles = [e.title for e in entries if {*e.lessons} & {*ids}]
            names = [error.id for error in errors if error.lesson in ids]
            cells = (topic, ", ".join(lessons), few(titles), few(names))
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def few(names: list[str]) -> str:
    """The first names as code, and how many more there are."""
    shown = [f"`{name.replace('`', '').replace('|', '/')}`" for name in names[:FEW]]
    rest = len(names) - FEW
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")


if __name__ == "__main__":
    TARGET.write_text(page(), "utf-8")
