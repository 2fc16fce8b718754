"""Finds out which dimension of which tensor is why a call raises.

torch is asked: the call is tried again, without values, with one size changed at a time. A size
with which it runs, taken from another tensor or a number of the call, is what was wanted.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from torch.utils._pytree import tree_map_only

from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.expression_shapes import (
    FailedCall,
    Value,
    numbers_in,
    unwrapped,
    values_in,
)

MOST_SIZES = 24
MOST_CHANGES = 2
"""So many dimensions may have to be added or left out."""
Shape = tuple[int, ...]


class Place(NamedTuple):
    """A tensor of a call. text: what stands there; is_fixed: it cannot be changed."""

    text: str
    shape: Shape
    is_fixed: bool = False


class Trial:
    """A failed call, to be tried again with other shapes."""

    def __init__(self, call: FailedCall, text: Callable[[Any], str], budget: Budget) -> None:
        """text: the source of an expression."""
        self._call = call
        self.name, self.arguments = call.name, call.arguments
        self._budget = budget
        self.places: list[Place] = []
        self.values: list[Value] = []
        given: list[tuple[int | str, Any]] = [*enumerate(call.arguments), *call.keywords.items()]
        for key, argument in given:
            node = call.texts.get(key)
            base = text(node) if node is not None else str(key)
            found = values_in(argument)
            items = getattr(node, "elts", ())
            for index, value in enumerate(found):
                if value is argument:
                    name = base
                else:
                    name = text(items[index]) if len(items) == len(found) else f"{base}[{index}]"
                self.places.append(Place(name, value.shape))
                self.values.append(value)
        self.places += [Place(name, value.shape, True) for name, value in call.fixed]
        self.values += [value for _, value in call.fixed]
        every = (*call.arguments, *call.keywords.values())
        self.numbers = {*call.numbers, *numbers_in(every)}

    def runs(self, changes: dict[int, Shape]) -> bool:
        """Whether the call runs with these places' shapes. False when time is up."""
        if not self._budget.left():
            return False
        counter = itertools.count()

        def changed(value: Value) -> Value:
            shape = changes.get(next(counter))
            return value if shape is None else value.resized(shape)

        given = (self._call.arguments, self._call.keywords)
        try:
            arguments, keywords = unwrapped(tree_map_only(Value, changed, given))
            self._call.function(*arguments, **keywords)
        except Exception:
            return False
        return True

    def changeable(self) -> Iterator[tuple[int, Place]]:
        """The places that can be changed, with their numbers."""
        return ((index, place) for index, place in enumerate(self.places) if not place.is_fixed)

    def others(self, index: int) -> Iterator[tuple[int, int, int]]:
        """The sizes of the other tensors: (place, dimension, size)."""
        for other, place in enumerate(self.places):
            if other != index:
                yield from ((other, dim, size) for dim, size in enumerate(place.shape))


def explain_mismatch(trial: Trial) -> str:
    """What would have to be different, in a sentence; "" if that cannot be told."""
    for explain in (
        element_count, two_sizes, one_size, dimension_count, last_sizes, swapped_dimensions,
        same_shape,
    ):  # fmt: skip
        for sentence in explain(trial):
            return sentence
    return ""


def element_count(trial: Trial) -> Iterator[str]:
    """`view` and its like: the same number of elements is wanted."""
    name = trial.name.rpartition(".")[2]
    if name not in ("view", "reshape", "unflatten") or len(trial.places) != 1:
        return
    place = trial.places[0]
    wanted = numbers_in(trial.arguments, negative=True)
    if name == "unflatten":
        dim, *wanted = wanted
        have, what = place.shape[dim], f"Dimension {dim} of {place.text} is"
    else:
        have, what = math.prod(place.shape), f"The elements of {place.text} are"
    known = math.prod(n for n in wanted if n != -1)
    product = " x ".join(str(n) for n in wanted if n != -1)
    if -1 not in wanted and known != have:
        yield f"{what} {have}, and {product} = {known}."
    elif -1 in wanted and known and have % known:
        yield f"{what} {have}, which cannot be divided by {product} = {known}."


def two_sizes(trial: Trial) -> Iterator[str]:
    """Two dimensions that must be equal: either of them changed to the other makes it run."""
    for index, place in trial.changeable():
        for dim, size in enumerate(place.shape):
            for number, other_dim, other in trial.others(index):
                if other == size or not trial.runs({index: put(place.shape, dim, other)}):
                    continue
                there = trial.places[number]
                if there.is_fixed or trial.runs({number: put(there.shape, other_dim, size)}):
                    yield (
                        f"Dimension {dim} of {place.text} is {size}, dimension {other_dim} of "
                        f"{there.text} is {other}: here they must be equal."
                    )


def one_size(trial: Trial) -> Iterator[str]:
    """One dimension with another size, which stands somewhere in the call."""
    numbers = sorted(trial.numbers)
    couples = list(itertools.combinations_with_replacement(numbers[:6], 2))
    composed = sorted({*(a + b for a, b in couples), *(a * b for a, b in couples)})
    for index, place in trial.changeable():
        sizes = (*place.shape, *(other for _, _, other in trial.others(index)))
        wanted = dict.fromkeys((*numbers, *sizes, *composed, 1))
        for dim, size in enumerate(place.shape):
            for other in list(wanted)[:MOST_SIZES]:
                if other != size and trial.runs({index: put(place.shape, dim, other)}):
                    yield f"Dimension {dim} of {place.text} is {size}; with {other} it would fit."


def dimension_count(trial: Trial) -> Iterator[str]:
    """One tensor with more dimensions, or fewer."""
    for index, place in trial.changeable():
        have = len(place.shape)
        for more in range(1, MOST_CHANGES + 1):
            like_others = {p.shape for p in trial.places if len(p.shape) == have + more}
            shapes = [
                (1,) * more + place.shape, place.shape + (1,) * more, *sorted(like_others),
                place.shape[more:], place.shape[: have - more],
            ]  # fmt: skip
            for shape in shapes:
                if len(shape) != have and trial.runs({index: shape}):
                    yield (
                        f"{place.text} has {counted(have)}, {list(place.shape)}; with "
                        f"{counted(len(shape))} it would fit, as {list(shape)}."
                    )


def last_sizes(trial: Trial) -> Iterator[str]:
    """The last dimensions together: a picture that is smaller than the window over it."""
    for index, place in trial.changeable():
        for count in range(2, len(place.shape)):
            kept, last = place.shape[:-count], place.shape[-count:]
            for size in sorted(trial.numbers):
                if size > max(last) and trial.runs({index: (*kept, *(size,) * count)}):
                    yield (
                        f"The last {count} dimensions of {place.text} are {list(last)}; with "
                        f"{[size] * count} they would fit."
                    )


def swapped_dimensions(trial: Trial) -> Iterator[str]:
    """Two dimensions of one tensor in the other order: it should have been transposed."""
    for index, place in trial.changeable():
        for first, second in itertools.combinations(range(len(place.shape)), 2):
            a, b = place.shape[first], place.shape[second]
            if a != b and trial.runs({index: put(put(place.shape, first, b), second, a)}):
                yield (
                    f"Dimensions {first} and {second} of {place.text}, {a} and {b}: exchanged they "
                    "would fit."
                )


def same_shape(trial: Trial) -> Iterator[str]:
    """Two tensors of one shape."""
    for index, place in trial.changeable():
        for other in trial.places:
            if other.shape != place.shape and trial.runs({index: other.shape}):
                yield (
                    f"{place.text} is {list(place.shape)} and {other.text} is "
                    f"{list(other.shape)}: here they must be equal."
                )


def put(shape: Shape, dim: int, size: int) -> Shape:
    """A shape with another size in one dimension."""
    return (*shape[:dim], size, *shape[dim + 1 :])


def counted(dimensions: int) -> str:
    """`1 dimension`, `3 dimensions`."""
    return f"{dimensions} dimension{'' if dimensions == 1 else 's'}"
