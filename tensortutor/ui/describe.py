"""Short words for states, times and devices."""

import math
from collections.abc import Iterable

from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.protocol.layers import FULL, LANDLOCK, LIMITS
from tensortutor.ui.protocols import Device, Status
from tensortutor.ui.terminal import symbols

GIB = 1 << 30
SOON_S = 600.0
"""Before the end of a job its minutes stand in the place of the layer."""
DEVICE_WORDS = {
    "any": "any device",
    "cpu": "CPU",
    "cuda": "a CUDA GPU",
}
LAYER_WORDS = {
    FULL: "programs see neither your files nor the network",
    LANDLOCK: "programs change no file outside their own folder and open no connection",
    LIMITS: "only time, memory and output of programs are limited",
}
"""What the layers of the sandbox mean."""


def number_of(course: Course, lesson: Lesson) -> tuple[Chapter, int]:
    """A lesson's chapter, and its number within it from 1."""
    chapter = next(c for c in course.chapters if lesson in c.lessons)
    return chapter, chapter.lessons.index(lesson) + 1


def short_name(course: Course, lesson: Lesson) -> str:
    """A lesson as people refer to it: "3.4 Gradients accumulate"."""
    chapter, number = number_of(course, lesson)
    return f"{chapter.number}.{number} {lesson.title}"


def lesson_by_id(course: Course, lesson_id: str) -> Lesson | None:
    """The lesson of an id, if the course has it."""
    return next((lesson for lesson in course.lessons if lesson.id == lesson_id), None)


def names(course: Course, ids: Iterable[str]) -> str:
    """Lessons by name, as the middle of a sentence: "1.2 Shapes and 2.1 Views"."""
    lessons = [(lesson_by_id(course, id), id) for id in ids]
    return joined([short_name(course, one) if one else id for one, id in lessons])


def joined(words: list[str]) -> str:
    """Words as a list in a sentence."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def minutes(count: int) -> str:
    """A span of time in hours and minutes."""
    hours, rest = divmod(count, 60)
    if not hours:
        return f"{rest} min"
    return f"{hours} h {rest} min" if rest else f"{hours} h"


def milliseconds(ms: float) -> str:
    """How long something took, to about two digits."""
    if ms < 10:
        return f"{ms:.1f} ms"
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def needs(lesson: Lesson) -> str:
    """The device that a lesson asks for."""
    if lesson.device.startswith("ranks:"):
        return f"{lesson.device.partition(':')[2]} processes"
    return DEVICE_WORDS.get(lesson.device, lesson.device)


def special(lesson: Lesson) -> str:
    """The device that a lesson asks for, if not every machine has it, in a word or two."""
    if lesson.device.startswith("ranks:"):
        return needs(lesson)
    return "GPU" if lesson.device == "cuda" else ""


def count(number: int, thing: str) -> str:
    """So many things: "1 lesson", "2 lessons"."""
    return f"{number} {thing}{'' if number == 1 else 's'}"


def due(questions: int | None, exercises: int, new: str = "", drills: int = 0) -> str:
    """What is due for another look; questions is None while that is not known.

    new: how many of the new cards are among it, if not all are.
    """
    if questions is None:
        return ""
    kinds = (questions, "question"), (drills, "drill"), (exercises, "exercise")
    parts = [count(n, what) for n, what in kinds if n]
    verb = "is" if questions + drills + exercises == 1 else "are"
    words = f"{joined(parts)} {verb} due" if parts else "nothing is due"
    return f"{words}: {new}" if new else words


def mismatch(lesson: Lesson, now: Status) -> str:
    """Why a lesson cannot be run in full here, as a sentence, or ""."""
    if lesson.device != "cuda" or now.device is None or now.device.name.startswith("cuda"):
        return ""
    return (
        f"This lesson needs a CUDA GPU, and programs run on {now.device.name} here. It can be "
        "read; its programs and checks cannot run."
    )


def device(one: Device) -> str:
    """A device, and its memory if it has its own."""
    if one.name == "cpu":
        return "cpu"
    parts = [one.name, one.label]
    if one.total_bytes:
        used = one.total_bytes - one.free_bytes
        parts.append(f"{used / GIB:.0f}/{one.total_bytes / GIB:.0f} GiB")
    return " ".join(part for part in parts if part)


def ends_soon(now: Status) -> str:
    """In how many minutes the job ends in which programs run, "" if that is not soon."""
    if now.ends_in_s is None or now.ends_in_s > SOON_S:
        return ""
    return f"job ends in {math.ceil(now.ends_in_s / 60)} min"


def status(now: Status) -> str:
    """The runner's state for the corner of a screen."""
    if now.state == "failed":
        return f"{symbols.current().failed} PyTorch is not available"
    if now.state == "ready" and now.device is not None:
        dot = symbols.current().dot
        where = f"{now.place.host} {dot} " if now.place is not None else ""
        return f"{where}{ends_soon(now) or now.layer} {dot} {device(now.device)}"
    if now.state == "loading" and now.waiting_for:
        return now.waiting_for
    return "PyTorch is loading" if now.state == "loading" else ""


def about_status(now: Status) -> str:
    """What the corner of a screen says of the sandbox and the device, in a sentence; or ""."""
    if now.state != "ready" or now.device is None:
        return ""
    return (
        f"{now.layer} {symbols.current().dot} {device(now.device)}, in the corner of a screen: "
        f"{LAYER_WORDS[now.layer]}, and their device is {device(now.device)}."
    )


def bar(done: int, total: int, width: int) -> tuple[str, str]:
    """A progress bar's two parts, `width` cells together."""
    signs = symbols.current()
    # Something done shows, and only all of it fills the bar.
    filled = width * done // total if total else 0
    if done and not filled:
        filled = 1
    return signs.full * filled, signs.empty * (width - filled)
