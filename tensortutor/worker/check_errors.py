"""What there is to say about an exception that came out of a check: whose line, and which."""

import linecache
import sys
from types import TracebackType
from typing import Any

from tensortutor.checking import advice
from tensortutor.checking.answer import Answer
from tensortutor.checking.describe import shorten
from tensortutor.worker.tracebacks import raised, suggestion, text_of

LONGEST = 90
"""Characters of a check's code that a sentence can hold."""


def error_parts(
    error: BaseException, path: str, answer: Answer, check_path: str = "", hint: str = ""
) -> dict[str, Any]:
    """The fields of a verdict about an error, apart from the call.

    If a line of the learner raised it: that line, and the scene. If not, what the check was doing.
    path, check_path: the two files as Python knows them. hint: the check's own.
    """
    text = text_of(error)
    message = f"{type(error).__qualname__}: {text}{suggestion(error)}"
    report = raised(error, path, "")
    frames = report.frames
    if frames:
        where = f"line {frames[-1].line}: {frames[-1].code}"
        advised = advice.on_error(error, text)
        return {"message": message, "where": where, "scene": report.scene, "hint": advised}
    if isinstance(error, TypeError) and innermost(error) == Answer.FILE:
        return {"message": message, "hint": advice.SIGNATURE}
    code = code_at(error.__traceback__, check_path)
    doing = f"ran `{code}`" if code else "went on"
    return {
        "message": message,
        "got": answer.last_result,
        "cause": f"This was raised when the check {doing} with what your code had made.",
        "hint": advice.on_use(error, text, answer.last_result, hint),
    }


def innermost(error: BaseException) -> str:
    """The file of the code that was running when an exception was raised."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace.tb_frame.f_code.co_filename if trace is not None else ""


def code_at(trace: TracebackType | None, path: str) -> str:
    """The code of a file that was under way: the expression, before Python 3.11 its line.

    "" if nothing of the file was, or its text is not known.
    """
    inner = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            inner = trace
        trace = trace.tb_next
    if inner is None:
        return ""
    line = linecache.getline(path, inner.tb_lineno).strip()
    return shorten(_expression(inner, path) or line, LONGEST)


def _expression(trace: TracebackType, path: str) -> str:
    """The expression that a frame had come to, or "" where its line says more."""
    if sys.version_info < (3, 11):
        return ""
    places = list(trace.tb_frame.f_code.co_positions())
    first, last, begin, end = places[trace.tb_lasti // 2]
    if first is None or last is None or begin is None or end is None:
        return ""
    # Columns are counted in bytes.
    lines = [linecache.getline(path, number).encode() for number in range(first, last + 1)]
    rest = lines[-1][end:].lstrip()
    if rest.startswith(b"=") and not rest.startswith(b"=="):
        return ""  # what is assigned to: the interesting part stands on the other side
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][begin:]
    return b"".join(lines).decode("utf-8", "replace")
