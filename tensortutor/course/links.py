"""Links between the course's files."""

import re
from collections.abc import Iterator

from tensortutor.course.material import Prose
from tensortutor.course.model import Lesson

LINK = re.compile(r"\]\(<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\)")
CODE = re.compile(r"^ *(`{3,}|~{3,}).*?^ *\1[`~]*[ \t]*$|(`+)(?!`).*?(?<!`)\2(?!`)", re.M | re.S)
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:|#|//", re.I)


def broken_links(lesson: Lesson) -> Iterator[tuple[int, str]]:
    """(line, target) of every relative link in the prose that leads to no file."""
    for step in lesson.steps:
        for block in step.blocks:
            if isinstance(block, Prose) and "](" in block.markdown:
                for line, target in _targets(block):
                    path = target.partition("#")[0].replace("%20", " ")
                    if not (lesson.path.parent / path).exists():
                        yield line, target


def _targets(prose: Prose) -> Iterator[tuple[int, str]]:
    """The relative links of some prose, code left out."""
    text = CODE.sub(lambda code: "\n" * code[0].count("\n"), prose.markdown)
    for link in LINK.finditer(text):
        if not ELSEWHERE.match(link[1]):
            yield prose.line + text.count("\n", 0, link.start()), link[1]
