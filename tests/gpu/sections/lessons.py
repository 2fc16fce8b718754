"""Every lesson on the card: its programs run, its solution passes, its mutants are caught."""

import time
from collections import Counter

from tensortutor.course.catalog import find_course, read_course
from tensortutor.course.model import Lesson
from tensortutor.course.verify import Broken, Skipped, verify
from tests.gpu.kit import Kit

SEEDS = 3
PRINTED = "the program prints what is shown"
"""Printed digits and devices may differ between a processor and a card: told, and no failure."""
QUICK = "tensors/reshape"


def main(kit: Kit, deadline: float) -> None:
    """Lesson by lesson, until the time is over."""
    course, _ = read_course(find_course(), thorough=True)
    lessons = [lesson for lesson in course.lessons if on_device(lesson)]
    if kit.quick:
        lessons = [lesson for lesson in lessons if lesson.id == QUICK]
    counts: Counter[str] = Counter()
    with kit.runner(preload=True, spares=kit.jobs) as runner:
        for index, lesson in enumerate(lessons):
            if time.monotonic() > deadline:
                left = ", ".join(lesson.id for lesson in lessons[index:])
                kit.skip(f"{len(lessons) - index} lessons", f"the time is over: {left}")
                break
            failed = 0
            options = {"seeds": SEEDS, "jobs": kit.jobs, "device": kit.device}
            for finding in verify(course, [lesson], runner, **options):  # type: ignore[arg-type]
                place = f"{finding.path}:{finding.line}"
                if isinstance(finding, Skipped):
                    kit.skip(f"{lesson.id}: {finding.what}", finding.message)
                elif isinstance(finding, Broken) and finding.what == PRINTED and kit.on_cuda:
                    kit.note(f"{lesson.id}: prints otherwise here", f"{place}: {finding.message}")
                elif isinstance(finding, Broken):
                    failed += 1
                    kit.ok(f"{lesson.id}: {finding.what}", False, f"{place}: {finding.message}")
                else:
                    counts["held"] += 1
            if not failed:
                counts["lessons"] += 1
    kit.figure("lessons without a failure", counts["lessons"], f"of {len(lessons)}")
    kit.figure("claims that hold on the device", counts["held"], "")


def on_device(lesson: Lesson) -> bool:
    """Whether a lesson runs on the learner's device: not those of ranks, or of the processor."""
    return lesson.device in ("any", "cuda")
