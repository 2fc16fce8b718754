"""Every lesson on the card: its programs run, its solution passes, its mutants are caught."""

import time
from collections import Counter
from contextlib import closing

from tensortutor.course.catalog import find_course, read_course
from tensortutor.course.claims import Trial, trials
from tensortutor.course.model import Lesson
from tensortutor.course.verify import Broken, Skipped, prove
from tensortutor.protocol.jobs import Limits
from tests.gpu.kit import Kit

SEEDS = 3
PRINTED = "the program prints what is shown"
"""Printed digits and devices may differ between a processor and a card: told, and no failure."""
QUICK = "tensors/reshape"
LATER = ("the accepted", "the answer", "the shortcut", "the mutant")
"""How claims about other answers begin. Each takes a process of its own, and a card makes one at a
time: programs, starters and solutions of all lessons come first, then these in this order."""


def main(kit: Kit, deadline: float) -> None:
    """Round by round, until the time is over."""
    course, _ = read_course(find_course(), thorough=True)
    lessons = [lesson for lesson in course.lessons if on_device(lesson)]
    if kit.quick:
        lessons = [lesson for lesson in lessons if lesson.id == QUICK]
    plan = [trial for lesson in lessons for trial in trials(lesson, SEEDS, Limits(), kit.device)]
    failed: set[str] = set()
    with kit.runner(preload=True, spares=kit.jobs) as runner:
        for number, name in enumerate(("programs, starters and solutions", *LATER)):
            chosen = [trial for trial in plan if round_of(trial) == number]
            claims = sum(len(trial.claims) for trial in chosen)
            counts: Counter[str] = Counter()
            with closing(prove(course, chosen, runner, jobs=kit.jobs)) as findings:
                for finding in findings:
                    counts["seen"] += 1
                    place = f"{finding.path}:{finding.line}"
                    what = f"{finding.lesson}: {finding.what}"
                    if isinstance(finding, Skipped):
                        kit.skip(what, finding.message)
                    elif isinstance(finding, Broken) and finding.what == PRINTED and kit.on_cuda:
                        kit.note(f"{what}, otherwise here", f"{place}: {finding.message}")
                    elif isinstance(finding, Broken):
                        failed.add(finding.lesson)
                        kit.ok(what, False, f"{place}: {finding.message}")
                    else:
                        counts["held"] += 1
                    if time.monotonic() > deadline:
                        break
            if counts["seen"] < claims:
                kit.skip(f"{claims - counts['seen']} of {claims}: {name}", "the time is over")
            kit.figure(f"claims that hold: {name}", counts["held"], f"of {claims}")
    kit.figure("lessons with a failure", len(failed), f"of {len(lessons)}", ", ".join(failed))


def round_of(trial: Trial) -> int:
    """0 for what comes first, else the place of its first claim in LATER, from 1."""
    what = trial.claims[0].what if trial.claims else ""
    return next((i for i, words in enumerate(LATER, 1) if what.startswith(words)), 0)


def on_device(lesson: Lesson) -> bool:
    """Whether a lesson runs on the learner's device: not those of ranks, or of the processor."""
    return lesson.device in ("any", "cuda")
