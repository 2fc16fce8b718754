"""Explains an exception of this process: by the atlas, and with the tensors of the failing line."""

import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tensortutor.course.catalog import find_course, open_course
from tensortutor.course.error_logs import Complaint, read_complaint
from tensortutor.course.explain import Explainer
from tensortutor.course.placeholders import type_of
from tensortutor.course.problems import CourseError
from tensortutor.protocol.events import Explained
from tensortutor.protocol.scene import UNKNOWN, Operand, Scene
from tensortutor.report import explained_lines, indented

PACKAGES = re.compile(r"[/\\](?:site-packages|dist-packages)[/\\]|^<(?!ipython-input)")
"""Files of packages, and code without a file that is no cell of a shell: generated code."""
OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
STANDARD = tuple(
    {os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")}
)
MOST_CAUSES = 8
MOST_LENGTH = 20_000
"""Characters of a message that are looked at."""
IGNORED = (KeyboardInterrupt, SystemExit, GeneratorExit)


@dataclass(frozen=True)
class Explanation:
    """told: what the atlas knows, or None. tensors: those of the failing line, name and words.

    about: the error that this is about, where it is one that the last error was raised from.
    """

    told: Explained | None
    tensors: tuple[tuple[str, str], ...]
    about: str = ""


def explain(error: BaseException) -> Explanation | None:
    """What there is to say about an exception, or of one that it was raised from; None if nothing.

    Runs no code of the program but `__str__` of the exception.
    """
    if isinstance(error, IGNORED):
        return None
    first: Explanation | None = None
    for one in causes(error):
        scene = scene_of(one)
        told = explainer().complaint(complaint_of(one, scene), scene)
        tensors = tuple(tensor_rows(scene))
        if told is not None:
            return Explanation(told, tensors, "" if one is error else told.error)
        if first is None and tensors:
            first = Explanation(None, tensors)
    return first


@cache
def explainer() -> Explainer:
    """What knows errors; without a sound course, by the atlas alone."""
    try:
        return Explainer(open_course(find_course()))
    except CourseError:
        return Explainer(None)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception, then what it was raised from."""
    seen: list[BaseException] = []
    one: BaseException | None = error
    while one is not None and len(seen) < MOST_CAUSES and all(one is not other for other in seen):
        seen.append(one)
        yield one
        one = one.__cause__


def scene_of(error: BaseException) -> Scene:
    """What was at hand where it was raised; nothing without torch."""
    path = own_file(error)
    if path is None or "torch" not in sys.modules:
        return UNKNOWN
    from tensortutor.worker.scene import scene_of_error  # it imports torch

    return scene_of_error(error, path)


def complaint_of(error: BaseException, scene: Scene) -> Complaint:
    """The exception as the atlas is asked about it."""
    kind = type(error).__qualname__
    if scene is UNKNOWN:
        stack = traceback.format_list(traceback.extract_tb(error.__traceback__))
        text = f"{''.join(stack)}{kind}: {message_of(error)}"
        return read_complaint(text, headed=True) or Complaint(kind, message_of(error))
    return Complaint(kind, message_of(error), scene.inside, scene.code)


def message_of(error: BaseException) -> str:
    """str(error), which a class may have broken."""
    try:
        return str(error)[:MOST_LENGTH]
    except Exception:
        return ""


def own_file(error: BaseException) -> str | None:
    """The innermost file of the traceback that is no library's."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not is_library(path):
            found = path
        trace = trace.tb_next
    return found


@cache
def is_library(path: str) -> bool:
    """A file of Python, of an installed package or of tensortutor."""
    return (
        PACKAGES.search(path) is not None
        or path.startswith(OURS)
        or os.path.realpath(path).startswith(STANDARD)
    )


def tensor_rows(scene: Scene) -> Iterator[tuple[str, str]]:
    """The tensors of the failing line that have a name there: the name, and words."""
    for operand in scene.operands:
        if operand.dtype and operand.name:
            yield operand.name, words_of(operand)


def words_of(operand: Operand) -> str:
    """ "f32[32, 10] on cuda:0, requires grad, 0 to 7"."""
    array = f"NumPy array {type_of(operand)}" if operand.kind == "NumPy array" else type_of(operand)
    words = [array, "requires grad" * operand.requires_grad]
    words.append(f"values {operand.values}" * bool(operand.values))
    return ", ".join(filter(None, words))


def text_lines(explanation: Explanation, width: int) -> Iterator[str]:
    """The explanation as lines, as `tensortutor run` prints it below an error."""
    if explanation.about:
        yield from indented("about", explanation.about, width)
    if explanation.told is not None:
        yield from explained_lines(explanation.told, width)
    names = max((len(name) for name, _ in explanation.tensors), default=0)
    rows = [f"{name.ljust(names)}  {words}" for name, words in explanation.tensors]
    if rows:
        yield from indented("tensors", "\n".join(rows))
