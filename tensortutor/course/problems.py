"""What is wrong with a course, as data: every problem has a file, a line and a sentence."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

LONGEST = 80
"""Characters of a word that are compared: the time grows with their square."""


@dataclass(frozen=True, order=True)
class Problem:
    """One thing to mend. path: relative to the course's root; line: from 1, 0 if none applies."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


class CourseError(Exception):
    """A course that cannot be used as it is. `problems` holds everything that is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


class Report:
    """Collects the problems of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.problems: list[Problem] = []

    def add(self, line: int, message: str) -> None:
        """Note a problem; the same one twice is noted once."""
        problem = Problem(self.path, line, message)
        if problem not in self.problems:
            self.problems.append(problem)


def nearest(word: str, known: Sequence[str], count: int = 1) -> list[str]:
    """The `count` known words most like `word`, best first."""
    import difflib  # needed only when something is wrong

    return difflib.get_close_matches(word[:LONGEST], known, n=count, cutoff=0.0)


def listed(words: Sequence[str], last: str = "and") -> str:
    """ "a, b and c"."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def decode(data: bytes, report: Report) -> str:
    """UTF-8 with any line ends as text with "\\n". Other bytes are reported and replaced."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        report.add(line, f"byte 0x{data[error.start]:02x} is not UTF-8: save the file as UTF-8")
        text = data.decode("utf-8-sig", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
