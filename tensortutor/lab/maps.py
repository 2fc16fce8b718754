"""Maps of a plane: a surface as contour bands with paths, the regions of a classifier."""

from typing import Any

import torch

from tensortutor.lab import downsample, inputs
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.isolation import hidden_from_modes, never_traced, visible
from tensortutor.lab.numbers import kept
from tensortutor.lab.pictures import base64_of, calling_line, pixels_of
from tensortutor.protocol.drawings import LONGEST_WORDS, MOST_SERIES, AreaMap, Series

MOST_WIDE, MOST_TALL = 192, 128
"""Pixels of a map: more than a terminal shows of it."""
SMOOTH = 96
"""Coarser surfaces are made so fine along their longer side, by linear interpolation."""


@never_traced
def contour(f: Any, xs: Any, ys: Any, path: Any = None, *, title: str = "") -> None:
    """Draw a surface over a plane as bands between contour levels, and paths on it.

    f: a function of two tensors x and y, both of shape [len(ys), len(xs)], that gives as many
    numbers; or the numbers themselves, of that shape: f[i, j] belongs to xs[j] and ys[i]. xs, ys:
    places along the sides, rising or falling, in one dimension, as `torch.linspace` gives them.
    path: points on the way, of shape [N, 2] (a tensor, or a list of pairs), or a dict from labels
    to several of these. "S" marks where a path starts, its sign where it ends.
    The names of f's parameters tell which axis is which. title: a later map of the same title takes
    this one's place. If left out, those of the same line of the program do.

    Levels part the surface into bands of about the same area, so that the floor of a ravine has
    its lines too. Where f is NaN there is no band. Points outside of the map are not drawn, and
    counted. At most 131,072 places are evaluated and 8 paths drawn. f is called when the map is
    drawn: at once, then some 20 times a second at most and in less than 5 % of the program's time,
    and once at the end. Random numbers that it draws do not change those of the program; a module
    is in evaluation mode meanwhile.

    Raises TypeError or ValueError for axes that do not rise or fall, for values of another shape,
    for paths that are not [N, 2], and if f raises.
    """
    title = (str(title) or calling_line())[:LONGEST_WORDS]
    field = visible(f) if callable(f) and not isinstance(f, torch.nn.Module) else kept(f)
    across, upward = kept(xs), kept(ys)
    points = kept(path)

    def make() -> AreaMap:
        with hidden_from_modes():
            surface = inputs.surface(field, across, upward)
            with torch.no_grad():
                return contour_map(title, surface, inputs.paths(points), inputs.axis_names(f))

    DISPLAY.draw(title, make)


@never_traced
def regions(classify: Any, points: Any, labels: Any, *, title: str = "") -> None:
    """Draw which class a classifier gives each place of a plane, and the points that are known.

    classify: a function or a module that takes points of shape [M, 2] and gives a class number for
    each, [M]; or scores, [M, classes], of which the largest counts; or one score each, [M] or
    [M, 1], where class 1 begins above 0 (for probabilities give `lambda p: model(p) > 0.5`).
    points: [N, 2]. labels: their classes, N whole numbers or bools, at most 16 different ones.
    title: as for `contour`.

    The map reaches as far as the points and a little further, in 96 by 72 places. Points whose
    class differs from that of their place are counted. Points with NaN are left out and counted;
    where a score is NaN, the place has no class. classify is called as seldom as `contour` calls
    its function, without gradients; a module is in evaluation mode meanwhile.

    Raises TypeError or ValueError for other shapes, and if classify raises.
    """
    title = (str(title) or calling_line())[:LONGEST_WORDS]
    is_module = isinstance(classify, torch.nn.Module)
    function = visible(classify) if callable(classify) and not is_module else classify
    places, classes = kept(points), kept(labels)

    def make() -> AreaMap:
        with hidden_from_modes(), torch.no_grad():
            return regions_map(title, inputs.class_regions(function, places, classes))

    DISPLAY.draw(title, make)


def contour_map(
    title: str, surface: inputs.Surface, paths: dict[str, torch.Tensor],
    names: tuple[str, str] | None = None,
) -> AreaMap:  # fmt: skip
    """The event of a contour map. names: of the two axes."""
    xs, ys, z = surface.xs, surface.ys, surface.z
    levels = inputs.level_values(z)
    even = evenly(z, xs, ys)
    ends = half_a_step_more(xs, even.shape[1]), half_a_step_more(ys, even.shape[0])
    (low_x, high_x), (low_y, high_y) = ends
    drawn = list(paths.items())[:MOST_SERIES]
    series = [curve(label, points, ends) for label, points in drawn]
    outside = sum(one.count - inside for one, inside in series)
    notes = [f"{names[0]} across, {names[1]} up"] if names else []
    notes += [surface.note] if surface.note else []
    finite = z[z.isfinite()]
    if finite.numel():
        low, high = downsample.short(finite.min().item()), downsample.short(finite.max().item())
        notes.append(f"from {low:.4g} to {high:.4g}")
    else:
        notes.append("no finite value")
    missing = int((~z.isfinite()).sum())
    notes += [f"{missing} of {z.numel()} values NaN or inf"] if missing else []
    notes += [f"{outside} points of paths lie outside"] if outside else []
    return AreaMap(
        title, "contour", png_of(inputs.areas_of(even, levels).flip(0)), low_x, high_x, low_y,
        high_y, levels=tuple(levels), series=tuple(one for one, _ in series),
        left_out=max(len(paths) - MOST_SERIES, 0), caption=", ".join(notes)[:LONGEST_WORDS],
    )  # fmt: skip


def regions_map(title: str, found: inputs.Regions) -> AreaMap:
    """The event of a map of regions."""
    (low_x, high_x), (low_y, high_y) = found.xs, found.ys
    rows, columns = found.areas.shape
    across = ((found.points[:, 0] - low_x) / (high_x - low_x) * columns).long()
    upward = ((found.points[:, 1] - low_y) / (high_y - low_y) * rows).long()
    there = found.areas[upward.clamp(0, rows - 1), across.clamp(0, columns - 1)]
    wrong = int((there != found.which).sum())
    series = tuple(cloud(str(name), found.points[found.which == number])
                   for number, name in enumerate(found.classes))  # fmt: skip
    notes = [f"{wrong} of {len(found.points)} points in a region of another class"]
    notes += [found.note] if found.note else []
    return AreaMap(
        title, "regions", png_of(found.areas.flip(0)), low_x, high_x, low_y, high_y,
        names=tuple(map(str, found.classes)), series=series,
        caption=", ".join(notes)[:LONGEST_WORDS],
    )  # fmt: skip


def evenly(z: torch.Tensor, xs: torch.Tensor, ys: torch.Tensor) -> torch.Tensor:
    """The surface at even distances, as fine as a map is."""
    factor = max(SMOOTH / max(z.shape), 1)
    wide = min(round(z.shape[1] * factor), MOST_WIDE)
    tall = min(round(z.shape[0] * factor), MOST_TALL)
    return interpolated(interpolated(z, xs, max(wide, 2)).t(), ys, max(tall, 2)).t()


def interpolated(z: torch.Tensor, places: torch.Tensor, count: int) -> torch.Tensor:
    """Columns at `count` even places, between the ones that are there; NaN beside NaN."""
    wanted = torch.linspace(0, 1, count, dtype=torch.float64)
    wanted = places[0] + wanted * (places[-1] - places[0])
    right = torch.searchsorted(places, wanted).clamp(1, len(places) - 1)
    left = right - 1
    share = ((wanted - places[left]) / (places[right] - places[left])).clamp(0, 1)
    low, high = z[:, left], z[:, right]
    mixed = low * (1 - share) + high * share
    return torch.where(share == 0, low, torch.where(share == 1, high, mixed))


def half_a_step_more(places: torch.Tensor, count: int) -> tuple[float, float]:
    """The outer edges of `count` pixels whose middles reach from the first to the last place."""
    low, high = places[0].item(), places[-1].item()
    half = (high - low) / (count - 1) / 2
    return downsample.short(low - half), downsample.short(high + half)


def curve(
    label: str, points: torch.Tensor, ends: tuple[tuple[float, float], tuple[float, float]]
) -> tuple[Series, int]:
    """A path; how many of its points lie on the map. The others leave a gap."""
    inside = torch.ones(len(points), dtype=torch.bool)
    for values, (low, high) in zip(points.unbind(1), ends, strict=True):
        inside &= (values >= low) & (values <= high)
    xs = points[:, 0].nan_to_num(ends[0][0], ends[0][1], ends[0][0]).clamp(*ends[0])
    ys = torch.where(inside, points[:, 1], torch.nan)
    series = downsample.series(label, "line", xs.tolist(), ys.tolist())
    return series, int(inside.sum())


def cloud(label: str, points: torch.Tensor) -> Series:
    """The points of a class."""
    return downsample.series(label, "points", points[:, 0].tolist(), points[:, 1].tolist())


def png_of(areas: torch.Tensor) -> str:
    """Area numbers as base64 of a PNG, transparent where there is none."""
    there = (areas != 255).to(torch.uint8) * 255
    parts = [areas * (areas != 255), there]
    return base64_of(pixels_of(torch.stack(parts if bool((there == 0).any()) else parts[:1])))
