"""What the reference claims, and the runs that show whether it is so."""

from collections.abc import Callable, Iterator, Sequence

from tensortutor.course.claim_checks import Fault
from tensortutor.course.claims import Claim, Trial
from tensortutor.course.course_toml import read_contents
from tensortutor.course.model import Course
from tensortutor.course.problems import Problem
from tensortutor.course.reference import Page, lesson_problems, read_reference
from tensortutor.course.reference_samples import Sample, faults, sample_job
from tensortutor.course.reference_sheet import sheet_problems
from tensortutor.course.run_record import Record

NAME = "reference"
"""What `verify` calls all pages together; a single one is `reference/page`."""


def check_reference(course: Course) -> tuple[tuple[Page, ...], list[Problem]]:
    """The pages of a course, and what is wrong with them, their lessons included."""
    pages, problems = read_reference(course.root)
    ids = [lesson.id for lesson in course.lessons]
    planned = read_contents(course.root)[0].planned
    unknown = lesson_problems(course.root, pages, ids, planned)
    return pages, [*problems, *unknown, *sheet_problems(course.root, pages)]


def page_trials(pages: Sequence[Page]) -> Iterator[Trial]:
    """The code of every entry, run on its own; a claim for each result that it shows."""
    for page in pages:
        for entry in page.entries:
            for sample in entry.samples:
                claims = tuple(
                    Claim(shown.line, f"the line gives {shown.result}", _gives(sample, number))
                    for number, shown in enumerate(sample.shown)
                )
                yield Trial(f"{NAME}/{page.id}", (page.path,), sample_job(sample), claims)


def _gives(sample: Sample, number: int) -> Callable[[Record], Fault | None]:
    """The result of this number is what the run gave."""
    return lambda record: faults(sample, record)[number]
