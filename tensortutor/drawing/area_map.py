"""A map of areas as rows of text: colours behind dots, or signs where there are no colours."""

from collections.abc import Sequence

from tensortutor.drawing.canvas import BRAILLE, COARSE, Canvas
from tensortutor.drawing.colours import CLASSES, NOT_FINITE, darker, palette
from tensortutor.drawing.picture import BROKEN, UPPER, pixels_of
from tensortutor.drawing.plot import (
    ASCII_FRAME,
    FRAME,
    Cell,
    draw,
    level_axis,
    sign_of,
    upward_place,
)
from tensortutor.drawing.png import Pixels
from tensortutor.drawing.scale import Scale, written
from tensortutor.drawing.spans import RGB, Look, Row, Span, clean, clip, text_of, width_of, wrap
from tensortutor.protocol.drawings import AreaMap, Series

NATURAL_ROWS = 24
LEAST_ROWS, LEAST_COLUMNS, ROOMY_ROWS = 4, 12, 7
NO_AREA = -1
BAND_LETTERS = "0123456789abcdef"
"""What a band is called where there are no colours."""
LINE, ASCII_LINE = "·", "."
LETTER_EVERY = 7
"""A contour line has its letter every so many columns, and is thin between: paths stand out."""
COARSER = 2
"""Bands that are drawn as one where there are no colours: lines need room between them."""
TEXTURES = " .:-=~_'`,;!|/^\""
"""What fills the region of a class where there are no colours."""
START = "S"
LIGHT: tuple[RGB, ...] = (
    (255, 255, 255), (255, 190, 90), (110, 220, 255), (255, 140, 160), (160, 255, 160),
    (230, 180, 255), (255, 255, 130), (200, 200, 200),
)  # fmt: skip
"""Colours of paths: all are seen on dark bands."""

Areas = list[list[int]]
Marks = dict[Cell, tuple[str, int]]


def area_map_rows(
    area_map: AreaMap, width: int, height: int, look: Look, *, titled: bool = True
) -> list[Row]:
    """At most `height` rows of at most `width` cells, words included."""
    width, height = max(width, 1), max(height, 1)
    title = clip(clean(area_map.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    try:
        pixels = pixels_of(area_map.png)
    except ValueError as error:
        return [*head, [Span(clip(f"{BROKEN}: {error}.", width), dim=True)]][:height]
    legend = legend_rows(area_map, width, look)
    if head and len(legend) == 1 and width_of(text_of([*head[0], *legend[0]])) + 3 <= width:
        head, legend = [[*head[0], Span("   "), *legend[0]]], []
    scale = [level_row(area_map, width, look)] if area_map.kind == "contour" else []
    words = remarks(area_map, look)
    tail: list[Row] = [[Span(line, dim=True)] for line in wrap(words, width)]
    room = height - 2 - (ROOMY_ROWS if height >= ROOMY_ROWS + 6 else LEAST_ROWS)
    head = head[: max(room, 0)]
    legend = legend[: max(room - len(head), 0)]
    scale = scale[: max(room - len(head) - len(legend), 0)]
    tail = tail[: max(room - len(head) - len(legend) - len(scale), 0)]
    rows = height - len(head) - len(legend) - len(scale) - len(tail)
    return [*head, *legend, *field_rows(area_map, pixels, width, rows, look), *scale, *tail]


def remarks(area_map: AreaMap, look: Look) -> list[str]:
    """The caption, and what is left out."""
    words = clean(area_map.caption, look).split()
    if area_map.left_out:
        words += f"({area_map.left_out} more paths are not drawn)".split()
    return words


def legend_rows(area_map: AreaMap, width: int, look: Look) -> list[Row]:
    """What the signs and colours of points and paths mean."""
    entries: list[Row] = []
    for number, series in enumerate(area_map.series):
        name = clean(series.label, look)
        fore = overlay_colour(area_map, number) if look.colour and look.unicode else None
        # On the page's own ground, which may be light, the colour of the area is behind the sign.
        back = None if fore is None else area_colour(area_map, number)
        sign = sign_of(number, look)
        if area_map.kind == "regions":
            texture = "" if back else f" {texture_words(number)}"
            entries.append([Span(f" {sign} ", number, fore=fore, back=back),
                            Span(f" class {name}"), Span(texture, dim=True)])  # fmt: skip
        elif name or len(area_map.series) > 1:
            ground = None if fore is None else darker(palette(0.0, 1.0)[60])
            entries.append([Span(f" {sign} ", number, fore=fore, back=ground),
                            Span(f" {name or f'path {number + 1}'}")])  # fmt: skip
    if area_map.kind == "contour" and area_map.series:
        entries.append([Span(f"{START} start", dim=True)])
    return flowed(entries, width)


def texture_words(number: int) -> str:
    """What fills the region of a class, in words."""
    texture = TEXTURES[number % len(TEXTURES)]
    return "(region blank)" if texture == " " else f"(region {texture * 3})"


def flowed(entries: Sequence[Row], width: int) -> list[Row]:
    """Entries beside each other, as many on a row as there is room."""
    rows: list[Row] = []
    taken = width
    for entry in entries:
        size = width_of(text_of(entry))
        if taken + 3 + size > width:
            rows.append([])
            taken = 0
        elif taken:
            rows[-1].append(Span("   "))
            taken += 3
        rows[-1] += entry if size <= width else [Span(clip(text_of(entry), width))]
        taken += size
    return rows


def level_row(area_map: AreaMap, width: int, look: Look) -> Row:
    """The levels between the bands; of more levels than fit, every so manyth is named.

    With colours the bands stand beside them, without the letters of the lines.
    """
    coloured = look.colour and look.unicode
    levels = area_map.levels if coloured else area_map.levels[COARSER - 1 :: COARSER]
    texts = [written(level) for level in levels]
    for every in range(1, len(levels) + 2):
        named = [n for n in range(len(levels)) if (len(levels) - 1 - n) % every == 0]
        row: Row = []
        for number in range(len(levels) + 1) if coloured else ():
            row.append(Span("  ", back=area_colour(area_map, number)))
            row += [Span(f" {texts[number]} ", dim=True)] if number in named else []
        if not coloured and named:
            words = ", ".join(f"{band_letter(n + 1)} at {texts[n]}" for n in named)
            row = [Span(f"lines: {words}", dim=True)]
        if width_of(text_of(row)) <= width:
            return row
    return []


def field_rows(area_map: AreaMap, pixels: Pixels, width: int, height: int, look: Look) -> list[Row]:
    """The areas, what lies over them, and the axes."""
    across = Scale(area_map.low_x, area_map.high_x)
    upward = Scale(area_map.low_y, area_map.high_y)
    ticks = upward.ticks(max((height - 2) // 2, 1))
    margin = max((len(text) for _, text in ticks), default=0)
    has_axes = width - margin - 1 >= LEAST_COLUMNS and height - 2 >= LEAST_ROWS
    columns, rows = (width - margin - 1, height - 2) if has_axes else (width, height)
    columns, rows = max(columns, 1), max(rows, 1)
    coloured = look.colour and look.unicode
    canvas = Canvas(columns, rows, BRAILLE if coloured else COARSE)
    marks = overlay(area_map, canvas, across, upward, look)
    if coloured:
        areas = sampled(pixels, columns, 2 * rows)
        field = [coloured_row(area_map, areas, canvas, marks, row) for row in range(rows)]
    else:
        areas = sampled(pixels, columns, rows)
        field = [plain_row(area_map, areas, canvas, marks, row, look) for row in range(rows)]
    if not has_axes:
        return field
    frame = FRAME if look.unicode else ASCII_FRAME
    down = canvas.dots.down
    places = {upward_place(upward, value, canvas) // down: text for value, text in ticks}
    framed: list[Row] = [
        [Span(places.get(row, "").rjust(margin) + frame[row in places], dim=True), *cells]
        for row, cells in enumerate(field)
    ]
    below = [
        (across.place(value, canvas.width) // canvas.dots.across, text)
        for value, text in across.ticks(max(columns // 10, 1))
    ]
    return framed + level_axis(columns, below, margin, frame)


def sampled(pixels: Pixels, columns: int, rows: int) -> Areas:
    """The number of the area at each place, NO_AREA where there is none."""
    step, data = pixels.channels, pixels.data
    across = [(2 * n + 1) * pixels.width // (2 * columns) for n in range(columns)]
    areas: Areas = []
    for row in range(rows):
        start = (2 * row + 1) * pixels.height // (2 * rows) * pixels.width
        places = [(start + column) * step for column in across]
        areas.append([
            NO_AREA if step in (2, 4) and not data[at + step - 1] else data[at] for at in places
        ])  # fmt: skip
    return areas


def overlay(area_map: AreaMap, canvas: Canvas, across: Scale, upward: Scale, look: Look) -> Marks:
    """Put paths and points on the canvas. Returns the signs to set over its cells."""
    wide, down = canvas.dots.across, canvas.dots.down

    def cell(series: Series, at: int) -> Cell:
        x, y = series.xs[at], series.ys[at] or 0.0
        return across.place(x, canvas.width) // wide, upward_place(upward, y, canvas) // down

    marks = draw(area_map.series, canvas, across, upward, look)
    for number, series in enumerate(area_map.series):
        known = [n for n, y in enumerate(series.ys) if y is not None]
        if series.style == "points":
            marks |= {cell(series, n): (sign_of(number, look), number) for n in known}
        elif known:
            marks[cell(series, known[-1])] = (sign_of(number, look), number)
            marks[cell(series, known[0])] = (START, number)
    return marks


def coloured_row(area_map: AreaMap, areas: Areas, canvas: Canvas, marks: Marks, row: int) -> Row:
    """One row of cells in colour: two areas above each other, or a sign before one."""
    spans: Row = []
    for column in range(canvas.columns):
        upper, lower = (area_colour(area_map, areas[2 * row + n][column]) for n in (0, 1))
        text, owner = marks.get((column, row)) or canvas.cell(column, row)
        if owner >= 0:
            span = Span(text, fore=overlay_colour(area_map, owner), back=upper)
        else:
            span = Span(UPPER, fore=upper, back=lower)
        if spans and spans[-1][1:] == span[1:]:
            spans[-1] = spans[-1]._replace(text=spans[-1].text + span.text)
        else:
            spans.append(span)
    return spans


def plain_row(
    area_map: AreaMap, areas: Areas, canvas: Canvas, marks: Marks, row: int, look: Look
) -> Row:
    """One row of cells in signs: lines where bands begin, or the texture of each class."""
    spans: Row = []
    for column in range(canvas.columns):
        text, owner = marks.get((column, row)) or canvas.cell(column, row)
        if owner >= 0:
            text = text if (column, row) in marks else sign_of(owner, look)
        else:
            text = area_sign(area_map, areas, column, row, look)
        dim = owner < 0
        if spans and (spans[-1].series, spans[-1].dim) == (owner, dim):
            spans[-1] = spans[-1]._replace(text=spans[-1].text + text)
        else:
            spans.append(Span(text, owner, dim))
    return spans


def area_sign(area_map: AreaMap, areas: Areas, column: int, row: int, look: Look) -> str:
    """The sign of a place without anything on it."""
    area = areas[row][column]
    if area == NO_AREA:
        return "?"
    if area_map.kind == "regions":
        return TEXTURES[area % len(TEXTURES)]
    area //= COARSER
    beside = [
        areas[y][x] // COARSER
        for x, y in ((column - 1, row), (column + 1, row), (column, row - 1), (column, row + 1))
        if 0 <= y < len(areas) and 0 <= x < len(areas[y])
    ]
    if not any(NO_AREA < other < area for other in beside):
        return " "
    if (column + 3 * row) % LETTER_EVERY == 0:
        return band_letter(area)
    return LINE if look.unicode else ASCII_LINE


def band_letter(number: int) -> str:
    """What a band is called."""
    return BAND_LETTERS[number % len(BAND_LETTERS)]


def area_colour(area_map: AreaMap, number: int) -> RGB:
    """The colour of an area."""
    if number == NO_AREA:
        return NOT_FINITE
    if area_map.kind == "regions":
        return darker(CLASSES[number % len(CLASSES)])
    return darker(palette(0.0, 1.0)[min(number * 255 // max(len(area_map.levels), 1), 255)])


def overlay_colour(area_map: AreaMap, number: int) -> RGB:
    """The colour of a path, or of the points of a class."""
    if area_map.kind == "regions":
        red, green, blue = CLASSES[number % len(CLASSES)]
        return (red + 255) // 2, (green + 255) // 2, (blue + 255) // 2
    return LIGHT[number % len(LIGHT)]
