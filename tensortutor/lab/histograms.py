"""Histograms: how often values occur, one row of bars for each series."""

from typing import Any

import torch

from tensortutor.lab import inputs
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.downsample import short
from tensortutor.lab.isolation import hidden_from_modes, never_traced
from tensortutor.lab.numbers import kept
from tensortutor.lab.pictures import calling_line
from tensortutor.protocol.drawings import LONGEST_WORDS, Bars, Histogram


@never_traced
def hist(values: Any, by: Any = None, bins: Any = None, *, title: str = "") -> None:
    """Draw how often values occur.

    values: a tensor of any shape (all its values count), an array, a list of numbers; or several
    series as a dict from labels to these, or as a list of tensors or lists. by: one label for each
    value, which parts a single series; or one for each series of a list. Labels may be strings,
    numbers or a tensor. bins: how many (at most 200), or their edges in rising order; left out,
    the bins fit the values and have round edges, one for each whole number where there are few.
    title: a later histogram of the same title takes this one's place. If left out, those of the
    same line of the program do.

    All series share the bins and the axis. At most 8 are drawn. NaN and infinite values have no
    bin: they are counted below. A small tensor is copied when it is handed in; values are counted
    some 20 times a second at most, and in less than 5 % of the program's time.

    Raises TypeError for what has no real numbers, ValueError for `by` of another length than what
    it labels and for bins that are none.
    """
    held, labels, edges = kept(values), kept(by), kept(bins)
    title = (str(title) or calling_line())[:LONGEST_WORDS]

    def make() -> Histogram:
        with hidden_from_modes(), torch.no_grad():
            return histogram(title, inputs.labelled_values(held, labels), edges)

    DISPLAY.draw(title, make)


def histogram(title: str, values: inputs.Values, bins: Any) -> Histogram:
    """The event of a histogram."""
    edges = inputs.bin_edges(values.series.values(), bins)
    edges = torch.tensor(sorted(set(map(short, edges.tolist()))), dtype=torch.float64)
    bars = tuple(bars_of(label, part, edges) for label, part in values.series.items())
    return Histogram(title, tuple(edges.tolist()), bars, values.left_out)


def bars_of(label: str, values: torch.Tensor, edges: torch.Tensor) -> Bars:
    """One series, counted."""
    finite = values[values.isfinite()].to(torch.float64)
    mean, std = 0.0, 0.0
    if len(finite):
        # Parted, because the sum of large floats may be no float any more.
        scale = finite.abs().max().item() or 1.0
        mean = short((finite / scale).mean().item() * scale)
        std = short((finite / scale).std(correction=0).item() * scale)
    return Bars(
        label[:LONGEST_WORDS], tuple(inputs.counts(finite, edges)), len(values),
        nan=int(values.isnan().sum()), inf=int(values.isinf().sum()), mean=mean, std=std,
    )  # fmt: skip
