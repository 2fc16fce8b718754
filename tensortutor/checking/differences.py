"""What tells two containers or two long texts apart, in words short enough to be read."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensortutor.checking.describe import describe

MOST_NAMES = 4
"""Names that are listed; the others are counted."""
BEFORE, WINDOW = 15, 50
"""Characters shown of two long texts: before the first that differs, and in all."""

Same = Callable[[int], bool]


def difference(got: Any, wanted: Any, path: str, same: Same) -> str:
    """Where two values differ: for containers of one kind, what they do not have in common.

    path: where they stand in what is compared, as "['a'][0]". same: whether the items at an index
    are the same, for lists and tuples of any things.
    """
    place = [f"at {path}"] if path else []
    kinds = (list, tuple, dict, (set, frozenset))
    if not any(isinstance(got, kind) and isinstance(wanted, kind) for kind in kinds):
        return "".join(place)
    names = all(isinstance(item, str) for item in (*got, *wanted))
    if isinstance(wanted, (list, tuple)) and not names:
        return first_place(got, wanted, path, same)
    return "\n".join([*place, *missing_and_extra(got, wanted)])


def missing_and_extra(got: Iterable[Any], wanted: Iterable[Any]) -> Iterator[str]:
    """The names that only one of the two has, in a line for each of the two."""
    there, asked = Counter(iter(got)), Counter(iter(wanted))
    for word, some in (("missing", asked - there), ("extra", there - asked)):
        if some:
            yield f"{word}: {_names(some)}"


def _names(some: Iterable[Any]) -> str:
    names = [describe(name) for name in some]
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def first_place(got: Any, wanted: Any, path: str, same: Same) -> str:
    """Where two sequences of different lengths part."""
    common = min(len(got), len(wanted))
    place = next((index for index in range(common) if not same(index)), common)
    if place < common:
        return f"at {path}[{place}]: {describe(got[place])} instead of {describe(wanted[place])}"
    if len(got) < len(wanted):
        return f"{path}[{place}] is missing: {describe(wanted[place])}"
    return f"{path}[{place}] is too many: {describe(got[place])}"


def describe_both(got: Any, wanted: Any) -> tuple[str, str]:
    """Two values that differ; of long texts the part where they do."""
    words = describe(got), describe(wanted)
    if words[0] != words[1] or not (isinstance(got, str) and isinstance(wanted, str)):
        return words
    pairs = enumerate(zip(got, wanted, strict=False))
    first = next((at for at, (a, b) in pairs if a != b), min(len(got), len(wanted)))
    start = max(0, first - BEFORE)
    cut = [repr(text[start : start + WINDOW]) for text in (got, wanted)]
    return f"…{cut[0]}", f"…{cut[1]}"
