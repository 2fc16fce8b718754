"""`look` and `try` fences: TOML to a Look and a Try."""

import re
from collections.abc import Callable
from typing import Any

from tensortutor.course.fences import Fence
from tensortutor.course.material import LOOK_TABS, Look, Try
from tensortutor.course.problems import Report, listed, nearest
from tensortutor.course.toml_tables import (
    NEEDS,
    TEXT,
    Key,
    check_table,
    is_text,
    key_lines,
    load_toml,
    show,
)

RESULTS = ("output", "shows", "error")
"""How a `try` says what its program does; it needs one of them."""


def is_string(value: Any) -> bool:
    """A string, perhaps an empty one."""
    return isinstance(value, str)


def is_edits(value: Any) -> bool:
    """A list of pairs of strings, [old, new], where the old ones hold something."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
        and all(is_text(old) and is_string(new) for old, new in value)
    )


LOOK_KEYS = {
    "tab": Key(is_text, listed(LOOK_TABS, "or")),
    "row": TEXT,
    "expect": TEXT,
    "say": TEXT,
    "needs": NEEDS,
}
TRY_KEYS = {
    "say": TEXT,
    "old": Key(is_text, "a text that stands once in the step's program", required=False),
    "new": Key(is_string, "what replaces the old text", required=False),
    "edits": Key(is_edits, "a list of pairs, [[old, new], ...]", required=False),
    "output": Key(is_string, "all that the edited program prints", required=False),
    "shows": Key(is_text, "a part of what the edited program prints", required=False),
    "error": Key(is_text, "how its error begins, as 'ValueError: not'", required=False),
    "needs": NEEDS,
}


def read_look(fence: Fence, report: Report) -> Look | None:
    """The `look` in a fence, or None if it is not complete enough to be one."""
    read = _read(fence, LOOK_KEYS, report)
    if read is None:
        return None
    values, line_of = read
    tab = values["tab"]
    if tab not in LOOK_TABS:
        report.add(
            line_of("tab"),
            f"there is no tab {show(tab)}; the nearest is {nearest(tab, LOOK_TABS)[0]!r} "
            f"(known: {listed(LOOK_TABS)})",
        )
        return None
    texts = {name: values[name].strip() for name in ("row", "expect", "say")}
    return Look(tab, **texts, line=fence.line, needs=values.get("needs", ""))


def read_try(fence: Fence, source: str | None, report: Report) -> Try | None:
    """The `try` in a fence, or None if it is not complete enough to be one.

    source: the step's program, in which the edits must be possible; None if there is none.
    """
    read = _read(fence, TRY_KEYS, report)
    if read is None:
        return None
    values, line_of = read
    before = len(report.problems)
    edits = _edits(values, fence.line, line_of, report)
    results = [name for name in RESULTS if name in values]
    if len(results) != 1:
        report.add(
            line_of(results[1]) if results else fence.line,
            f"a try says what comes of it by one of {listed(RESULTS, 'or')}, "
            + (f"and this one has {listed(results)}" if results else "and this one has none"),
        )
    if source is not None:
        _check_edits(edits, source, line_of, report)
    if len(report.problems) > before:
        return None
    (result,) = results
    # A text in three quotes begins one line below its key.
    opening = re.search(rf"^[ \t]*{result}[ \t]*=[ \t]*(\"\"\"|\'\'\')[ \t]*$", fence.body, re.M)
    return Try(
        values["say"].strip(),
        edits,
        fence.line,
        **{result: values[result]},
        result_line=line_of(result) + bool(opening),
        needs=values.get("needs", ""),
    )


def _read(
    fence: Fence, keys: dict[str, Key], report: Report
) -> tuple[dict[str, Any], Callable[[str], int]] | None:
    """The fence's values and where its keys stand, or None if a value is wrong or missing."""
    first, what = fence.line + 1, f"the {fence.kind}"
    table = load_toml(fence.body, first, what, report)
    if table is None:
        return None
    line_of = key_lines(fence.body, first, otherwise=fence.line)
    before = len(report.problems)
    values = check_table(table, keys, what, line_of, report)
    return (values, line_of) if len(report.problems) == before else None


def _edits(
    values: dict[str, Any], line: int, line_of: Callable[[str], int], report: Report
) -> tuple[tuple[str, str], ...]:
    one = "old" in values or "new" in values
    if one and "edits" in values:
        report.add(line_of("edits"), "a try has either old and new, or edits, not both")
    elif "edits" in values:
        return tuple((old, new) for old, new in values["edits"])
    elif "old" in values and "new" in values:
        return ((values["old"], values["new"]),)
    else:
        missing = "new" if "old" in values else "old"
        report.add(
            line, f"the try lacks {missing!r}: write old and new, or edits = [[old, new], ...]"
        )
    return ()


def _check_edits(
    edits: tuple[tuple[str, str], ...], source: str, line_of: Callable[[str], int], report: Report
) -> None:
    """Each old text stands once in the program as the edits before it have left it."""
    line = line_of("edits") if len(edits) > 1 else line_of("old")
    for old, new in edits:
        count = source.count(old)
        if count != 1:
            where = "nowhere" if not count else f"{count} times"
            report.add(
                line,
                f"{show(old)} stands {where} in the step's program, and must stand there once"
                + (": quote more of its line" if count else ""),
            )
            return
        if new == old:
            report.add(line, f"the edit of {show(old)} changes nothing")
        source = source.replace(old, new)
