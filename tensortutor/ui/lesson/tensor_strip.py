"""One tensor in one line: its name, its values as colours, their range, what is not finite."""

import math

from textual.content import Content

from tensortutor.drawing.colours import NOT_FINITE, palette
from tensortutor.lens.tables import full_name, number
from tensortutor.protocol.lens import TensorInfo
from tensortutor.ui.outside import OutsideText

CELLS = 24
"""Values shown, evenly chosen where the sample has more."""
SHADES = "\u2591\u2592\u2593\u2588"
"""From low to high, where there are no colours."""


def strip(one: TensorInfo, colours: bool) -> Content:
    """What stands in the frame below the code; only the name where no values are known."""
    parts = [OutsideText(full_name(one)).title, Content(f" {OutsideText(one.words).line}")]
    stats = one.stats
    values = _values(one)
    if stats is None or stats.minimum is None or stats.maximum is None:
        low = high = 0.0
    else:
        low, high = stats.minimum, stats.maximum
    if values:
        parts += [Content("  "), *(_cell(value, low, high, colours) for value in values)]
    if stats is not None:
        if stats.minimum is not None:
            parts.append(Content(f"  {number(low)} to {number(high)}"))
        for count, what in ((stats.nan, "NaN"), (stats.inf, "Inf")):
            if count:
                parts.append(Content.styled(f"  {count:,} {what}", "bold $text-error"))
    return Content("").join(parts)


def _values(one: TensorInfo) -> list[float]:
    """Some of its values, in their order; none of a tensor that has no order (complex)."""
    if one.sample is None:
        return []
    try:
        values = [float(value) for value in one.sample.values]
    except ValueError:
        return []
    count = len(values)
    if count <= CELLS:
        return values
    return [values[index * (count - 1) // (CELLS - 1)] for index in range(CELLS)]


def _cell(value: float, low: float, high: float, colours: bool) -> Content:
    """One value between the least and the largest one; what is not finite is a question mark."""
    if not math.isfinite(value):
        red, green, blue = NOT_FINITE
        return Content.styled("?", f"rgb({red},{green},{blue})")
    # Values and range were rounded, each for itself: one may lie beside the other.
    share = min(max((value - low) / (high - low), 0.0), 1.0) if high > low else 0.5
    if not colours:
        return Content(SHADES[min(int(share * len(SHADES)), len(SHADES) - 1)])
    red, green, blue = palette(low, high)[round(share * 255)]
    return Content.styled("\u2588", f"rgb({red},{green},{blue})")
