"""A graph as rows of text: boxes in layers from left to right, with arrows between them."""

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from statistics import fmean

from tensortutor.drawing.spans import Look, Row, Span, clean, clip, cut, text_of, width_of, wrap
from tensortutor.protocol.drawings import Box, BoxGraph

LEFT, RIGHT, UP, DOWN = 1, 2, 4, 8
LINES = {3: "─", 12: "│", 10: "┌", 9: "┐", 6: "└", 5: "┘", 11: "┬", 7: "┴", 14: "├", 13: "┤",
         15: "┼"}  # fmt: skip
CORNERS, ASCII_CORNERS = "┌─┐│└┘", "+-+|++"

SHIFTS = (1, -1, 2, -2)
"""Rows by which a layer may be moved, tried in this order."""

Item = tuple[int, int]
"""A box, or a box's line on its way through a layer: the number of the box, and the layer."""
Place = tuple[int, int]
"""Column and row."""


def box_graph_rows(
    graph: BoxGraph, width: int, height: int, look: Look, *, titled: bool = True
) -> list[Row]:
    """At most `height` rows of at most `width` cells. Where boxes do not fit, a line for each."""
    title = clip(clean(graph.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    tail: list[Row] = [[Span(line)] for line in wrap(clean(graph.caption, look).split(), width)]
    room = height - len(head) - len(tail)
    for gap in (2, 1):
        picture = GraphLayout(graph, look, gap).rows()
        fits = all(width_of(text_of(row)) <= width for row in picture)
        if fits:
            break
    if not fits or len(picture) > room:
        picture = list(box_list(graph, width, look))
    if len(picture) > room:
        head, tail = [], []
    return [*head, *picture, *tail][: max(height, 1)]


def natural_height(graph: BoxGraph, width: int, look: Look) -> int:
    """So many rows show all of it."""
    return len(box_graph_rows(graph, width, 10_000, look))


def box_list(graph: BoxGraph, width: int, look: Look) -> Iterator[Row]:
    """A line for each box: its name, what stands in it, what it is computed from."""
    names = [clean(box.name, look) for box in graph.boxes]
    size = max(map(width_of, names), default=0)
    for name, box in zip(names, graph.boxes, strict=True):
        words = [clean(line, look) for line in box.lines]
        words += [f"from {', '.join(names[n] for n in box.parents)}"] if box.parents else []
        yield cut([Span(f"{name}{' ' * (size - width_of(name))}  {'   '.join(words)}")], width)


class GraphLayout:
    """Where each box and each line stands. gap: columns from one upright line to the next."""

    def __init__(self, graph: BoxGraph, look: Look, gap: int) -> None:
        self._gap = gap
        self._look = look
        self._boxes = [self._texts(box) for box in graph.boxes]
        self._parents = [box.parents for box in graph.boxes]
        self._users: dict[int, list[int]] = {n: [] for n in range(len(graph.boxes))}
        for number, box in enumerate(graph.boxes):
            for parent in box.parents:
                self._users[parent].append(number)
        self._depths = depths_of(graph.boxes, self._users)
        self._layers = self._ordered()
        self._tops = self._stacked()
        self._chars: dict[Place, tuple[str, bool]] = {}
        """The signs, and whether they belong to a line between boxes."""

    def rows(self) -> list[Row]:
        """The picture, as wide as it needs to be."""
        left = 0
        for layer, items in enumerate(self._layers):
            sizes = [self._width(item) for item in items]
            for item, size in zip(items, sizes, strict=True):
                if self._is_box(item):
                    self._draw_box(item, left)
                else:
                    self._chars |= {(left + n, self._middle(item, self._tops)): self._line(3)
                                    for n in range(max(sizes))}  # fmt: skip
                if self._users_beyond(item):  # from a narrow box to the end of its layer
                    self._chars |= {(left + n, self._middle(item, self._tops)): self._line(3)
                                    for n in range(size, max(sizes))}  # fmt: skip
            left += max(sizes)
            if layer + 1 < len(self._layers):
                left = self._draw_channel(layer, left)
        bottom = max((row for _, row in self._chars), default=-1)
        return [self._row(row) for row in range(bottom + 1)]

    def _texts(self, box: Box) -> list[str]:
        name = clip(clean(box.name, self._look), 24)
        lines = [clip(clean(line, self._look), 24) for line in box.lines] or [""]
        inner = max(width_of(name) + 2, *map(width_of, lines))
        one, flat, two, side, three, four = tuple(CORNERS if self._look.unicode else ASCII_CORNERS)
        named = f" {name} " if name else ""
        return [
            f"{one}{named}{flat * (inner - width_of(named))}{two}",
            *(f"{side}{line}{' ' * (inner - width_of(line))}{side}" for line in lines),
            f"{three}{flat * inner}{four}",
        ]

    def _ordered(self) -> list[list[Item]]:
        """The items of each layer from top to bottom, near those that they are joined with."""
        layers: list[list[Item]] = [[] for _ in range(max(self._depths, default=-1) + 1)]
        before: dict[Item, list[Item]] = {}
        for number, depth in enumerate(self._depths):
            last = max((self._depths[user] for user in self._users[number]), default=depth + 1)
            for layer in range(depth, last):
                layers[layer].append((number, layer))
            before[number, depth] = [(p, depth - 1) for p in self._parents[number]]
            before |= {(number, layer): [(number, layer - 1)] for layer in range(depth + 1, last)}
        after: dict[Item, list[Item]] = {}
        for item, sources in before.items():
            for source in sources:
                after.setdefault(source, []).append(item)
        for joined, order in [(before, layers), (after, layers[::-1]), (before, layers)]:
            places: dict[Item, float] = {}
            for items in order:
                places |= {item: float(n) for n, item in enumerate(items)}
                wanted = {
                    item: fmean([places[o] for o in joined.get(item, ()) if o in places]
                                or [places[item]])
                    for item in items
                }  # fmt: skip
                items.sort(key=wanted.__getitem__)
                places |= {item: float(n) for n, item in enumerate(items)}
        return layers

    def _stacked(self) -> dict[Item, int]:
        """The first row of each item: each layer in the middle, or a little beside it.

        A layer is moved where a line that leaves a box would run into one that ends on its row.
        """
        heights = [sum(map(self._height, items)) for items in self._layers]
        tops: dict[Item, int] = {}
        for layer, (items, height) in enumerate(zip(self._layers, heights, strict=True)):
            middle = (max(heights) - height) // 2 + SHIFTS[-1]
            for shift in (0, *SHIFTS):
                row = middle + shift
                for item in items:
                    tops[item] = row
                    row += self._height(item)
                if layer == 0 or line_order(*self._nets(layer - 1, tops)) is not None:
                    break
        first = min(tops.values(), default=0)
        return {item: row - first for item, row in tops.items()}

    def _nets(
        self, layer: int, tops: dict[Item, int]
    ) -> tuple[dict[Item, int], dict[Item, dict[int, bool]]]:
        """The row where each item's lines leave this layer, and the rows where they end.

        True: with the point of an arrow, at a box.
        """
        starts: dict[Item, int] = {}
        ends: dict[Item, dict[int, bool]] = {}
        for item in self._layers[layer]:
            number = item[0]
            goals = [(u, layer + 1) for u in self._users[number] if self._depths[u] == layer + 1]
            goals += [(number, layer + 1)] if (number, layer + 1) in tops else []
            if goals:
                starts[item] = self._middle(item, tops)
                ends[item] = {self._entry(item, g, tops): self._is_box(g) for g in goals}
        return starts, ends

    def _is_box(self, item: Item) -> bool:
        return self._depths[item[0]] == item[1]

    def _height(self, item: Item) -> int:
        return len(self._boxes[item[0]]) if self._is_box(item) else 1

    def _width(self, item: Item) -> int:
        return width_of(self._boxes[item[0]][0]) if self._is_box(item) else 0

    def _middle(self, item: Item, tops: dict[Item, int]) -> int:
        return tops[item] + (self._height(item) - 1) // 2

    def _entry(self, item: Item, goal: Item, tops: dict[Item, int]) -> int:
        """The row where the line of an item ends: each at a row of its own while there are some."""
        sources = [(p, goal[1] - 1) for p in self._parents[goal[0]]]
        if not self._is_box(goal) or len(sources) == 1:
            return self._middle(goal, tops)
        place = sorted(sources, key=tops.__getitem__).index(item)
        return tops[goal] + 1 + min(place, self._height(goal) - 3)

    def _users_beyond(self, item: Item) -> bool:
        return any(self._depths[user] > item[1] for user in self._users[item[0]])

    def _draw_box(self, item: Item, left: int) -> None:
        for row, text in enumerate(self._boxes[item[0]], self._tops[item]):
            column = left
            for char in text:
                self._chars[column, row] = (char, False)
                column += width_of(char)

    def _draw_channel(self, layer: int, left: int) -> int:
        """The lines from this layer to the next. Returns the column where that one begins."""
        starts, ends = self._nets(layer, self._tops)
        order = line_order(starts, ends) or list(starts)
        right = left + self._gap * len(order) + 2
        cells: dict[Place, dict[Item | int, int]] = {}

        def put(column: int, row: int, owner: Item | int, sides: int) -> None:
            owners = cells.setdefault((column, row), {})
            owners[owner] = owners.get(owner, 0) | sides

        for track, item in enumerate(order):
            column, start = left + 1 + self._gap * track, starts[item]
            for x in range(left, column):
                put(x, start, item, LEFT | RIGHT)
            put(column, start, item, LEFT)
            for row in ends[item]:
                put(column, row, item, RIGHT)
                for x in range(column + 1, right):
                    put(x, row, row, LEFT | RIGHT)  # whichever item: all lines here end in one box
                low, high = sorted((start, row))
                for y in range(low, high + 1):
                    put(column, y, item, (UP if y > low else 0) | (DOWN if y < high else 0))
        for place, owners in cells.items():
            passing = [sides for sides in owners.values() if not sides & (LEFT | RIGHT)]
            sides = reduce(or_, owners.values())
            self._chars[place] = self._line(passing[0] if passing else sides)
        point = "▶" if self._look.unicode else ">"
        for rows in ends.values():
            self._chars |= {(right - 1, row): (point, True) for row in rows if rows[row]}
        return right

    def _line(self, sides: int) -> tuple[str, bool]:
        if self._look.unicode:
            return LINES.get(sides, "─"), True
        return {3: "-", 12: "|"}.get(sides, "+"), True

    def _row(self, row: int) -> Row:
        spans: Row = []
        cells = sorted((x, sign) for (x, y), sign in self._chars.items() if y == row)
        end = 0
        for column, (char, is_line) in cells:
            if column > end:
                spans.append(Span(" " * (column - end)))
            if spans and spans[-1].dim == is_line:
                spans[-1] = spans[-1]._replace(text=spans[-1].text + char)
            else:
                spans.append(Span(char, dim=is_line))
            end = column + width_of(char)
        return spans


def depths_of(boxes: Sequence[Box], users: Mapping[int, Sequence[int]]) -> list[int]:
    """The layer of each box: behind all its parents; one without parents just before its users."""
    depths: list[int] = []
    for box in boxes:
        depths.append(max((depths[parent] + 1 for parent in box.parents), default=0))
    return [
        min((depths[user] - 1 for user in users[number]), default=depth)
        if not box.parents
        else depth
        for number, (box, depth) in enumerate(zip(boxes, depths, strict=True))
    ]


def line_order(
    starts: Mapping[Item, int], ends: Mapping[Item, Mapping[int, bool]]
) -> list[Item] | None:
    """An order from left to right of the upright lines in which none runs along another's row.

    starts, ends: the rows on which the lines of an item begin and end. None: there is no order.
    """
    order: list[Item] = []
    waiting = list(starts)
    while waiting:
        free = next((item for item in waiting if not any(
            starts[other] in ends[item] for other in waiting if other != item)), None)  # fmt: skip
        if free is None:
            return None
        waiting.remove(free)
        order.append(free)
    return order
