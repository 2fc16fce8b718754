"""A histogram as rows of text: one field of bars, or one for each series below each other."""

from collections.abc import Sequence
from itertools import pairwise

from tensortutor.drawing.plot import ASCII_FRAME, FRAME, level_axis
from tensortutor.drawing.scale import Scale, written
from tensortutor.drawing.spans import Look, Row, Span, clean, clip, width_of, wrap
from tensortutor.protocol.drawings import Bars, Histogram

EIGHTHS, ASCII_PARTS = " ▁▂▃▄▅▆▇█", " .:#"
"""From empty to full."""
NO_VALUES = "no finite value to count"
NATURAL_ROWS, NATURAL_ROWS_EACH = 14, 4
MOST_ROWS_EACH = 8


def histogram_rows(
    histogram: Histogram, width: int, height: int, look: Look, *, titled: bool = True
) -> list[Row]:
    """At most `height` rows of at most `width` cells. titled: begin with the title, if any."""
    width, height = max(width, 1), max(height, 1)
    title = clip(clean(histogram.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    tail: list[Row] = [[Span(line, dim=True)] for line in wrap(remarks(histogram, look), width)]
    room = height - 4
    head = head[: max(room, 0)]
    tail = tail[: max(room - len(head), 0)]
    rows = height - len(head) - len(tail)
    if len(histogram.edges) < 2 or not histogram.series:
        body: list[Row] = [[Span(clip(NO_VALUES, width), dim=True)]]
    elif len(histogram.series) == 1:
        body = one_field(histogram, width, rows, look)
    else:
        body = several_fields(histogram, width, rows, look)
    return [*head, *body, *tail][:height]


def natural_height(histogram: Histogram) -> int:
    """So many rows show it well."""
    many = len(histogram.series)
    return NATURAL_ROWS if many < 2 else 4 + many * NATURAL_ROWS_EACH


def remarks(histogram: Histogram, look: Look) -> list[str]:
    """What the bars do not say, as words for `wrap`."""
    sentences = []
    for bars in histogram.series:
        name = clean(bars.label, look)
        parts = [f"{n} {what}" for n, what in ((bars.nan, "NaN"), (bars.inf, "inf")) if n]
        outside = bars.count - bars.nan - bars.inf - sum(bars.counts)
        parts += [f"{outside} outside of the bins"] if outside > 0 and histogram.edges else []
        if len(histogram.series) == 1:
            summary = f"{bars.count} values"
            if bars.count > bars.nan + bars.inf:
                summary += f", mean {written(bars.mean)}, std {written(bars.std)}"
            sentences.append(f"{name + ': ' if name else ''}{', '.join([summary, *parts])}.")
        elif parts:
            sentences.append(f"{name}: {', '.join(parts)} of {bars.count} values.")
    if histogram.left_out:
        sentences.append(f"{histogram.left_out} more series are not drawn.")
    return " ".join(sentences).split()


def one_field(histogram: Histogram, width: int, height: int, look: Look) -> list[Row]:
    """One series with an axis of counts."""
    bars = histogram.series[0]
    most = max(bars.counts, default=0) or 1
    upward = Scale(0.0, float(most), whole=True)
    ticks = upward.ticks(max((height - 2) // 3, 1))
    margin = max((len(text) for _, text in ticks), default=0)
    has_axes = width - margin - 1 >= 8 and height >= 4
    columns = width - margin - 1 if has_axes else width
    rows = height - 2 if has_axes else height
    field = field_of(histogram.edges, bars, 0, columns, max(rows, 1), look)
    if not has_axes:
        return field
    frame = FRAME if look.unicode else ASCII_FRAME
    # A count stands in the row in which a bar of that height ends.
    places = {rows - max(-(-int(value) * rows // most), 1): text for value, text in ticks if value}
    framed: list[Row] = [
        [Span(places.get(row, "").rjust(margin) + frame[row in places], dim=True), *cells]
        for row, cells in enumerate(field)
    ]
    return framed + axis_below(histogram.edges, columns, margin, look)


def several_fields(histogram: Histogram, width: int, height: int, look: Look) -> list[Row]:
    """The series below each other, each as high as its own highest bar, on one axis."""
    many = len(histogram.series)
    rows = max(height - 2, many)
    each = min(max(rows // many, 1), MOST_ROWS_EACH)
    has_gap = each > 2
    words = [words_beside(bars, each - has_gap, look) for bars in histogram.series]
    margin = min(max(width_of(line) for lines in words for line in lines), max(width // 3, 1))
    columns = max(width - margin - 1, 1)
    result: list[Row] = []
    for number, bars in enumerate(histogram.series):
        field = field_of(histogram.edges, bars, number, columns, each - has_gap, look)
        for row, cells in enumerate(field):
            text = clip(words[number][row], margin) if row < len(words[number]) else ""
            pad = " " * (margin - width_of(text))
            name = Span(text + pad + " ", number if row == 0 else -1, dim=row > 0)
            result.append([name, *cells])
        if has_gap and number < many - 1:
            result.append([Span("")])
    return [*result, *axis_below(histogram.edges, columns, margin, look)]


def words_beside(bars: Bars, rows: int, look: Look) -> list[str]:
    """What stands left of the bars of one series, the most important first."""
    name = clean(bars.label, look) or "series"
    if bars.count <= bars.nan + bars.inf:
        return [name, "no finite value"][:rows]
    mean, std = f"mean {bars.mean:.3g}", f"std {bars.std:.3g}"
    lines = [name, std, mean, f"n {bars.count}"]
    return lines[:rows] if rows > 1 else [f"{name} {std}"]


def field_of(
    edges: Sequence[float], bars: Bars, number: int, columns: int, rows: int, look: Look
) -> list[Row]:
    """The bars of a series in so many rows, as high as the field."""
    signs = EIGHTHS if look.unicode else ASCII_PARTS
    full = len(signs) - 1
    heights = by_column(edges, bars.counts, columns)
    most = max(heights, default=0) or 1
    # What is there at all is seen.
    parts = [max(round(h * rows * full / most), 1) if h else 0 for h in heights]
    return [
        [Span("".join(signs[min(max(part - (rows - 1 - row) * full, 0), full)] for part in parts),
              number)]
        for row in range(rows)
    ]  # fmt: skip


def by_column(edges: Sequence[float], counts: Sequence[int], columns: int) -> list[int]:
    """The count that each column shows. Wide bins leave a gap; of narrow ones the largest shows."""
    low, high = edges[0], edges[-1]
    ends = [round((edge / 2 - low / 2) / (high / 2 - low / 2) * columns) for edge in edges]
    wide = columns // (len(edges) - 1)
    if wide and is_even(edges):
        ends = [wide * n for n in range(len(edges))]
    has_gaps = min(b - a for a, b in pairwise(ends)) >= 3
    heights = [0] * columns
    for count, (start, end) in zip(counts, pairwise(ends), strict=True):
        start = min(start, columns - 1)
        last = end - 1 if has_gaps else max(end, start + 1)
        for column in range(start, min(last, columns)):
            heights[column] = max(heights[column], count)
    return heights


def axis_below(edges: Sequence[float], columns: int, margin: int, look: Look) -> list[Row]:
    """The line below the bars, and round numbers below that."""
    scale = Scale(edges[0], edges[-1])
    wide = columns // (len(edges) - 1)
    taken = wide * (len(edges) - 1) if wide and is_even(edges) else columns
    ticks = []
    for value, text in scale.ticks(max(columns // 10, 1)):
        share = (value / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2)
        ticks.append((min(int(share * taken), columns - 1), text))
    return level_axis(columns, ticks, margin, FRAME if look.unicode else ASCII_FRAME)


def is_even(edges: Sequence[float]) -> bool:
    """All bins are as wide as each other."""
    step = edges[-1] / (len(edges) - 1) - edges[0] / (len(edges) - 1)
    return all(abs((b - a) - step) <= step * 1e-3 for a, b in pairwise(edges))
