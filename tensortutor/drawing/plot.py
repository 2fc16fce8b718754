"""A plot as rows of text: curves in dots, axes with round numbers, a legend by sign."""

from collections.abc import Sequence
from itertools import pairwise

from tensortutor.drawing.canvas import ASCII, BRAILLE, COARSE, Canvas, Dots
from tensortutor.drawing.scale import Scale, scale_of, written
from tensortutor.drawing.spans import Look, Row, Span, clean, clip, text_of, width_of, wrap
from tensortutor.protocol.drawings import Plot, Series

Cell = tuple[int, int]
"""A column and a row."""
SIGNS, ASCII_SIGNS = "●○▲△■□◆◇", "*+ox#@%&"
BANDS, ASCII_BANDS = "░▒", "-=~_"
FILLINGS = frozenset(BANDS + ASCII_BANDS)
FRAME, ASCII_FRAME = "│┤└─┬", "|++-+"
"""Upright, a tick on it, the corner, the level line, a tick on that."""
NOTHING = "no numbers to draw yet"
EARLIER = 10_000
"""The owner of dots of earlier curves on a canvas; those of this plot are numbered from 0."""
EARLIER_SIGN, ASCII_EARLIER_SIGN = "⠒", "."
MOST_SHRINKING = 2
"""Earlier curves may make the range of the numbers upward so many times as large, not more."""
LEAST_ROWS, LEAST_COLUMNS = 3, 8
"""Of the field of dots; words and axes give way to it."""


def plot_rows(
    plot: Plot,
    width: int,
    height: int,
    look: Look,
    *,
    titled: bool = True,
    earlier: Sequence[Series] = (),
) -> list[Row]:
    """At most `height` rows of at most `width` cells. titled: begin with the title, if it has one.

    earlier: curves of an earlier run, drawn dimmed behind. They may widen the axes, but where they
    would shrink this plot to less than half of its height they are cut off at its edges.

    Curves keep apart by a sign as well as by colour: it stands in the legend and here and there
    on the curve.
    """
    width, height = max(width, 1), max(height, 1)
    title = clip(clean(plot.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    curves = [one for one in earlier if one.style == "line"]
    legend = legend_rows(plot, width, look)
    if curves:
        legend = with_earlier(legend, width, look)
    if head and len(legend) == 1 and width_of(text_of([*head[0], *legend[0]])) + 3 <= width:
        head, legend = [[*head[0], Span("   "), *legend[0]]], []
    tail = [[Span(line, dim=True)] for line in wrap(remarks(plot, look), width)]
    room = height - 2 - LEAST_ROWS
    # What is most worth its rows comes first.
    head = head[: max(room, 0)]
    tail = tail[: max(room - len(head), 0)]
    legend = legend[: max(room - len(head) - len(tail), 0)]
    field = field_rows(plot, width, height - len(head) - len(legend) - len(tail), look, curves)
    return [*head, *legend, *field, *tail]


def legend_rows(plot: Plot, width: int, look: Look) -> list[Row]:
    """The series' signs, names and latest numbers."""
    rows: list[Row] = []
    taken = width
    for number, series in enumerate(plot.series):
        label = clean(series.label, look)
        last = next((y for y in reversed(series.ys) if y is not None), None)
        value = "" if last is None or series.style == "points" else written(last)
        if not label and len(plot.series) == 1:
            if value:
                text = f"last {value} at {written(series.xs[-1])}"
                rows.append([Span(clip(text, width), dim=True)])
            continue
        name = clip(label or f"series {number + 1}", max(width - len(value) - 3, 1))
        size = 2 + width_of(name) + (1 + len(value) if value else 0)
        if taken + 3 + size > width:
            rows.append([])
            taken = 0
        elif taken:
            rows[-1].append(Span("   "))
            taken += 3
        sign = Span(sign_of(number, look), number)
        rows[-1] += [sign, Span(f" {name}"), Span(f" {value}" if value else "", dim=True)]
        taken += size
        if series.low and taken + 7 <= width:
            rows[-1] += [Span(f" {band_sign(number, look)}", number), Span(" band", dim=True)]
            taken += 7
    return rows


def with_earlier(legend: list[Row], width: int, look: Look) -> list[Row]:
    """The legend, with a word about the dimmed curves."""
    sign = EARLIER_SIGN if look.unicode else ASCII_EARLIER_SIGN
    word = Span(f"{sign * 2} an earlier run", dim=True)
    if legend and width_of(text_of(legend[-1])) + 3 + width_of(word.text) <= width:
        return [*legend[:-1], [*legend[-1], Span("   "), word]]
    return [*legend, [word._replace(text=clip(word.text, width))]]


def sign_of(number: int, look: Look) -> str:
    """The sign of a series."""
    return (SIGNS if look.unicode else ASCII_SIGNS)[number % len(SIGNS)]


def remarks(plot: Plot, look: Look) -> list[str]:
    """What the picture cannot show, as words for `wrap`."""
    sentences = []
    for number, series in enumerate(plot.series):
        name = clean(series.label, look) or (f"series {number + 1}" if len(plot.series) > 1 else "")
        counts = [f"{n} {what}" for n, what in ((series.nan, "NaN"), (series.inf, "inf")) if n]
        if counts:
            found = f"{' and '.join(counts)} of {series.count} values"
            sentences.append(
                f"{name + ': ' if name else ''}{found}, first at {written(series.first)}."
            )
    if plot.left_out:
        sentences.append(f"{plot.left_out} more series are not drawn.")
    return " ".join(sentences).split()


def field_rows(
    plot: Plot, width: int, height: int, look: Look, earlier: Sequence[Series] = ()
) -> list[Row]:
    """The curves and their axes."""
    shown, behind = [known(one) for one in plot.series], [known(one) for one in earlier]
    xs = [x for points in (*shown, *behind) for x, _ in points]
    across = scale_of(xs, whole=all(x == int(x) for x in xs))
    ends = [y for one in plot.series for y in (*one.low, *one.high) if y is not None]
    upward = scale_of([*(y for points in shown for _, y in points), *ends])
    if across is None or upward is None:
        return [[Span(clip(NOTHING, width), dim=True)]]
    upward = widened(upward, [y for points in behind for _, y in points])
    ticks = upward.ticks(max((height - 2) // 2, 1))
    margin = max((len(text) for _, text in ticks), default=0)
    has_axes = width - margin - 1 >= LEAST_COLUMNS and height - 2 >= 2
    columns = width - margin - 1 if has_axes else width
    rows = height - 2 if has_axes else height
    canvas = Canvas(columns, rows, field_dots(plot, look) if not earlier else coarse(look))
    draw_earlier(earlier, canvas, across, upward)
    marks = bands(plot.series, canvas, across, upward, look)
    marks |= draw(plot.series, canvas, across, upward, look)
    field = [field_row(canvas, marks, row, look) for row in range(rows)]
    if not has_axes:
        return field
    frame = FRAME if look.unicode else ASCII_FRAME
    down = canvas.dots.down
    places = {upward_place(upward, value, canvas) // down: text for value, text in ticks}
    sides = [
        Span(places.get(row, "").rjust(margin) + frame[row in places], dim=True)
        for row in range(rows)
    ]
    framed = [[side, *cells] for side, cells in zip(sides, field, strict=True)]
    places_across = [
        (across.place(value, canvas.width) // canvas.dots.across, text)
        for value, text in across.ticks(max(columns // 10, 1))
    ]
    return framed + level_axis(columns, places_across, margin, frame)


def known(series: Series) -> list[tuple[float, float]]:
    """The points of a series that have a number."""
    return [(x, y) for x, y in zip(series.xs, series.ys, strict=True) if y is not None]


def widened(scale: Scale, values: Sequence[float]) -> Scale:
    """The scale with these values in it, as far as that leaves enough room for its own."""
    room = (scale.high / 2 - scale.low / 2) * MOST_SHRINKING
    low, high = min([scale.low, *values]), max([scale.high, *values])
    if high / 2 - low / 2 <= room:
        return Scale(low, high, scale.whole)
    return scale


def coarse(look: Look) -> Dots:
    """Dots for curves that must be told apart by their signs where there is no colour."""
    return BRAILLE if look.unicode else COARSE


def draw_earlier(curves: Sequence[Series], canvas: Canvas, across: Scale, upward: Scale) -> None:
    """Put earlier curves on an empty canvas, without the parts that the scale does not hold."""
    for series in curves:
        dots = [
            None if y is None or not upward.low <= y <= upward.high
            else (across.place(x, canvas.width), upward_place(upward, y, canvas))
            for x, y in zip(series.xs, series.ys, strict=True)
        ]  # fmt: skip
        for start, end in pairwise(dots):
            if start is not None and end is not None:
                canvas.line(start, end, EARLIER)


def field_dots(plot: Plot, look: Look) -> Dots:
    """What the curves are made of. ASCII has no dots fine enough for several."""
    if look.unicode:
        return BRAILLE
    return ASCII if len(plot.series) == 1 else COARSE


def upward_place(scale: Scale, value: float, canvas: Canvas) -> int:
    """The row of dots of a value, from the top."""
    return canvas.height - 1 - scale.place(value, canvas.height)


def bands(
    curves: Sequence[Series], canvas: Canvas, across: Scale, upward: Scale, look: Look
) -> dict[Cell, tuple[str, int]]:
    """The signs that fill the bands of the series, by cell."""
    cells: dict[Cell, tuple[str, int]] = {}
    wide, down = canvas.dots.across, canvas.dots.down
    for number, series in enumerate(curves):
        sign = band_sign(number, look)
        known = [
            (across.place(x, canvas.width), upward_place(upward, high, canvas) // down,
             upward_place(upward, low, canvas) // down)
            for x, low, high in zip(series.xs, series.low, series.high, strict=False)
            if low is not None and high is not None
        ]  # fmt: skip
        for (x0, top0, end0), (x1, top1, end1) in pairwise([*known[:1], *known]):
            for x in range(x0, x1 + 1):
                share = (x - x0) / ((x1 - x0) or 1)
                first = round(top0 + (top1 - top0) * share)
                last = round(end0 + (end1 - end0) * share)
                for row in range(min(first, last), max(first, last) + 1):
                    cells[x // wide, row] = (sign, number)
    return cells


def band_sign(number: int, look: Look) -> str:
    """The sign that fills the band of a series."""
    signs = BANDS if look.unicode else ASCII_BANDS
    return signs[number % len(signs)]


def draw(
    curves: Sequence[Series], canvas: Canvas, across: Scale, upward: Scale, look: Look
) -> dict[Cell, tuple[str, int]]:
    """Put the series on the canvas. Returns the signs to set over its cells."""
    marks: dict[Cell, tuple[str, int]] = {}
    many = len(curves)
    for number, series in enumerate(curves):
        dots = [
            None if y is None
            else (across.place(x, canvas.width), upward_place(upward, y, canvas))
            for x, y in zip(series.xs, series.ys, strict=True)
        ]  # fmt: skip
        if series.style == "line":
            for start, end in pairwise(dots):
                if start is not None and end is not None:
                    canvas.line(start, end, number)
        for x, y in filter(None, dots):
            canvas.upright(x, y, y, number)
        if many > 1:
            wide, down = canvas.dots.across, canvas.dots.down
            cells = {(x // wide, y // down) for x, y in filter(None, dots)}
            if series.style == "line":
                cells = few(canvas, number, many)
            marks |= dict.fromkeys(cells, (sign_of(number, look), number))
    return marks


def few(canvas: Canvas, number: int, many: int) -> set[Cell]:
    """Some cells of a curve, in other columns than those of the other curves."""
    apart = max(canvas.columns // 4, 2 * many)
    first = apart * (2 * number + 1) // (2 * many)
    path = canvas.paths.get(number, {})
    columns = (column for column in range(first, canvas.columns, apart) if column in path)
    return {(column, path[column]) for column in columns}


def field_row(canvas: Canvas, marks: dict[Cell, tuple[str, int]], row: int, look: Look) -> Row:
    """One row of cells, neighbours of one series as one span."""
    spans: Row = []
    for column in range(canvas.columns):
        text, owner = canvas.cell(column, row)
        over = marks.get((column, row))
        # The filling of a band stands behind the curves, a sign before them.
        if over is not None and (owner < 0 or over[0] not in FILLINGS):
            text, owner = over
        elif owner == EARLIER and canvas.dots is COARSE:
            text = ASCII_EARLIER_SIGN
        elif owner >= 0 and canvas.dots is COARSE:
            text = sign_of(owner, look)
        span = Span(text, -1, dim=True) if owner == EARLIER else Span(text, owner)
        if spans and spans[-1][1:] == span[1:]:
            spans[-1] = span._replace(text=spans[-1].text + text)
        else:
            spans.append(span)
    return spans


def level_axis(
    columns: int, ticks: Sequence[tuple[int, str]], margin: int, frame: str
) -> list[Row]:
    """The line below the field, and the numbers below that. ticks: by column, what it says."""
    line, numbers = [frame[3]] * columns, [" "] * columns
    free = 0
    for column, text in ticks:
        start = min(max(column - len(text) // 2, 0), columns - len(text))
        if start < free:
            continue  # it would run into its neighbour
        line[column] = frame[4]
        numbers[start : start + len(text)] = text
        free = start + len(text) + 1
    indent = " " * margin
    return [
        [Span(indent + frame[2] + "".join(line), dim=True)],
        [Span(f"{indent} {''.join(numbers)}".rstrip(), dim=True)],
    ]
