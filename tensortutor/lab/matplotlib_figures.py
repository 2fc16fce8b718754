"""The drawing functions of `tensortutor.lab` for notebooks, drawn with matplotlib.

An exported notebook carries the text of this file and of `inputs`, so that it draws where the tutor
is not installed. What the arguments mean is read by `inputs`, as it is in the tutor. A figure is
shown when its cell has ended; a later call with the same title changes it.
"""

import io
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch

from tensortutor.lab import inputs

MISSING = "Nothing is drawn: matplotlib is not installed here. `pip install matplotlib` brings it."
COLOURS = (
    "#56b4e9", "#e69f00", "#009e73", "#cc79a7", "#f0e442", "#0072b2", "#d55e00", "#999999",
)  # fmt: skip
SIGNS = "o^sDvP*X"
MOST_CELLS = (16, 24)
LEAST_POINTS = 5.0
"""Values in smaller print would not be legible."""
MOST_BLOCKS = 8
MOST_BOXES = 24
FRAMES = ("#ff00aa", "#ff8800", "#00aa44", "#0066ff", "#aa00ff", "#886600", "#008888", "#444444")
"""Colours of the frames around marked cells."""

Draw = Callable[[Any], None]
"""Puts something on an empty figure."""
_changed: dict[str, Draw] = {}
_plots: dict[str, dict[str, dict[str, Any]]] = {}
_state = {"waits": False, "told": False}


def plot(
    ys: Any, xs: Any = None, *, label: str = "", title: str = "", points: bool = False,
    low: Any = None, high: Any = None,
) -> None:  # fmt: skip
    """A series of numbers; single numbers are added to those of the same label."""
    curves = _plots.setdefault(title, {})
    parts = {"ys": ys, "xs": xs, "low": low, "high": high}
    read = {k: inputs.real_tensor(v, "plot").reshape(-1).tolist() for k, v in parts.items()
            if v is not None}  # fmt: skip
    if getattr(ys, "shape", ()) == () and not hasattr(ys, "__len__"):
        known = curves.setdefault(label, {"xs": []})
        read.setdefault("xs", [float(len(known["xs"]))])
        read = {name: known.get(name, []) + values for name, values in read.items()}
    read.setdefault("xs", [float(n) for n in range(len(read["ys"]))])
    lengths = {name: len(values) for name, values in read.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"plot needs as many of each, and got {lengths}.")
    curves[label] = {**read, "points": points}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for number, (name, curve) in enumerate(curves.items()):
            colour = COLOURS[number % len(COLOURS)]
            style = {"marker": "o", "linestyle": "none"} if curve["points"] else {}
            axes.plot(curve["xs"], curve["ys"], label=name, color=colour, **style)
            if "low" in curve and "high" in curve:
                axes.fill_between(
                    curve["xs"], curve["low"], curve["high"], alpha=0.25, color=colour
                )
        if any(curves):
            axes.legend()
        axes.set_title(title)

    shown_later(title or "plot", draw)


def image(tensor: Any, *, title: str = "") -> None:
    """A tensor as an image, or a batch of them side by side."""
    values = inputs.real_tensor(tensor, "image").to(torch.float32)
    if values.dim() == 2:
        values = values[None, None]
    elif values.dim() in (3, 4) and values.shape[-3] not in (1, 3, 4):
        values = values.movedim(-1, -3)
    values = values[None] if values.dim() == 3 else values
    if values.dim() != 4 or values.shape[1] not in (1, 3, 4) or not values.numel():
        raise ValueError(
            "image draws (H, W), (C, H, W) or (H, W, C) with 1, 3 or 4 channels, or a batch of "
            f"these, and this tensor has the shape {list(getattr(tensor, 'shape', values.shape))}."
        )
    low, high = values.nan_to_num().min().item(), values.nan_to_num().max().item()
    if low < 0 or high > 1:
        is_byte = low >= 0 and high <= 255 and not getattr(tensor, "is_floating_point", bool)()
        low, high = (0.0, 255.0) if is_byte else (low, high)
        values = (values - low) / ((high - low) or 1.0)

    def draw(figure: Any) -> None:
        count = min(len(values), 64)
        across = min(max(round(count**0.5), 1), 8)
        down = -(-count // across)
        for number in range(count):
            axes = figure.add_subplot(down, across, number + 1)
            axes.imshow(values[number].movedim(0, -1).numpy(), cmap="gray", vmin=0, vmax=1)
            axes.set_axis_off()
        figure.suptitle(title)

    shown_later(title or f"image {len(_changed)}", draw)


def show(tensor: Any, *, title: str = "") -> None:
    """The values of a tensor as a map; of more than two dimensions the first slice."""
    is_complex = isinstance(tensor, torch.Tensor) and tensor.is_complex()
    values = inputs.real_tensor(tensor.abs() if is_complex else tensor, "show")
    words = f"{str(values.dtype).removeprefix('torch.')} {list(values.shape)}"
    while values.dim() > 2 and len(values):
        values = values[0]
    values = values.reshape(1, -1) if values.dim() < 2 else values

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        figure.colorbar(axes.imshow(values.to(torch.float64).numpy(), aspect="auto"))
        axes.set_title("\n".join(filter(None, (title, words))))

    shown_later(title or f"show {len(_changed)}", draw)


def hist(values: Any, by: Any = None, bins: Any = None, *, title: str = "") -> None:
    """How often values occur, the series below each other on one axis."""
    series, _ = inputs.labelled_values(values, by)
    edges = inputs.bin_edges(series.values(), bins)
    rows = {label: inputs.counts(part, edges) for label, part in series.items()}

    def draw(figure: Any) -> None:
        all_axes = figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0]
        for number, (axes, (label, counts)) in enumerate(zip(all_axes, rows.items(), strict=True)):
            colour = COLOURS[number % len(COLOURS)]
            if counts:
                axes.stairs(counts, edges.tolist(), fill=True, color=colour)
            axes.set_ylabel(label)
        figure.suptitle(title)

    shown_later(title or f"hist {len(_changed)}", draw)


def contour(f: Any, xs: Any, ys: Any, path: Any = None, *, title: str = "") -> None:
    """A surface as contour bands, and paths on it."""
    surface = inputs.surface(f, xs, ys)
    levels, paths = inputs.level_values(surface.z), inputs.paths(path)
    names = inputs.axis_names(f)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        bands = axes.contourf(
            surface.xs.tolist(), surface.ys.tolist(), surface.z.numpy(), levels=levels or None,
            extend="both",
        )  # fmt: skip
        figure.colorbar(bands)
        for number, (label, points) in enumerate(paths.items()):
            across, upward = points.unbind(1)
            colour = ["white", *COLOURS[1:]][number % len(COLOURS)]
            axes.plot(across.tolist(), upward.tolist(), ".-", label=label, color=colour)
        axes.set_xlim(surface.xs[0].item(), surface.xs[-1].item())
        axes.set_ylim(surface.ys[0].item(), surface.ys[-1].item())
        if names:
            axes.set_xlabel(names[0])
            axes.set_ylabel(names[1])
        if any(paths):
            axes.legend()
        axes.set_title(title)

    shown_later(title or f"contour {len(_changed)}", draw)


def regions(classify: Any, points: Any, labels: Any, *, title: str = "") -> None:
    """Which class a classifier gives each place, and the points that are known."""
    found = inputs.class_regions(classify, points, labels)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        areas = found.areas.to(torch.float32)
        areas[found.areas == 255] = torch.nan
        listed = import_module("matplotlib.colors").ListedColormap(COLOURS * 2)
        axes.imshow(
            areas.numpy(), origin="lower", extent=(*found.xs, *found.ys), aspect="auto",
            cmap=listed, vmin=0, vmax=2 * len(COLOURS) - 1, alpha=0.5, interpolation="nearest",
        )  # fmt: skip
        for number, name in enumerate(found.classes):
            own = found.points[found.which == number]
            axes.scatter(
                own[:, 0].tolist(), own[:, 1].tolist(), label=f"class {name}",
                color=COLOURS[number % len(COLOURS)], marker=SIGNS[number % len(SIGNS)],
                edgecolor="black",
            )  # fmt: skip
        axes.legend()
        axes.set_title(title)

    shown_later(title or f"regions {len(_changed)}", draw)


def grid(tensor: Any, marks: Any = None, caption: str | None = None, *, title: str = "") -> None:
    """A tensor as cells with their values, marked ones in frames."""
    values = inputs.real_tensor(tensor, "grid")
    masks = inputs.marked_cells(marks, values.shape)
    matrices = values.reshape(-1, *([1, 1, *values.shape])[-2:])[:MOST_BLOCKS]
    cells = matrices[:, : MOST_CELLS[0], : MOST_CELLS[1]]
    chosen = {label: mask.reshape(-1, *matrices.shape[1:]) for label, mask in masks.items()}
    words = f"{str(values.dtype).removeprefix('torch.')} {list(values.shape)}"
    hidden = values.numel() - cells.numel()
    words += f", {hidden} cells left out" if hidden else ""

    def draw(figure: Any) -> None:
        texts = iter(inputs.cell_texts(cells))
        blocks = figure.subplots(1, len(cells), squeeze=False)[0]
        shades = cells.to(torch.float64)
        finite = shades[shades.isfinite()]
        ends = (finite.min().item(), finite.max().item()) if finite.numel() else (0.0, 1.0)
        patches = import_module("matplotlib.patches")
        size = min(10.0, 200.0 / (cells.shape[2] * len(cells)))
        is_written = size >= LEAST_POINTS
        if ends[0] < 0 < ends[1]:  # zero in the middle of the colours, as in the tutor
            ends = (-max(-ends[0], ends[1]), max(-ends[0], ends[1]))
        for number, axes in enumerate(blocks):
            colours = "PuOr_r" if ends[0] < 0 < ends[1] else "viridis"
            axes.imshow(shades[number].numpy(), vmin=ends[0], vmax=ends[1], cmap=colours)
            for row in range(cells.shape[1]):
                for column in range(cells.shape[2]):
                    text = next(texts) if is_written else ""
                    value = shades[number, row, column].item()
                    share = (value - ends[0]) / ((ends[1] - ends[0]) or 1.0)
                    is_dark = share < 0.5 if colours == "viridis" else not 0.15 < share < 0.85
                    if text:  # not in the layout: a thousand of them would take it seconds
                        axes.text(
                            column, row, text, ha="center", va="center", fontsize=size,
                            color="white" if is_dark else "black", in_layout=False,
                        )  # fmt: skip
                    for mark, (label, mask) in enumerate(chosen.items()):
                        if mask[number, row, column]:
                            frame = FRAMES[mark % len(FRAMES)]
                            axes.add_patch(patches.Rectangle(
                                (column - 0.42, row - 0.42), 0.84, 0.84, fill=False,
                                linewidth=2.5, edgecolor=frame, label=label,
                            ))  # fmt: skip
            axes.set_xticks(range(cells.shape[2]))
            axes.set_yticks(range(cells.shape[1]) if values.dim() > 1 else [])
            if len(cells) > 1:
                axes.set_title(f"[{number}]")
        handles = [patches.Patch(fill=False, edgecolor=FRAMES[n % len(FRAMES)], label=label)
                   for n, label in enumerate(chosen) if label]  # fmt: skip
        if handles:
            figure.legend(handles=handles, loc="outside lower center", ncols=4)
        figure.suptitle("\n".join(filter(None, (title, caption, words))))

    shown_later(title or f"grid {len(_changed)}", draw)


def graph(nodes: Any, edges: Any, caption: str | None = None, *, title: str = "") -> None:
    """A box for each value, with arrows to what is computed from it."""
    boxes = inputs.graph_boxes(nodes, edges, MOST_BOXES)
    depths: list[int] = []
    for box in boxes:
        depths.append(max((depths[parent] + 1 for parent in box.parents), default=0))
    for number, box in enumerate(boxes):  # what is given stands just before what uses it
        users = [depths[n] for n, other in enumerate(boxes) if number in other.parents]
        depths[number] = min(users) - 1 if users and not box.parents else depths[number]
    counts = [depths.count(depth) for depth in depths]
    ranks = [depths[:n].count(depth) for n, depth in enumerate(depths)]
    # Columns of one box are not all on one line, or an arrow would run through a box between.
    slant = [0.1 * (depth % 2) for depth in depths]
    heights = [s - (r + 0.5) / c for s, r, c in zip(slant, ranks, counts, strict=True)]
    places = list(zip(depths, heights, strict=True))
    frame = {"boxstyle": "round", "facecolor": "#eef4fb"}

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        for box, place in zip(boxes, places, strict=True):
            words = "\n".join((box.name, *box.lines))
            axes.text(*place, words, ha="center", va="center", zorder=3, family="monospace",
                      bbox=frame)  # fmt: skip
            for parent in box.parents:
                bend = 0.0 if place[0] - places[parent][0] == 1 else -0.4  # over what is between
                axes.annotate("", place, places[parent], zorder=1, arrowprops={
                    "arrowstyle": "-|>", "color": "#555555", "shrinkA": 28, "shrinkB": 34,
                    "connectionstyle": f"arc3,rad={bend}"})  # fmt: skip
        axes.set_xlim(-0.5, max(depths, default=0) + 0.5)
        axes.set_ylim(-1.05, 0.15)
        axes.set_axis_off()
        axes.set_title("\n".join(filter(None, (title, caption))))

    shown_later(title or f"graph {len(_changed)}", draw)


def data(name: str | None = None) -> Any:
    """A file in the folder `data` beside the notebook; the tutor brings the lessons' own."""
    folder = Path("data")
    here = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if name is None:
        return here
    if not (folder / name).exists():
        raise FileNotFoundError(
            f"There is no {name!r} in the folder {folder.absolute()}. The data of the lessons come "
            "with tensortutor: install it where this notebook runs, or copy its folder "
            "tensortutor/lab/data here."
        )
    return folder / name


def shown_later(title: str, draw: Draw) -> None:
    """Have a figure shown when the cell has ended, in its last state."""
    if find_spec("matplotlib") is None:
        if not _state["told"]:
            _state["told"] = True
            print(MISSING)
        return
    _changed[title] = draw
    library = sys.modules.get("IPython")
    shell = None if library is None else library.get_ipython()
    if shell is not None and not _state["waits"]:
        _state["waits"] = True
        shell.events.register("post_run_cell", lambda *_: show_changed())


def show_changed() -> None:
    """Show each figure that has changed since it was shown last."""
    display: Any = import_module("IPython.display")
    draws = list(_changed.values())
    _changed.clear()
    for draw in draws:
        display.display(display.Image(data=png_of(draw)))


def png_of(draw: Draw) -> bytes:
    """The figure as a PNG file."""
    figure = import_module("matplotlib.figure").Figure(figsize=(7, 4.5), layout="constrained")
    draw(figure)
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=100)
    return file.getvalue()
