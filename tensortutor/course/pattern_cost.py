"""Finds regular expressions whose matching takes more than linear time.

Python's `re` backtracks: `(a+)+$` tries every way to divide a row of a's before it gives up. A
pattern is parsed, texts that make it backtrack are made from its own parts, and a matcher that
tries alternatives in the same order as `re` counts its steps on them. Steps are counted, not
seconds: the answer is the same on every machine.
"""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

if sys.version_info >= (3, 11):
    from re import _constants as codes
    from re import _parser as parser
else:
    import sre_constants as codes
    import sre_parse as parser

LENGTHS, FEWEST = (64, 24), 6
"""Texts repeat a part until they have so many characters (fewer if Python's stack is too small for
that), but so often at least; then twice and three times as often."""
EDGES = 16
"""Steps by which texts may differ at their ends."""
MOST_STEPS = 200_000
"""No text of ours is so long that a linear pattern would take more."""
CHEAP = 4
"""So many steps for a character are linear time, whatever they were for shorter texts."""
UNBOUNDED = 50
"""A repeat that may go on for longer counts as a star; one of more than a character, for longer
than UNBOUNDED_GROUP."""
UNBOUNDED_GROUP = 8
LONGEST_SAMPLE = 500
MOST_TEXTS = 150
MOST_VARIANTS = 6
STOP = "\0"
"""Ends a text: what most patterns cannot go on with, so that they try all other ways."""
ALPHABET = "a0 _-.,\n"
REPEATS = {codes.MAX_REPEAT, codes.MIN_REPEAT} | {
    getattr(codes, name) for name in ("POSSESSIVE_REPEAT",) if hasattr(codes, name)
}
ATOMIC = {
    getattr(codes, name) for name in ("ATOMIC_GROUP", "POSSESSIVE_REPEAT") if hasattr(codes, name)
}
ONE_CHARACTER = (codes.LITERAL, codes.NOT_LITERAL, codes.ANY, codes.IN)
ENDS = (codes.AT_END, codes.AT_END_STRING)
STARTS = (codes.AT_BEGINNING, codes.AT_BEGINNING_STRING)

Items = Sequence[tuple[Any, Any]]
"""What the parser makes of a pattern: (opcode, arguments), one after the other."""
Then = Callable[[int], bool]
"""What has to match from a position on."""
Tests = dict[tuple[Any, int, int], Callable[[str], bool]]


class TooManySteps(Exception):
    """The matcher has been stopped."""


def costly_repeat(text: str, flags: int, *, anywhere: bool) -> str | None:
    """A part that, repeated, makes matching take more than linear time; None if none was found.

    anywhere: the pattern is searched for at every position, not matched from the beginning. Raises
    re.error, RecursionError and OverflowError for what is no pattern.
    """
    parsed = parser.parse(text, flags)
    flags = parsed.state.flags  # with those that the pattern sets itself
    items = _plain(parsed)
    if not _may_be_costly(items, anywhere=anywhere):
        return None
    tests: Tests = {}
    for prefix, pump in _texts(items):
        if _is_costly(items, flags, tests, prefix, pump, anywhere=anywhere):
            return pump
    return None


def _is_costly(
    items: Items, flags: int, tests: Tests, prefix: str, pump: str, *, anywhere: bool
) -> bool:
    """Whether the steps grow faster than the number of pumps."""

    def steps(number: int) -> int:
        text = prefix + pump * number + STOP
        return Matcher(items, flags, text, tests).steps(anywhere=anywhere)

    for length in LENGTHS:
        times = max(FEWEST, length // len(pump))
        try:
            most = steps(3 * times)
            if most < CHEAP * len(pump) * 3 * times:
                return False
            # Linear growth: both differences are the same, but for what happens at the ends.
            fewer, few = steps(2 * times), steps(times)
        except TooManySteps:
            return True
        except RecursionError:
            continue  # a repeat of a group calls itself: shorter texts will do for it
        return (most - fewer) - (fewer - few) > times * times // 4 + EDGES
    return True


def _plain(part: Any) -> Any:
    """What the parser makes, with lists in the place of its own sequences: they are read faster."""
    if isinstance(part, parser.SubPattern):
        return [_plain(item) for item in part.data]
    return type(part)(map(_plain, part)) if type(part) in (list, tuple) else part


# --- texts that make a pattern backtrack ---


def _may_be_costly(items: Items, *, anywhere: bool) -> bool:
    """One repeat of one character, matched from the beginning, can only go back through it."""
    repeats = list(_repeats(items, ""))
    if len(repeats) > 1 or (anywhere and repeats):
        return True
    return any(not _is_one_character(body) for _, body in repeats)


def _is_one_character(body: Items) -> bool:
    return len(body) == 1 and body[0][0] in ONE_CHARACTER


def _texts(items: Items) -> Iterator[tuple[str, str]]:
    """(prefix, pump): what leads to a repeat, and what may be repeated there."""
    repeats = list(_repeats(items, ""))
    shared = list(dict.fromkeys([*_between(items), *_singles(items)]))
    seen = {("", ALPHABET[0])}
    yield "", ALPHABET[0]
    for prefix, body in repeats:
        for pump in [*_samples(body), *shared]:
            if pump and (prefix, pump) not in seen and len(seen) < MOST_TEXTS:
                seen.add((prefix, pump))
                yield prefix, pump


def _repeats(items: Items, prefix: str) -> Iterator[tuple[str, Items]]:
    """Every unbounded repeat at any depth: a text that leads to it, and what it repeats."""
    before = prefix
    for op, arguments in items:
        if op in REPEATS and _is_unbounded(arguments):
            yield before, arguments[2]
        for inner in _inner(op, arguments):
            yield from _repeats(inner, before)
        before += _sample(op, arguments, 0)


def _is_unbounded(arguments: Any) -> bool:
    low, high, body = arguments
    if not _is_one_character(body):
        return bool(high > UNBOUNDED_GROUP)
    return bool(high - low > UNBOUNDED)


def _inner(op: Any, arguments: Any) -> list[Items]:
    """The sequences within an item."""
    if op is codes.BRANCH:
        return list(arguments[1])
    if op in REPEATS:
        return [arguments[2]]
    if op is codes.SUBPATTERN:
        return [arguments[3]]
    if op in (codes.ASSERT, codes.ASSERT_NOT):
        return [arguments[1]]
    if op is codes.GROUPREF_EXISTS:
        return [part for part in arguments[1:] if part]
    return [arguments] if op in ATOMIC else []


def _between(items: Items) -> Iterator[str]:
    """Texts for what stands between two repeats of a sequence: `.*` may swallow it as well."""
    places = [at for at, item in enumerate(items) if next(_repeats([item], ""), None)]
    for number, start in enumerate(places):
        for stop in places[number + 1 :]:
            for variant in range(2):
                yield _sample_all(items[start + 1 : stop], variant)
                yield _sample_all(items[start:stop], variant)
                yield _sample_all(items[start + 1 : stop + 1], variant)
    for op, arguments in items:
        for inner in _inner(op, arguments):
            yield from _between(inner)
            if op is codes.BRANCH:
                yield _sample_all(inner, 0)


def _singles(items: Items) -> Iterator[str]:
    """Single characters that repeats of one character accept."""
    bodies = [body[0] for _, body in _repeats(items, "") if _is_one_character(body)]
    for op, arguments in bodies:
        yield from _accepted(op, arguments)[: 1 if op is codes.ANY else MOST_VARIANTS]


def _accepted(op: Any, arguments: Any) -> str:
    """Characters that an item of one character accepts."""
    fits = character_test(op, arguments, 0)
    own = [chr(value) for value in _literals(op, arguments)]
    found = [character for character in dict.fromkeys([*own, *ALPHABET]) if fits(character)]
    return "".join(found) or next(filter(fits, map(chr, range(1, 0x3000))), "")


def _literals(op: Any, arguments: Any) -> Iterator[int]:
    if op is codes.LITERAL:
        yield arguments
    for kind, value in arguments if op is codes.IN else ():
        if kind is codes.LITERAL:
            yield value
        elif kind is codes.RANGE:
            yield value[0]


def _samples(items: Items) -> Iterator[str]:
    """Some texts that a sequence matches."""
    if _is_one_character(items):
        yield from _accepted(*items[0])[:2]
        return
    for variant in range(MOST_VARIANTS):
        yield _sample_all(items, variant)
    for variant in range(2):
        yield "".join(_sample(op, arguments, variant, more=1) for op, arguments in items)


def _sample_all(items: Items, variant: int) -> str:
    whole = "".join(_sample(op, arguments, variant) for op, arguments in items)
    return whole[:LONGEST_SAMPLE]


def _sample(op: Any, arguments: Any, variant: int, more: int = 0) -> str:
    """A short text that an item matches. variant: which of its alternatives; more: repeats."""
    if op in ONE_CHARACTER:
        accepted = _accepted(op, arguments)
        return accepted[variant % len(accepted)] if accepted else ""
    if op in REPEATS:
        low = max(arguments[0], 1 if _is_unbounded(arguments) or more else 0)
        sample = _sample_all(arguments[2], variant) * min(int(low) + more, UNBOUNDED)
        return sample[:LONGEST_SAMPLE]
    if op is codes.BRANCH:
        return _sample_all(arguments[1][variant % len(arguments[1])], variant)
    if op is codes.SUBPATTERN or op in ATOMIC:
        return _sample_all(_inner(op, arguments)[0], variant)
    return ""


# --- a matcher that counts ---


class Matcher:
    """Matches a parsed pattern as `re` does, alternative by alternative, and counts the steps."""

    def __init__(self, items: Items, flags: int, text: str, tests: Tests) -> None:
        """tests: those of single characters that have been made for these items."""
        self._items = items
        self._flags = flags
        self._text = text
        self._tests = tests
        self._groups: dict[int, tuple[int, int]] = {}
        self._count = 0

    def steps(self, *, anywhere: bool) -> int:
        """Steps until it is found or known not to be there. Raises TooManySteps."""
        for start in range(len(self._text) + 1 if anywhere else 1):
            if self._run(self._items, 0, start, self._flags, lambda _: True):
                break
        return self._count

    def _step(self) -> None:
        self._count += 1
        if self._count > MOST_STEPS:
            raise TooManySteps

    def _run(self, items: Items, at: int, position: int, flags: int, then: Then) -> bool:
        """Match items from the one at an index on, then what follows them."""
        while at < len(items):
            op, arguments = items[at]
            self._step()
            if op not in ONE_CHARACTER:
                follow = partial(self._follow, items, at + 1, flags, then)
                return self._one(op, arguments, position, flags, follow)
            if not self._fits(op, arguments, position, flags):
                return False
            at, position = at + 1, position + 1
        return then(position)

    def _follow(self, items: Items, at: int, flags: int, then: Then, position: int) -> bool:
        return self._run(items, at, position, flags, then)

    def _fits(self, op: Any, arguments: Any, position: int, flags: int) -> bool:
        if position >= len(self._text):
            return False
        key = op, id(arguments), flags
        test = self._tests.get(key)
        if test is None:
            test = self._tests[key] = character_test(op, arguments, flags)
        return test(self._text[position])

    def _one(self, op: Any, arguments: Any, position: int, flags: int, then: Then) -> bool:
        """Match an item that is more than a character, then what follows."""
        if op is codes.BRANCH:
            return any(self._run(branch, 0, position, flags, then) for branch in arguments[1])
        if op is codes.SUBPATTERN:
            return self._group(arguments, position, flags, then)
        if op in REPEATS:
            if op in ATOMIC:
                return self._atomic([(codes.MAX_REPEAT, arguments)], position, flags, then)
            return self._repeat(op, arguments, position, flags, then)
        if op in ATOMIC:
            return self._atomic(arguments, position, flags, then)
        if op in (codes.ASSERT, codes.ASSERT_NOT):
            return self._assert(op, arguments, position, flags) and then(position)
        if op is codes.GROUPREF:
            begin, end = self._groups.get(arguments, (0, 0))
            word = self._text[begin:end]
            return self._text.startswith(word, position) and then(position + len(word))
        if op is codes.GROUPREF_EXISTS:
            chosen = arguments[1] if arguments[0] in self._groups else arguments[2]
            return self._run(chosen or [], 0, position, flags, then)
        return self._at(arguments, position, flags) and then(position)

    def _group(self, arguments: Any, position: int, flags: int, then: Then) -> bool:
        number, added, removed, items = arguments

        def closed(end: int) -> bool:
            before = self._groups.get(number)
            self._groups[number] = position, end
            if then(end):
                return True
            if before is None:
                del self._groups[number]
            else:
                self._groups[number] = before
            return False

        return self._run(items, 0, position, (flags | added) & ~removed, closed if number else then)

    def _repeat(self, op: Any, arguments: Any, position: int, flags: int, then: Then) -> bool:
        low, high, body = arguments
        if _is_one_character(body):
            return self._row(op, arguments, position, flags, then)

        def again(count: int, begin: int) -> bool:
            def further(end: int) -> bool:
                return (end > begin or count < low) and again(count + 1, end)

            self._step()
            if count < low:
                return self._run(body, 0, begin, flags, further)
            may = high == codes.MAXREPEAT or count < high
            if op is codes.MIN_REPEAT:
                return then(begin) or (may and self._run(body, 0, begin, flags, further))
            return (may and self._run(body, 0, begin, flags, further)) or then(begin)

        return again(0, position)

    def _row(self, op: Any, arguments: Any, position: int, flags: int, then: Then) -> bool:
        """A repeat of one character, without recursion."""
        low, high, ((kind, of),) = arguments
        count, lazy = 0, op is codes.MIN_REPEAT
        while not (lazy and count >= low and then(position + count)):
            may = high == codes.MAXREPEAT or count < high
            self._step()
            if not may or not self._fits(kind, of, position + count, flags):
                break
            count += 1
        else:
            return True
        while not lazy and count >= low:
            self._step()
            if then(position + count):
                return True
            count -= 1
        return False

    def _atomic(self, items: Items, position: int, flags: int, then: Then) -> bool:
        ends: list[int] = []

        def first(end: int) -> bool:
            ends.append(end)
            return True

        return self._run(items, 0, position, flags, first) and then(ends[0])

    def _assert(self, op: Any, arguments: Any, position: int, flags: int) -> bool:
        direction, items = arguments
        if direction < 0:
            begin = position - len(_sample_all(items, 0))  # all that fits has the same width
            found = begin >= 0 and self._run(items, 0, begin, flags, lambda end: end == position)
        else:
            found = self._run(items, 0, position, flags, lambda _: True)
        return found is (op is codes.ASSERT)

    def _at(self, where: Any, position: int, flags: int) -> bool:
        lines = bool(flags & re.MULTILINE)
        if where in STARTS:
            return position == 0 or (lines and self._text[position - 1] == "\n")
        if where in ENDS:
            left = self._text[position:]
            return left in ("", "\n") or (lines and left.startswith("\n"))
        words = [
            0 <= at < len(self._text) and (self._text[at].isalnum() or self._text[at] == "_")
            for at in (position - 1, position)
        ]
        return (words[0] != words[1]) is (where is codes.AT_BOUNDARY)


CATEGORIES: dict[Any, Callable[[str], bool]] = {
    codes.CATEGORY_DIGIT: str.isdecimal,
    codes.CATEGORY_SPACE: str.isspace,
    codes.CATEGORY_WORD: lambda character: character.isalnum() or character == "_",
}
NOT_CATEGORIES = {
    codes.CATEGORY_NOT_DIGIT: codes.CATEGORY_DIGIT,
    codes.CATEGORY_NOT_SPACE: codes.CATEGORY_SPACE,
    codes.CATEGORY_NOT_WORD: codes.CATEGORY_WORD,
}


def character_test(op: Any, arguments: Any, flags: int) -> Callable[[str], bool]:
    """Whether an item of one character accepts a character."""
    if flags & re.IGNORECASE:
        exact = character_test(op, arguments, flags & ~re.IGNORECASE)
        return lambda character: exact(character.lower()) or exact(character.upper())
    if op is codes.LITERAL:
        return lambda character: ord(character) == arguments
    if op is codes.NOT_LITERAL:
        return lambda character: ord(character) != arguments
    if op is codes.ANY:
        return lambda character: character != "\n" or bool(flags & re.DOTALL)
    negate = arguments[0][0] is codes.NEGATE
    return lambda character: any(_in(item, character) for item in arguments) is not negate


def _in(item: Any, character: str) -> bool:
    kind, value = item
    if kind is codes.LITERAL:
        return ord(character) == int(value)
    if kind is codes.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    if kind is codes.CATEGORY:
        category = NOT_CATEGORIES.get(value)
        if category is not None:
            return not CATEGORIES[category](character)
        return CATEGORIES[value](character)
    return False
