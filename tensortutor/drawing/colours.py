"""Colours for values: bright for large ones, and about zero two colours that part."""

from functools import cache

from tensortutor.drawing.spans import RGB

# Points of matplotlib's viridis: brightness grows evenly, so it reads without colours as well.
SEQUENTIAL: tuple[RGB, ...] = (
    (68, 1, 84), (71, 44, 122), (59, 81, 139), (44, 113, 142), (33, 144, 141), (39, 173, 129),
    (92, 200, 99), (170, 220, 50), (253, 231, 37),
)  # fmt: skip
DIVERGING: tuple[RGB, ...] = (
    (120, 200, 255), (60, 130, 220), (35, 70, 140), (24, 28, 36), (140, 60, 30), (220, 120, 50),
    (255, 205, 130),
)  # fmt: skip
"""Blue below zero, dark at zero, orange above."""
CLASSES: tuple[RGB, ...] = (
    (86, 180, 233), (230, 159, 0), (0, 158, 115), (204, 121, 167), (240, 228, 66), (0, 114, 178),
    (213, 94, 0), (153, 153, 153),
)  # fmt: skip
"""Okabe and Ito's colours, which those who do not tell red from green can tell apart."""
NOT_FINITE: RGB = (255, 0, 170)
RAMP = " .:-=+*#%@"


@cache
def palette(low: float, high: float) -> tuple[RGB, ...]:
    """The colours of 256 values from low to high."""
    values = [low * (1 - n / 255) + high * (n / 255) for n in range(256)]
    if low < 0 < high:
        most = max(-low, high)
        return tuple(between(DIVERGING, (value / most + 1) / 2) for value in values)
    return tuple(between(SEQUENTIAL, n / 255) for n in range(256))


def between(points: tuple[RGB, ...], share: float) -> RGB:
    """The colour at this share, from 0 to 1, of the way along the points."""
    place = min(max(share, 0.0), 1.0) * (len(points) - 1)
    first = min(int(place), len(points) - 2)
    rest = place - first
    a, b = points[first], points[first + 1]
    red, green, blue = (round(x + (y - x) * rest) for x, y in zip(a, b, strict=True))
    return red, green, blue


def darker(colour: RGB, share: float = 0.55) -> RGB:
    """The colour as a ground for signs that are light."""
    red, green, blue = (round(part * share) for part in colour)
    return red, green, blue


def brightness(colour: RGB) -> float:
    """From 0 to 1, as the eye weighs the three."""
    red, green, blue = colour
    return (0.299 * red + 0.587 * green + 0.114 * blue) / 255
