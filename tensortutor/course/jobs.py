"""Jobs for the panes and the checks of a lesson."""

import random

from tensortutor.course.limits import value_of, with_values
from tensortutor.course.model import Lesson
from tensortutor.protocol.jobs import Job, Judge, Limits


def program_job(
    lesson: Lesson | None, source: str, filename: str, limits: Limits | None = None,
    arguments: tuple[str, ...] = (), probes: tuple[str, ...] = (), raised: bool = True,
) -> Job:  # fmt: skip
    """Run a program; in a lesson, with the lesson's scratch folder and limits.

    raised: the lesson's own limits hold (see `limits_for`).
    """
    return Job(
        source, filename, arguments, scratch=scratch_name(lesson), probes=probes,
        ranks=ranks_of(lesson), device=device_of(lesson),
        limits=limits_for(lesson, limits, raised=raised),
    )  # fmt: skip


def check_job(
    lesson: Lesson, source: str, filename: str, seed: int | None = None,
    limits: Limits | None = None, seeds: tuple[int, ...] = (), variant: str = "",
    raised: bool = True,
) -> Job:  # fmt: skip
    """Put a lesson's checks to a program. Without a seed the inputs are fresh."""
    if seed is None:
        seed = random.SystemRandom().randrange(100_000)
    judge = Judge(
        lesson.judge.source, f"checks/{lesson.judge.path.parent.name}/{lesson.judge.path.name}",
        seeds or (seed,), lesson.judge.checks, variant,
    )  # fmt: skip
    return Job(
        source, filename, scratch=scratch_name(lesson), judge=judge, ranks=ranks_of(lesson),
        device=device_of(lesson), limits=limits_for(lesson, limits, raised=raised),
    )  # fmt: skip


def scratch_name(lesson: Lesson | None) -> str:
    """The lesson's folder for files that outlive a run."""
    return lesson.id.replace("/", ".") if lesson is not None else ""


def ranks_of(lesson: Lesson | None) -> int:
    """How many ranks the lesson asks for; 0 for an ordinary program."""
    kind, _, number = (lesson.device if lesson is not None else "").partition(":")
    return int(number) if kind == "ranks" else 0


def device_of(lesson: Lesson | None) -> str:
    """The device that the lesson insists on. Ranks are forks, which CUDA would not survive."""
    device = lesson.device if lesson is not None else "any"
    if device.startswith("ranks:"):
        return "cpu"
    return "" if device == "any" else device


def limits_for(lesson: Lesson | None, base: Limits | None = None, *, raised: bool = True) -> Limits:
    """The limits of a run: `base`, raised where the lesson asks for more.

    raised: it may have that: the course is our own, or the learner has agreed.
    """
    base = base or Limits()
    asked = lesson.limits if lesson is not None and raised else ()
    return with_values(base, {name: max(value_of(base, name), value) for name, value in asked})
