"""Reads what the drawing functions are given: series, surfaces, paths, classes, marks.

Needs torch and nothing else of this package: an exported notebook carries the text of this file,
so that the same calls mean the same there.
"""

import contextlib
import inspect
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

MOST_LABELS = 8
"""Series, paths or marks of one drawing; the others are counted."""
MOST_CLASSES = 16
MOST_EVALUATED = 1 << 17
"""Places at which a surface is evaluated; of finer grids every so manyth row and column is."""
MOST_LEVELS = 9
REGION_COLUMNS, REGION_ROWS = 96, 72
MARGIN = 0.08
"""Room around the points of a map of regions, as a share of their extent."""
MOST_BINS = 200


def real_tensor(values: Any, function: str) -> torch.Tensor:
    """Real numbers on the CPU, without a graph.

    values: a tensor on any device, an array, or numbers in (nested) lists.
    Raises TypeError, in a sentence, for anything else.
    """
    if isinstance(values, Iterable) and not isinstance(values, (Collection, torch.Tensor)):
        values = list(values)
    given = values
    if isinstance(values, (list, tuple)) and any(isinstance(v, torch.Tensor) for v in values):
        values = stacked(values, function)
    if not isinstance(values, torch.Tensor):
        is_list = not hasattr(values, "__array__")
        try:
            values = torch.as_tensor(values)
            if is_list and values.is_floating_point():
                values = torch.as_tensor(given, dtype=torch.float64)  # as exact as Python's own
        except (TypeError, ValueError, RuntimeError, OverflowError):
            kind = type(values).__name__
            raise TypeError(f"{function} needs numbers, and cannot read this {kind}.") from None
    tensor: torch.Tensor = values.detach()
    if tensor.is_complex():
        raise TypeError(
            f"{function} draws real numbers, and these are complex: give it z.real or z.abs()."
        )
    if tensor.is_meta or tensor.is_nested:
        raise TypeError(f"{function} needs values, and this tensor has none that can be read.")
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    try:
        tensor = (tensor.dequantize() if tensor.is_quantized else tensor).cpu()
        # Narrow floats lack most of the operators; the others are exact in their own type.
        narrow = tensor.is_floating_point() and tensor.dtype not in (torch.float32, torch.float64)
        return tensor.float() if narrow else tensor
    except RuntimeError:  # a stand-in of some kind: fake, batched
        raise TypeError(
            f"{function} needs values, and this tensor has none that can be read."
        ) from None


def stacked(values: Sequence[Any], function: str) -> torch.Tensor:
    """A list that holds tensors as one tensor. Raises TypeError or ValueError in a sentence."""
    tensors = [real_tensor(value, function).to(torch.float64) for value in values]
    shapes = {tuple(tensor.shape) for tensor in tensors}
    if len(shapes) > 1:
        some = ", ".join(str(list(shape)) for shape in sorted(shapes)[:3])
        raise ValueError(f"{function} got a list of tensors of different shapes: {some}.")
    return torch.stack(tensors)


# Histograms


class Values(NamedTuple):
    """The series of a histogram by label, flat; and how many more there were."""

    series: dict[str, torch.Tensor]
    left_out: int


def labelled_values(values: Any, by: Any = None) -> Values:
    """The series that `hist` is to count.

    Raises TypeError or ValueError, in a sentence, for what has no numbers, and for `by` of another
    length than what it labels.
    """
    if isinstance(values, dict):
        if by is not None:
            raise ValueError("hist got a dict and `by`: the dict's keys are the labels already.")
        named = [(str(label), part) for label, part in values.items()]
    elif is_sequence_of_series(values):
        labels = [f"[{n}]" for n in range(len(values))] if by is None else labels_of(by)
        if len(labels) != len(values):
            raise ValueError(
                f"hist got {len(values)} series and {len(labels)} labels in `by`; "
                "it needs one label for each series."
            )
        named = list(zip(labels, values, strict=True))
    elif by is None:
        named = [("", values)]
    else:
        return values_by_label(values, labels_of(by))
    kept = {label: real_tensor(part, "hist").reshape(-1) for label, part in named[:MOST_LABELS]}
    return Values(kept, max(len(named) - MOST_LABELS, 0))


def is_sequence_of_series(values: Any) -> bool:
    """A list or tuple of tensors, arrays or lists; a tensor of any shape is one series."""
    if not isinstance(values, (list, tuple)) or not values:
        return False
    first = values[0]
    return isinstance(first, (list, tuple)) or bool(getattr(first, "shape", ()))


def values_by_label(values: Any, labels: list[str]) -> Values:
    """One series, parted by the label of each value."""
    flat = real_tensor(values, "hist").reshape(-1)
    if len(labels) != len(flat):
        raise ValueError(
            f"hist got {len(flat)} values and {len(labels)} labels in `by`; "
            "it needs one label for each value."
        )
    names = list(dict.fromkeys(labels))
    with contextlib.suppress(ValueError):
        names.sort(key=float)
    numbers = {name: number for number, name in enumerate(names)}
    which = torch.tensor([numbers[label] for label in labels])
    kept = {name: flat[which == numbers[name]] for name in names[:MOST_LABELS]}
    return Values(kept, max(len(names) - MOST_LABELS, 0))


def labels_of(by: Any) -> list[str]:
    """Labels as text: of strings, numbers, or a tensor of them."""
    if isinstance(by, str) or not isinstance(by, Iterable):
        raise TypeError(f"hist needs labels in `by`, and this is a {type(by).__name__}.")
    items = by.detach().reshape(-1).tolist() if isinstance(by, torch.Tensor) else list(by)
    return [str(item.item() if hasattr(item, "item") else item) for item in items]


def bin_edges(parts: Iterable[torch.Tensor], bins: Any = None) -> torch.Tensor:
    """The edges of the bins, float64; empty where no value is finite.

    bins: how many, or their edges in rising order; None for a number that fits the values, with
    round edges. Raises ValueError or TypeError for what is neither.
    """
    if bins is not None and not isinstance(bins, int) and not is_whole(bins):
        edges = real_tensor(bins, "hist").to(torch.float64).reshape(-1)
        if not 2 <= len(edges) <= MOST_BINS + 1 or not bool((edges.diff() > 0).all()):
            raise ValueError(
                f"hist needs 2 to {MOST_BINS + 1} edges in rising order in `bins`, or a number."
            )
        return edges
    if bins is not None and not 1 <= int(bins) <= MOST_BINS:
        raise ValueError(f"hist draws 1 to {MOST_BINS} bins, and `bins` is {bins}.")
    finite = [part[part.isfinite()] for part in parts]
    ends = [(f.min().item(), f.max().item()) for f in finite if f.numel()]
    if not ends:
        return torch.empty(0, dtype=torch.float64)
    low, high = float(min(a for a, _ in ends)), float(max(b for _, b in ends))
    if not high - low > max(abs(low), abs(high)) * 1e-12 + 1e-280:
        room = abs(low) * 0.1 if abs(low) > 1e-280 else 0.5
        low, high = low - room, high + room
    if not math.isfinite(high - low):
        low, high = low / 2, high / 2  # the outermost values fall into no bin
    if bins is not None:
        return torch.linspace(low, high, int(bins) + 1, dtype=torch.float64)
    whole = all(not f.is_floating_point() or bool((f == f.round()).all()) for f in finite)
    if whole and high - low <= 40:
        return torch.arange(round(low), round(high) + 2, dtype=torch.float64) - 0.5
    largest = max(f.numel() for f in finite)
    step = round_step((high - low) / min(max(2 * largest ** (1 / 3), 20), 40))
    if whole:
        step = max(1.0, float(round(step)))
    first, last = math.floor(low / step), math.floor(high / step) + 1
    return torch.arange(first, last + 1, dtype=torch.float64) * step


def is_whole(value: Any) -> bool:
    """A single whole number: of Python, numpy, or a tensor."""
    return not getattr(value, "shape", ()) and hasattr(value, "__index__")


def round_step(raw: float) -> float:
    """1, 2, 2.5 or 5 times a power of ten, not below `raw`."""
    power = 10.0 ** math.floor(math.log10(raw))
    return next((m * power for m in (1.0, 2.0, 2.5, 5.0) if m * power >= raw), 10 * power)


def counts(values: torch.Tensor, edges: torch.Tensor) -> list[int]:
    """How many values fall into each bin; the last bin holds its upper edge, too."""
    if len(edges) < 2:
        return []
    wide = values.to(torch.float64)
    inside = wide[(wide >= edges[0]) & (wide <= edges[-1])]
    places = torch.bucketize(inside, edges, right=True) - 1
    found: list[int] = torch.bincount(
        places.clamp(max=len(edges) - 2), minlength=len(edges) - 1
    ).tolist()
    return found


# Surfaces and paths


class Surface(NamedTuple):
    """z[i, j] at xs[j], ys[i]; xs and ys rise."""

    xs: torch.Tensor
    ys: torch.Tensor
    z: torch.Tensor
    note: str


def surface(f: Any, xs: Any, ys: Any) -> Surface:
    """The surface that `contour` is to draw.

    Raises TypeError or ValueError, in a sentence, for axes that do not rise or fall throughout, for
    a function that raises, and for values that do not fit the axes.
    """
    device = xs.device if isinstance(xs, torch.Tensor) else torch.device("cpu")
    across, upward = axis(xs, "xs"), axis(ys, "ys")
    size = (len(upward), len(across))
    every, note = 1, ""
    if size[0] * size[1] > MOST_EVALUATED:
        every = math.ceil(math.sqrt(size[0] * size[1] / MOST_EVALUATED))
        note = f"every {every}th row and column"
    across, upward = across[::every], upward[::every]
    if callable(f):
        grid = torch.meshgrid(across.to(device), upward.to(device), indexing="xy")
        z = real_tensor(evaluated(f, grid, "contour", "f(x, y)", device), "contour")
        if z.dim() == 0 or (z.dim() == 2 and z.shape != grid[0].shape and 1 in z.shape):
            with contextlib.suppress(RuntimeError):
                z = z.expand(grid[0].shape)
        if z.shape != grid[0].shape:
            raise ValueError(
                f"contour called f(x, y) with two tensors of shape {list(grid[0].shape)}, and it "
                f"gave the shape {list(z.shape)}; it needs one number for each place."
            )
    else:
        z = real_tensor(f, "contour")
        if tuple(z.shape) != size:
            raise ValueError(
                f"contour got {size[1]} xs, {size[0]} ys and values of shape {list(z.shape)}; it "
                f"needs the shape [{size[0]}, {size[1]}], which is [len(ys), len(xs)]."
            )
        z = z[::every, ::every]
    if across[0] > across[-1]:
        across, z = across.flip(0), z.flip(1)
    if upward[0] > upward[-1]:
        upward, z = upward.flip(0), z.flip(0)
    return Surface(across.double(), upward.double(), z.double(), note)


def axis(values: Any, name: str) -> torch.Tensor:
    """The places along one side. Raises ValueError."""
    places = real_tensor(values, "contour")
    if not isinstance(values, torch.Tensor) or not places.is_floating_point():
        places = places.to(torch.get_default_dtype())  # as what f computes with, most likely
    if places.dim() != 1 or len(places) < 2:
        raise ValueError(
            f"contour needs at least two numbers in {name}, in one dimension, as "
            f"torch.linspace(-2, 2, 80) gives them; it got the shape {list(places.shape)}."
        )
    steps = places.diff()
    if not bool(places.isfinite().all()) or not bool((steps > 0).all() or (steps < 0).all()):
        raise ValueError(f"contour needs {name} that rise or fall throughout, without NaN or inf.")
    return places


def evaluated(
    function: Callable[..., Any], values: Sequence[torch.Tensor], drawing: str, call: str,
    device: torch.device,
) -> Any:  # fmt: skip
    """What the program's function gives, without a trace in the program's random numbers.

    A module is in evaluation mode meanwhile: dropout and batch norm stay as they are.
    Raises ValueError, in a sentence, if the function raises.
    """
    devices = [device] if device.type == "cuda" else []
    modules = [m for m in parts_of(function) if m.training]
    for module in modules:
        module.training = False
    try:
        with torch.random.fork_rng(devices=devices):
            return function(*values)
    except Exception as error:
        got = " and ".join(f"{list(value.shape)}" for value in values)
        raise ValueError(
            f"{drawing} called {call} with {'tensors' if len(values) > 1 else 'a tensor'} of shape "
            f"{got}, and it raised {type(error).__name__}: {error}"
        ) from error
    finally:
        for module in modules:
            module.training = True


def parts_of(function: Any) -> Iterator[torch.nn.Module]:
    """The modules of what is called, if it is a module."""
    if isinstance(function, torch.nn.Module):
        yield from function.modules()


def level_values(z: torch.Tensor) -> list[float]:
    """Levels that part the surface into bands of about the same area, as short numbers.

    In a ravine, levels at equal distances would leave its floor without a line.
    """
    finite = z[z.isfinite()]
    if not finite.numel():
        return []
    low, high = finite.min().item(), finite.max().item()
    shares = torch.linspace(0, 1, MOST_LEVELS + 2, dtype=torch.float64)[1:-1]
    quantiles = finite.sort().values[(shares * (finite.numel() - 1)).long()].tolist()
    rounded: list[float] = []
    for quantile in quantiles:
        level = short_between(quantile, low, high)
        if low < level < high and (not rounded or level > rounded[-1]):
            rounded.append(level)
    return rounded


def short_between(value: float, low: float, high: float) -> float:
    """The value with as few digits as keep it apart in this range."""
    span = high - low
    if not math.isfinite(span) or span <= 0:
        return value
    digits = 1 - math.floor(math.log10(span)) + (abs(value - low) < span / 10)
    if not -300 < digits < 300:
        return value
    rounded = round(value, digits)
    return rounded if low < rounded < high else float(f"{value:.2g}")


def areas_of(z: torch.Tensor, levels: Sequence[float]) -> torch.Tensor:
    """The number of the band of each value, uint8; 255 where there is none."""
    bounds = torch.tensor(list(levels), dtype=torch.float64)
    bands = torch.bucketize(z.contiguous(), bounds, right=True)
    return torch.where(z.isnan(), 255, bands).to(torch.uint8)


def axis_names(f: Any) -> tuple[str, str] | None:
    """What a function of two numbers calls them; None for values, modules and other functions."""
    if not callable(f) or isinstance(f, torch.nn.Module):
        return None
    try:
        names = list(inspect.signature(f).parameters)
    except (TypeError, ValueError):
        return None
    return (names[0], names[1]) if len(names) == 2 else None


def paths(path: Any) -> dict[str, torch.Tensor]:
    """Paths by label, each (N, 2). Raises ValueError or TypeError in a sentence."""
    if path is None:
        return {}
    named = path if isinstance(path, dict) else {"": path}
    return {str(label): pairs(points, "contour", "path") for label, points in named.items()}


def pairs(points: Any, function: str, name: str) -> torch.Tensor:
    """(N, 2) as float64. Raises ValueError or TypeError in a sentence."""
    tensor = real_tensor(points, function).to(torch.float64)
    if tensor.dim() == 1 and tensor.numel() in (0, 2):
        tensor = tensor.reshape(-1, 2)
    if tensor.dim() != 2 or tensor.shape[1] != 2:
        raise ValueError(
            f"{function} needs `{name}` of shape [N, 2], an x and a y for each point, and this has "
            f"the shape {list(tensor.shape)}."
        )
    return tensor


# Regions of a classifier


class Regions(NamedTuple):
    """areas: uint8 [rows, columns], the lowest y first, 255 for none; by class number `classes`.

    points, which: (N, 2) and the number in `classes` of each. note: what was left out.
    """

    areas: torch.Tensor
    xs: tuple[float, float]
    ys: tuple[float, float]
    classes: list[int]
    points: torch.Tensor
    which: torch.Tensor
    note: str


def class_regions(classify: Any, points: Any, labels: Any) -> Regions:
    """What `regions` is to draw. Raises TypeError or ValueError in a sentence."""
    if not callable(classify):
        raise TypeError(
            f"regions needs a function or a module to call, and got a {type(classify).__name__}."
        )
    places = pairs(points, "regions", "points")
    given = whole_numbers(real_tensor(labels, "regions"), "labels").reshape(-1)
    if len(given) != len(places):
        raise ValueError(
            f"regions got {len(places)} points and {len(given)} labels; it needs as many of both."
        )
    finite = places.isfinite().all(1)
    note = f"{int((~finite).sum())} points with NaN or inf left out" if not finite.all() else ""
    places, given = places[finite], given[finite]
    if not len(places):
        raise ValueError("regions needs at least one point without NaN or inf.")
    xs, ys = extent(places[:, 0]), extent(places[:, 1])
    predicted = predictions(classify, points, centres(xs, REGION_COLUMNS), centres(ys, REGION_ROWS))
    classes = sorted({*given.tolist(), *predicted.tolist()} - {NO_CLASS})
    if len(classes) > MOST_CLASSES:
        raise ValueError(
            f"regions draws at most {MOST_CLASSES} classes, and there are {len(classes)}."
        )
    numbers = torch.tensor(classes)
    areas = torch.searchsorted(numbers, predicted.clamp(min=classes[0], max=classes[-1]))
    areas = torch.where(predicted == NO_CLASS, 255, areas).to(torch.uint8)
    which = torch.searchsorted(numbers, given)
    return Regions(areas.reshape(REGION_ROWS, -1), xs, ys, classes, places, which, note)


NO_CLASS = -(1 << 62)


def extent(values: torch.Tensor) -> tuple[float, float]:
    """From the lowest to the highest value, with room around."""
    low, high = values.min().item(), values.max().item()
    room = (high - low) * MARGIN or abs(low) * 0.1 or 1.0
    return low - room, high + room


def centres(ends: tuple[float, float], count: int) -> torch.Tensor:
    """The middles of `count` equal parts."""
    low, high = ends
    return low + (torch.arange(count, dtype=torch.float64) + 0.5) * ((high - low) / count)


def predictions(classify: Any, points: Any, xs: torch.Tensor, ys: torch.Tensor) -> torch.Tensor:
    """The class at each place of the grid, row by row; NO_CLASS where a score is NaN."""
    like = points if isinstance(points, torch.Tensor) else torch.empty(0)
    dtype = like.dtype if like.is_floating_point() else torch.get_default_dtype()
    grid = torch.cartesian_prod(ys, xs).flip(1).to(device=like.device, dtype=dtype)
    call = "classify(points)"
    with torch.no_grad():
        scores = real_tensor(evaluated(classify, [grid], "regions", call, like.device), "regions")
    if scores.dim() == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if scores.dim() not in (1, 2) or len(scores) != len(grid):
        raise ValueError(
            f"regions called {call} with a tensor of shape {list(grid.shape)}, and it gave the "
            f"shape {list(scores.shape)}; it needs one class for each point, or [points, classes]."
        )
    missing = scores.isnan() if scores.dim() == 1 else scores.isnan().any(1)
    if scores.dim() == 2:
        classes = scores.nan_to_num().argmax(1)
    elif scores.is_floating_point() and not bool((scores == scores.round())[~missing].all()):
        classes = (scores > 0).long()
    else:
        classes = scores.nan_to_num().long()
    return torch.where(missing, NO_CLASS, classes)


def whole_numbers(values: torch.Tensor, name: str) -> torch.Tensor:
    """Class numbers as int64. Raises ValueError."""
    if values.is_floating_point() and not bool((values == values.round()).all()):
        raise ValueError(f"regions needs whole numbers in `{name}`: the class of each point.")
    return values.long()


# Cells


def marked_cells(marks: Any, shape: Sequence[int]) -> dict[str, torch.Tensor]:
    """By label, which cells are marked: masks of the tensor's shape.

    marks: an index as one would write in brackets (a tuple of ints and slices; an int for a whole
    row), a list of these, a mask of bools, or a dict from labels to any of these.
    Raises ValueError, IndexError or TypeError in a sentence.
    """
    if marks is None:
        return {}
    named = marks if isinstance(marks, dict) else {"": marks}
    return {str(label): mask_of(part, shape) for label, part in named.items()}


def mask_of(marks: Any, shape: Sequence[int]) -> torch.Tensor:
    """One mask."""
    mask = torch.zeros(tuple(shape), dtype=torch.bool)
    if hasattr(marks, "__array__") and not isinstance(marks, torch.Tensor):
        marks = torch.as_tensor(marks)
    if isinstance(marks, torch.Tensor):
        marks = marks.detach().cpu()
        if marks.dtype == torch.bool:
            if list(marks.shape) != list(shape):
                raise ValueError(
                    f"grid got a mask of shape {list(marks.shape)} for a tensor of shape "
                    f"{list(shape)}; it needs the same shape."
                )
            return mask.logical_or(marks)
        marks = marks.tolist()
    if isinstance(marks, list) and contains_bools(marks):
        return mask_of(torch.tensor(marks), shape)
    is_one = isinstance(marks, (int, slice)) or (
        isinstance(marks, tuple) and all(isinstance(m, (int, slice)) or m is ... for m in marks)
    )
    for index in [marks] if is_one else marks:
        index = tuple(index) if isinstance(index, list) else index
        try:
            mask[index] = True
        except (IndexError, TypeError, ValueError, RuntimeError):
            raise IndexError(
                f"grid cannot mark {index!r} in a tensor of shape {list(shape)}: there is no such "
                "cell."
            ) from None
    return mask


def contains_bools(values: list[Any]) -> bool:
    """A mask written as (nested) lists."""
    first: Any = values
    while isinstance(first, list) and first:
        first = first[0]
    return isinstance(first, bool)


def cell_texts(values: torch.Tensor) -> list[str]:
    """Short texts for these values, with as many decimals in all of them."""
    if values.dtype == torch.bool:
        return ["1" if value else "0" for value in values.reshape(-1).tolist()]
    items: list[Any] = values.reshape(-1).tolist()
    if not values.is_floating_point():
        return [text if len(text := str(item)) <= 8 else exponent(float(item)) for item in items]
    finite = [abs(item) for item in items if math.isfinite(item)]
    largest = max(finite, default=0.0)
    smallest = min((item for item in finite if item), default=1.0)
    if largest >= 1e5 or (smallest < 1e-3 and largest < 0.1):
        return [number_text(item, None) for item in items]
    most = 3 if largest < 0.1 else 2 if largest < 1e3 else 1
    decimals = next(
        (n for n in range(most) if all(abs(round(i, n) - i) < 1e-6 * max(i, 1) for i in finite)),
        most,
    )
    return [number_text(item, decimals) for item in items]


def number_text(value: float, decimals: int | None) -> str:
    """A float with so many decimals, or with an exponent. "1." is a float, as torch prints it."""
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if decimals is None:
        return exponent(value) if value else "0."
    text = f"{value:.{decimals}f}"
    text = text.lstrip("-") if not float(text) else text
    return text if decimals else f"{text}."


def exponent(value: float) -> str:
    """1.2e-5."""
    mantissa, _, power = f"{value:.1e}".partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(power)}"


# Graphs


class GraphBox(NamedTuple):
    """A box: its name, what stands in it, the numbers of the boxes it is computed from."""

    name: str
    lines: tuple[str, ...]
    parents: tuple[int, ...]


def graph_boxes(nodes: Any, edges: Any, most: int) -> list[GraphBox]:
    """The boxes that `graph` is to draw, each after those that it is computed from.

    Raises TypeError or ValueError, in a sentence, for nodes and edges of another kind, for a name
    that no node has, for a circle and for more than `most` nodes.
    """
    if not isinstance(nodes, dict):
        raise TypeError(f"graph needs a dict of nodes, and this is a {type(nodes).__name__}.")
    if len(nodes) > most:
        raise ValueError(f"graph draws at most {most} nodes, and got {len(nodes)}.")
    parents: dict[Any, dict[Any, None]] = {name: {} for name in nodes}
    for edge in edges:
        if not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise TypeError(f"graph needs pairs (from, to) as edges, and got {edge!r:.60}.")
        for end in edge:
            if end not in nodes:
                raise ValueError(f"graph has an edge with {end!r:.60}, and no node of that name.")
        parents[edge[1]][edge[0]] = None
    numbers: dict[Any, int] = {}
    while len(numbers) < len(nodes):
        ready = [n for n in nodes if n not in numbers and parents[n].keys() <= numbers.keys()]
        if not ready:
            raise ValueError("graph cannot draw a circle: a node is computed from itself.")
        numbers |= {name: len(numbers) + place for place, name in enumerate(ready)}
    return [
        GraphBox(str(n), graph_lines(nodes[n]), tuple(sorted(numbers[p] for p in parents[n])))
        for n in numbers
    ]


def graph_lines(node: Any) -> tuple[str, ...]:
    """What stands in a box, its words flush. Raises TypeError for what has no data and grad."""
    if isinstance(node, torch.Tensor):
        # To ask others than these for their gradient gives None, and a warning.
        keeps = node.is_leaf or node.retains_grad
        node = {"data": node, "grad": node.grad if keeps else None}
    elif not isinstance(node, dict):
        if not (hasattr(node, "data") and hasattr(node, "grad")):
            raise TypeError(
                "graph needs a dict, or something with data and grad, for each node, and got a "
                f"{type(node).__name__}."
            )
        node = {"data": node.data, "grad": node.grad}
    size = max((len(str(word)) for word in node), default=0)
    return tuple(f"{word!s:{size}} {graph_value(value)}".strip() for word, value in node.items())


def graph_value(value: Any) -> str:
    """A number in four digits or three, the shape of what has several, or the words as they are."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1 or value.is_meta:
            return f"{list(value.shape)}"
        value = value.detach().item()
    if not isinstance(value, (int, float)):
        return str(value)
    text = f"{value:.4g}"
    return text if len(text) < 8 else f"{value:.3g}"  # boxes stand beside each other
