"""A lesson's Markdown to a Lesson, with every error at once."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortutor.course.check_file import CheckFile
from tensortutor.course.check_file_reader import defined_names, parse_python
from tensortutor.course.cuda_outputs import with_cuda_outputs
from tensortutor.course.fences import Fence, Heading, Piece, scan
from tensortutor.course.frontmatter import minutes_of, read_front_matter
from tensortutor.course.material import Step
from tensortutor.course.model import JUDGED, Lesson
from tensortutor.course.problems import Problem, Report, decode, listed, nearest
from tensortutor.course.steps import StepReader

PARTS = ("Insight", "Debugging", "In the wild")
"""The steps that every lesson has. In edition 2 a colon and words of its own may follow."""


def parse_lesson(
    data: bytes | str, id: str, judge: CheckFile, path: Path, root: Path
) -> tuple[Lesson, list[Problem]]:
    """The lesson in `data`, and what is wrong with it, in the file's order.

    path, judge.path: where the two files lie below `root`, the course's folder. With problems,
    the lesson is what could be made out: enough to resolve ids, not to be taught. Never raises.
    """
    report = Report(path.relative_to(root).as_posix())
    raw = data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass")
    text = decode(raw, report)
    front, start = read_front_matter(text, report)
    pieces = scan(text, start, report)
    steps = with_cuda_outputs(tuple(_steps(pieces, report)), id, root, report)
    _check_whole(pieces, front.edition, report)
    beside = Report(judge.path.relative_to(root).as_posix())
    _check_substitutes(steps, judge, report, beside)
    lesson = Lesson(
        id=id,
        title=front.title,
        goal=front.goal,
        requires=front.requires,
        continues=front.continues,
        minutes=minutes_of(front, text, start),
        edition=front.edition,
        long=front.long,
        device=front.device,
        steps=steps,
        judge=judge,
        path=path,
        limits=front.limits,
    )
    return lesson, sorted(report.problems) + beside.problems


def _steps(pieces: Sequence[Piece], report: Report) -> Iterator[Step]:
    """One step per heading; what comes before the first is reported."""
    starts = [n for n, piece in enumerate(pieces) if isinstance(piece, Heading)]
    for piece in pieces[: starts[0] if starts else len(pieces)]:
        what = f"a {piece.kind} fence" if isinstance(piece, Fence) else "text"
        report.add(piece.line, f"{what} without a step: begin one above it with ## and a title")
    for start, end in zip(starts, [*starts[1:], len(pieces)], strict=False):
        heading = pieces[start]
        if isinstance(heading, Heading):
            yield StepReader(heading, report).read(pieces[start + 1 : end])


def _check_whole(pieces: Sequence[Piece], edition: int, report: Report) -> None:
    """What every lesson must have."""
    headings = [piece for piece in pieces if isinstance(piece, Heading)]
    fences = [piece for piece in pieces if isinstance(piece, Fence)]
    for part in PARTS:
        if not any(_names(heading.title, part, edition) for heading in headings):
            report.add(1, f"the part '## {part}' is missing: {_advice(part, headings)}")
    kinds = {fence.kind for fence in fences}
    if "run" not in kinds:
        report.add(1, "there is nothing to run: add a `python run` fence")
    if "quiz" not in kinds:
        report.add(1, "there is no question: add a `quiz` fence")
    tasks = [fence for fence in fences if fence.kind in JUDGED]
    if not tasks:
        report.add(1, "there is no task: add a `python exercise` or a `python fix` fence")
    for extra in tasks[1:]:
        report.add(
            extra.line,
            f"the lesson has a task in line {tasks[0].line} already: each lesson has one",
        )


def _names(title: str, part: str, edition: int) -> bool:
    """A step of this title is this part of the lesson."""
    return title == part or (edition > 1 and title.startswith(f"{part}: "))


def _advice(part: str, headings: Sequence[Heading]) -> str:
    """Which heading was perhaps meant."""
    others = {heading.title.lower(): heading for heading in headings if heading.title not in PARTS}
    word = part.lower()
    near = next(iter(nearest(word, [other for other in others if other])), "")
    if near and (near in word or word in near):
        return f"is it '## {others[near].title}' in line {others[near].line}?"
    return "add this step"


def _check_substitutes(
    steps: Sequence[Step], judge: CheckFile, report: Report, beside: Report
) -> None:
    """Every mutant and accepted alternative replaces something that the solution defines.

    beside: the report of the check file.
    """
    step = next((step for step in steps if step.solution), None)
    if step is None or step.solution is None:
        return
    tree = parse_python(step.solution, step.solution_line + 1, "the solution", report)
    if tree is None:
        return
    names = defined_names(tree)
    for variant in (*judge.mutants, *judge.accepted, *judge.hinted):
        if variant.function not in names:
            beside.add(
                variant.line,
                f"the variant {variant.name!r} replaces {variant.function}, which the solution "
                f"({report.path}:{step.solution_line}) does not define; it defines "
                f"{listed(names) or 'nothing'}",
            )
    for variant in judge.hinted:
        if variant.hint > len(step.hints):
            beside.add(
                variant.line,
                f"@hinted({variant.hint}, ...) follows a hint that is not there: the task has "
                f"{len(step.hints)}",
            )
