"""What stands behind a line of the learner's code."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from tensortutor.protocol.lens import Line, Made, Trace

SIGNS = {
    "broadcast": "⇔", "copy": "copy", "view": "view", "device": "device", "dtype": "dtype",
    "detached": "detached", "nan": "NaN", "inf": "Inf",
}  # fmt: skip
"""Signs of the marks, short enough for a line's end; `Mark.text` has the words."""
WORTH_WORDS = ("broadcast", "device", "dtype", "nan", "inf", "detached")


def note(line: Line, before: Sequence[str] = ()) -> str:
    """`x: f32[64, 1] ⇔  y: f32[64]  ×20`: what the line made, its marks, and how often.

    `first 64` where it was executed more often, and no more than that was followed. before: the
    words of what it made in the last run, "" where that is not known.
    """
    earlier = (*before, *[""] * len(line.made))
    made = "  ".join(part(one, was) for one, was in zip(line.made, earlier, strict=False))
    often = f"  ×{line.count:,}" if line.count > 1 else ""
    if line.first_only:
        often = f"  first {line.count:,}"
    return f"{made}{often}"


def part(made: Made, before: str = "") -> str:
    """`x: f32[64, 1] copy`; `→ f32[64, 1]` for what a function gave back. before: what it was in
    the last run: `x: was f32[64], now f32[64, 1]`."""
    name = f"→{made.name.removeprefix('return')}" if made.how == "returned" else f"{made.name}:"
    signs = dict.fromkeys(SIGNS.get(mark.kind, mark.kind) for mark in made.marks)
    was = [f"was {before}, now"] if before not in ("", made.words) else []
    return " ".join((name, *was, made.words, *signs))


def remarks(line: Line, how_to_follow: str = "") -> Iterator[str]:
    """What the marks of a line say, as far as it is not plain from their signs.

    how_to_follow: what to do to have all executions of a line followed; "": that is not said.
    """
    for made in line.made:
        for mark in made.marks:
            if mark.kind in WORTH_WORDS:
                name = "" if mark.kind == "broadcast" or made.how == "returned" else made.name
                yield f"{name}: {mark.text}" if name else mark.text
    if line.first_only and how_to_follow:
        yield f"not followed past pass {line.count:,}; {how_to_follow}"


def notes(trace: Trace, before: Mapping[str, Sequence[str]] | None = None) -> dict[int, str]:
    """The notes by the number of the statement's last line, where they are to stand.

    before: what each name held in the last run, in the order of the lines that made it. Where a
    name is made by more lines than then, or by fewer, it is not known which is which, and nothing
    is said.
    """
    found: dict[int, str] = {}
    earlier = dict(before or {})
    counts = Counter(made.name for line in trace.lines for made in line.made)
    waiting = {name: iter(words) for name, words in earlier.items() if len(words) == counts[name]}
    for line in trace.lines:
        text = note(line, [next(waiting.get(made.name, iter(())), "") for made in line.made])
        first = found.get(line.end_line)
        found[line.end_line] = f"{first}  {text}" if first else text
    return found
