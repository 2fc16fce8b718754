"""Judges lessons/14_performance/04_profiler.md."""

from collections import defaultdict
from itertools import pairwise

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "A trace, as p.export_chrome_trace writes it",
    "It knows no self time: that is computed",
)

OWN = (
    "For each call, subtract the durations of the calls directly inside it. Theirs hold what lies "
    "deeper already."
)
TOTAL = "Total time runs from the beginning of a call to its end, with all that lies inside."
NAMES = "Calls of one name share a row: their numbers are added."
ORDER = "Sort by start; of two calls that start together the longer one is the outer one."
TOUCH = "A call that ends when another begins holds nothing of it."
SHARED = (
    "A call may begin or end together with the one around it, and lies inside. Of two that begin "
    "together the longer one is the outer one."
)
SELF = "A call may lie inside one of its own name. It counts like any other, in total as well."
CLOSE = "All calls that have ended when a call begins are closed, not the last one alone."
COLUMNS = "A row is (calls, total, own), in this order."


def tree(rng, start, depth, names):
    """(events, end) of one call with random calls inside."""
    name = rng.choice(names)
    events, now = [], start + rng.randint(0, 3)
    if depth:
        for _ in range(rng.randint(1, 3)):
            inner, now = tree(rng, now, depth - 1, names)
            events += inner
            now += rng.randint(0, 3)
    end = now + rng.randint(1, 5)
    return [(name, start, end), *events], end


def right(events):
    """The rows by the definition: time minus the time of direct children."""
    table = {}
    for name, start, end in events:
        inside = [
            e for e in events if start <= e[1] and e[2] <= end and (e[1], e[2]) != (start, end)
        ]
        direct = [
            e
            for e in inside
            if not any(o[1] <= e[1] and e[2] <= o[2] and o[1:] != e[1:] for o in inside)
        ]
        own = end - start - sum(e[2] - e[1] for e in direct)
        row = table.get(name, (0, 0, 0))
        table[name] = (row[0] + 1, row[1] + end - start, row[2] + own)
    return table


def compare(answer, events, hint):
    got = answer.summarize(events)
    expect_true(isinstance(got, dict), "summarize does not return a dict", hint=NAMES)
    wanted = right(events)
    every = "Each name has a row, also where its calls have no time of their own."
    expect_equal(sorted(got), sorted(wanted), name="the names", hint=every)
    for name, (calls, total, own) in wanted.items():
        row = tuple(got[name])
        why = COLUMNS if row != (calls, total, own) and row == (calls, own, total) else hint
        expect_equal(row, (calls, total, own), name=f'the row of "{name}"', hint=why)


@check(
    "one call inside another",
    holds=[
        "a dict from each name to (calls, total, own)",
        "total is the sum of the durations of that name's calls.",
    ],
    both_sides=True,
)
def pair(answer, rng, device):
    a, b, c = rng.randint(1, 9), rng.randint(1, 9), rng.randint(1, 9)
    compare(answer, [("mm", 0, b)], TOTAL)
    compare(answer, [("matmul", 5, 5 + a + b + c), ("mm", 5 + a, 5 + a + b)], OWN)
    compare(answer, [("linear", 0, 90 + a), ("addmm", 12, 80), ("copy", 20, 25 + b)], OWN)
    compare(answer, [("g", 1, 3), ("g", 4, 6 + a)], NAMES)
    compare(answer, [("f", 0, 9), ("g", 1, 3), ("h", 4, 8), ("g", 10, 12 + a)], CLOSE)


@check("calls that touch", holds="One may end at the moment when the next begins.")
def touching(answer, rng, device):
    a, b = rng.randint(1, 9), rng.randint(1, 9)
    compare(answer, [("f", 0, a), ("g", a, a + b), ("h", a + b, 40)], TOUCH)
    compare(answer, [("f", 0, 20), ("g", 0, a), ("h", a, a + b)], SHARED)
    compare(answer, [("f", 0, 20), ("g", 0, a), ("h", a, 20)], SHARED)  # f has no own time


@check(
    "a name inside its own name",
    holds="own leaves out the time of calls inside, of the same name or another.",
    both_sides=True,
)
def recursion(answer, rng, device):
    a = rng.randint(1, 5)
    compare(answer, [("f", 0, 30 + a), ("f", 5, 20), ("f", 6, 8)], SELF)
    compare(answer, [("f", 0, 30 + a), ("g", 5, 20), ("f", 6, 8)], SELF)


@check(
    "three levels",
    holds="so of two calls one lies within the other, or they do not overlap",
    both_sides=True,
)
def levels(answer, rng, device):
    compare(answer, [("linear", 0, 100), ("addmm", 12, 95), ("copy", 20, 25)], OWN)
    compare(answer, [("a", 0, 50), ("b", 1, 40), ("c", 2, 30), ("d", 3, 9), ("e", 41, 44)], OWN)
    start, events = 0, []
    for _ in range(rng.randint(2, 4)):
        more, start = tree(rng, start, 3, "abcdefgh")
        events += more
        start += rng.randint(1, 4)
    compare(answer, unique(events), OWN)


def unique(events):
    """Without calls of the same start and end, which the task excludes."""
    seen, kept = set(), []
    for event in events:
        if event[1:] not in seen:
            seen.add(event[1:])
            kept.append(event)
    return kept


@check(
    "any order, and none at all",
    holds=["The list may be empty, and in any order.", "no two have the same start and end"],
    both_sides=True,
)
def order(answer, rng, device):
    none = answer.summarize([])
    expect_true(isinstance(none, dict), "no events: summarize does not return a dict", hint=NAMES)
    expect_equal(dict(none), {}, name="the result for no events")
    events = [("a", 0, 50), ("b", 0, 40), ("c", 0, 3), ("d", 10, 40), ("e", 44, 50), ("f", 60, 70)]
    for _ in range(4):
        rng.shuffle(events)
        compare(answer, list(events), ORDER)
    compare(answer, events[::-1], ORDER)


@check("the list stays as it is", holds="It stays as it is.")
def untouched(answer, rng, device):
    events = [("b", 5, 9), ("a", 0, 10), ("c", 6, 7)]
    before = list(events)
    answer.summarize(events)
    expect_equal(events, before, name="the list of events", hint="sorted() makes a new list.")


def summary(events, closed=lambda end, start: end <= start, key=lambda e: (e[1], -e[2])):
    """The solution with two of its decisions to be replaced by wrong ones."""
    table, stack = {}, []
    for name, start, end in sorted(events, key=key):
        while stack and closed(stack[-1][1], start):
            stack.pop()
        if stack:
            table[stack[-1][0]][2] -= end - start
        row = table.setdefault(name, [0, 0, 0])
        row[0] += 1
        row[1] += end - start
        row[2] += end - start
        stack.append((name, end))
    return {name: tuple(row) for name, row in table.items()}


@mutant("takes total for own", caught_by=pair)
def summarize(events):
    table = {}
    for name, start, end in events:
        calls, total, own = table.get(name, (0, 0, 0))
        table[name] = (calls + 1, total + end - start, own + end - start)
    return table


@mutant("subtracts everything that lies inside", caught_by=levels)
def summarize(events):
    table = {}
    for name, start, end in events:
        inside = [e for e in events if start <= e[1] and e[2] <= end and e[1:] != (start, end)]
        own = end - start - sum(e[2] - e[1] for e in inside)
        calls, total, before = table.get(name, (0, 0, 0))
        table[name] = (calls + 1, total + end - start, before + own)
    return table


@mutant("keeps the last call of a name", caught_by=pair)
def summarize(events):
    return {name: (1, row[1], row[2]) for name, row in summary(events).items()}


@mutant("takes a call that touches for one inside", caught_by=touching)
def summarize(events):
    return summary(events, closed=lambda end, start: end < start)


@mutant("expects the list in order", caught_by=order)
def summarize(events):
    return summary(events, key=lambda e: 0)


@mutant("sorts by start alone", caught_by=order)
def summarize(events):
    return summary(events, key=lambda e: e[1])


@mutant("sorts by start and end", caught_by=order)
def summarize(events):
    return summary(events, key=lambda e: e[1:])


@mutant("closes one call at most", caught_by=levels)
def summarize(events):
    table, stack = {}, []
    for name, start, end in sorted(events, key=lambda e: (e[1], -e[2])):
        if stack and stack[-1][1] <= start:
            stack.pop()
        if stack:
            table[stack[-1][0]][2] -= end - start
        row = table.setdefault(name, [0, 0, 0])
        row[0] += 1
        row[1] += end - start
        row[2] += end - start
        stack.append((name, end))
    return {name: tuple(row) for name, row in table.items()}


@mutant("leaves calls inside their own name out", caught_by=recursion)
def summarize(events):
    def outer(e):
        return not any(
            o[0] == e[0] and o[1] <= e[1] and e[2] <= o[2] and o[1:] != e[1:] for o in events
        )

    return summary([e for e in events if outer(e)])


@mutant("puts own before total", caught_by=pair)
def summarize(events):
    return {name: (row[0], row[2], row[1]) for name, row in summary(events).items()}


@mutant("counts a call inside its own name once in total", caught_by=recursion)
def summarize(events):
    total = {}
    for name, start, end in events:
        around = (o for o in events if o[0] == name and o[1:] != (start, end))
        if not any(o[1] <= start and end <= o[2] for o in around):
            total[name] = total.get(name, 0) + end - start
    return {name: (row[0], total[name], row[2]) for name, row in summary(events).items()}


@mutant("asks for a call inside to begin later", caught_by=touching)
def summarize(events):
    own = [end - start for _, start, end in events]
    for _, start, end in events:
        around = [(e - s, j) for j, (_, s, e) in enumerate(events) if s < start and end < e]
        if around:
            own[min(around)[1]] -= end - start
    table = {}
    for (name, start, end), time in zip(events, own, strict=True):
        row = table.get(name, (0, 0, 0))
        table[name] = (row[0] + 1, row[1] + end - start, row[2] + time)
    return table


@mutant("leaves out names without a time of their own", caught_by=touching)
def summarize(events):
    return {name: row for name, row in summary(events).items() if row[2]}


@mutant("sorts the caller's list", caught_by=untouched)
def summarize(events):
    events.sort(key=lambda e: (e[1], -e[2]))
    return summary(events)


@hinted(1, reaches=recursion)
def summarize(events):
    return right(events)


@accepted("recurses over a sorted list")
def summarize(events):
    rest = sorted(events, key=lambda e: (e[1], -e[2]))
    table = {}

    def take(until):
        spent = 0
        while rest and rest[0][1] < until:
            name, start, end = rest.pop(0)
            inside = take(end)
            calls, total, own = table.get(name, (0, 0, 0))
            table[name] = (calls + 1, total + end - start, own + end - start - inside)
            spent += end - start
        return spent

    take(float("inf"))
    return table


@accepted("looks for the smallest call around each")
def summarize(events):
    own = [end - start for _, start, end in events]
    for i, (_, start, end) in enumerate(events):
        around = [
            j
            for j, (_, s, e) in enumerate(events)
            if j != i and s <= start and end <= e and (s, e) != (start, end)
        ]
        if around:
            parent = min(around, key=lambda j: events[j][2] - events[j][1])
            own[parent] -= end - start
    table = {}
    for (name, start, end), time in zip(events, own):
        row = table.get(name, (0, 0, 0))
        table[name] = (row[0] + 1, row[1] + end - start, row[2] + time)
    return table


@accepted("walks through the moments, and returns a defaultdict")
def summarize(events):
    moments = sorted({moment for event in events for moment in event[1:]})
    table = defaultdict(lambda: (0, 0, 0))
    for name, start, end in events:
        calls, total, own = table[name]
        table[name] = calls + 1, total + end - start, own
    for begin, end in pairwise(moments):
        running = [e for e in events if e[1] <= begin and end <= e[2]]
        if running:
            name = min(running, key=lambda e: e[2] - e[1])[0]
            calls, total, own = table[name]
            table[name] = calls, total, own + end - begin
    return table


equivalent(
    "return {name: tuple(row) for name, row in table.items()}",
    "return {name: row for name, row in table.items()}",
    because="A list of the same three numbers is accepted.",
)
