"""Axes: from numbers to places, and sensible numbers to write beside them."""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass

LARGEST_PLAIN, SMALLEST_PLAIN = 1e7, 1e-4
"""Outside of these, numbers are written with an exponent."""
MOST_DECIMALS = 10
LARGEST = sys.float_info.max


@dataclass(frozen=True)
class Scale:
    """The numbers from low to high, low < high. whole: they count something."""

    low: float
    high: float
    whole: bool = False

    def place(self, value: float, size: int) -> int:
        """Where the value stands among `size` places, from 0."""
        # Halved, because the difference of two floats may be no float any more.
        share = (value / 2 - self.low / 2) / (self.high / 2 - self.low / 2)
        return min(max(round(share * (size - 1)), 0), size - 1)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """At most `most` + 1 round numbers of the range, and how they are written."""
        step = self._step(max(most, 1))
        if step is None:
            return []
        first, last = math.ceil(self.low / step), math.floor(self.high / step)
        if last - first > most:
            return []
        values = [n * step for n in range(first, last + 1)]
        texts = [self._written(value, step) for value in values]
        # Where floats are too coarse for the step, neighbours would look the same.
        return list(zip(values, texts, strict=True)) if len(set(texts)) == len(texts) else []

    def _step(self, most: int) -> float | None:
        raw = self.high / most - self.low / most
        if not 1e-300 < raw < 1e300:
            return None
        power = 10.0 ** math.floor(math.log10(raw))
        round_ones = (1.0, 2.0, 5.0) if self.whole else (1.0, 2.0, 2.5, 5.0)
        step = next((m * power for m in round_ones if m * power >= raw), 10 * power)
        return max(1.0, step) if self.whole else step

    def _written(self, value: float, step: float) -> str:
        largest = max(abs(self.low), abs(self.high))
        # 2.5 needs a digit more than 2.
        exponent = math.floor(math.log10(step) + 1e-9)
        exponent -= f"{step:e}".startswith("2.5")
        if largest >= LARGEST_PLAIN or largest < SMALLEST_PLAIN:
            digits = max(0, math.floor(math.log10(largest)) - exponent)
            return short_exponent(f"{value:.{min(digits, MOST_DECIMALS)}e}") if value else "0"
        text = f"{value:.{min(max(0, -exponent), MOST_DECIMALS)}f}"
        return text.lstrip("-") if not float(text) else text


def scale_of(values: Iterable[float], *, whole: bool = False) -> Scale | None:
    """The scale that holds these values, with room around a single one; None if there is none."""
    numbers = list(values)
    if not numbers:
        return None
    low, high = min(numbers), max(numbers)
    if high / 2 - low / 2 <= max(abs(low), abs(high)) * 1e-15:
        room = max(abs(low) * 0.1, 1.0 if whole or not low else 1e-290)
        low, high = max(low - room, -LARGEST), min(high + room, LARGEST)
    return Scale(low, high, whole)


def written(value: float) -> str:
    """One number, to about four digits."""
    if value == int(value) and abs(value) < LARGEST_PLAIN:
        return str(int(value))
    return short_exponent(f"{value:.4g}")


def short_exponent(text: str) -> str:
    """1e-05 as 1e-5."""
    mantissa, _, exponent = text.partition("e")
    return f"{mantissa}e{int(exponent)}" if exponent else text
