"""Many values as few points that look the same: the extremes of each stretch are kept."""

import math
from collections.abc import Sequence
from itertools import islice, pairwise

from tensortutor.protocol.drawings import LONGEST_WORDS, Series

MOST_POINTS = 512
"""Points of a series that are sent: more than a terminal is wide in dots."""
DIGITS = 7
"""Significant digits that are sent."""


def series(
    label: str, style: str, xs: Sequence[float] | None, ys: list[float],
    low: list[float] | None = None, high: list[float] | None = None,
) -> Series:  # fmt: skip
    """The series of these values. xs: None for 0, 1, 2, ... low, high: the ends of a band."""
    xs = range(len(ys)) if xs is None else xs
    sound = math.isfinite(sum(ys))
    isfinite = math.isfinite
    bad = [] if sound else [i for i, y in enumerate(ys) if not isfinite(y)]
    if not isinstance(xs, range) and not isfinite(sum(xs)):
        # Without a place on the axis a point cannot be drawn.
        places = [i for i, x in enumerate(xs) if isfinite(x)]
        xs, ys = [xs[i] for i in places], [ys[i] for i in places]
        low, high = (None if b is None else [b[i] for i in places] for b in (low, high))
        bad = [i for i, y in enumerate(ys) if not isfinite(y)]
    kept = downsampled_indices(xs, ys, has_gaps=bool(bad), low=low, high=high)
    counted = isinstance(xs, range)
    return Series(
        label[:LONGEST_WORDS], tuple(float(xs[i]) if counted else short(xs[i]) for i in kept),
        tuple(short(ys[i]) if isfinite(ys[i]) else None for i in kept), style, len(ys),
        nan=sum(ys[i] != ys[i] for i in bad), inf=sum(math.isinf(ys[i]) for i in bad),
        first=short(xs[bad[0]]) if bad else 0.0,
        low=band_end(low, kept), high=band_end(high, kept),
    )  # fmt: skip


def band_end(values: list[float] | None, kept: list[int]) -> tuple[float | None, ...]:
    """One end of a band at the points that are kept."""
    chosen = [] if values is None else [values[i] for i in kept]
    return tuple(short(value) if math.isfinite(value) else None for value in chosen)


def short(value: float) -> float:
    """The number without the digits that nobody sees; what JSON needs for it is halved."""
    return float(f"{value:.{DIGITS}g}")


def downsampled_indices(
    xs: Sequence[float], ys: list[float], *, has_gaps: bool,
    low: list[float] | None = None, high: list[float] | None = None,
) -> list[int]:  # fmt: skip
    """The indices of at most MOST_POINTS values, in order: the ends and each stretch's extremes."""
    if len(ys) <= MOST_POINTS:
        return list(range(len(ys)))
    # Where x runs back and forth, its extremes matter as much as those of y.
    winds = not isinstance(xs, range) and any(a > b for a, b in pairwise(xs))
    has_band = low is not None and high is not None
    stretches = (MOST_POINTS - 2) // (2 + 2 * winds + has_gaps + 2 * has_band)
    kept = {0, len(ys) - 1}
    for number in range(stretches):
        start, end = (len(ys) * n // stretches for n in (number, number + 1))
        part = ys[start:end]
        sound = part
        if has_gaps and not math.isfinite(sum(part)):
            gaps = (i for i, y in enumerate(part) if not math.isfinite(y))
            kept |= {start + i for i in islice(gaps, 1)}
            sound = [y for y in part if math.isfinite(y)]
        if sound:
            kept |= {start + part.index(min(sound)), start + part.index(max(sound))}
        if low is not None and high is not None:
            kept.add(min(range(start, end), key=low.__getitem__))
            kept.add(max(range(start, end), key=high.__getitem__))
        if winds:
            across = xs[start:end]
            kept |= {start + across.index(min(across)), start + across.index(max(across))}
    return sorted(kept)
