"""Finds out which dimension of which tensor is why a call raises.

torch is asked: the call is tried again, without values, with one size changed at a time. A size
with which it runs, taken from another tensor or a number of the call, is what was wanted.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.expression_shapes import FailedCall, Several, Value, unwrapped

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
            found = list(values_in(argument))
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
        self.numbers = tuple(dict.fromkeys((*call.numbers, *numbers_in(every))))

    def runs(self, changes: dict[int, Shape]) -> bool:
        """Whether the call runs with these places' shapes. False when time is up."""
        if not self._budget.left():
            return False
        counter = itertools.count()

        def changed(value: Any) -> Any:
            if isinstance(value, Value):
                shape = changes.get(next(counter))
                return value if shape is None else value.resized(shape)
            if type(value) in (list, tuple):
                return type(value)([changed(item) for item in value])
            return value

        arguments = [changed(one) for one in self._call.arguments]
        keywords = {key: changed(one) for key, one in self._call.keywords.items()}
        try:
            self._call.function(*map(unwrapped, arguments), **unwrapped(keywords))
        except Exception:
            return False
        return True


def reasons(trial: Trial) -> Iterator[str]:
    """What would have to be different, in sentences; nothing if that cannot be told."""
    yield from (
        elements(trial)
        or two_sizes(trial)
        or one_size(trial)
        or rank(trial)
        or last_sizes(trial)
        or pairs(trial)
    )


def elements(trial: Trial) -> list[str]:
    """`view` and its like: the same number of elements is wanted."""
    name = trial.name.rpartition(".")[2]
    if name not in ("view", "reshape", "unflatten") or len(trial.places) != 1:
        return []
    place = trial.places[0]
    wanted = list(numbers_in(trial.arguments, negative=True))
    if name == "unflatten":
        dim, *wanted = wanted
        have, what = place.shape[dim], f"Dimension {dim} of {place.text} is"
    else:
        have, what = math.prod(place.shape), f"The elements of {place.text} are"
    known = math.prod(n for n in wanted if n != -1)
    product = " x ".join(str(n) for n in wanted if n != -1)
    if -1 in wanted:
        if known and have % known:
            return [f"{what} {have}, which cannot be divided by {product} = {known}."]
    elif known != have:
        return [f"{what} {have}, and {product} = {known}."]
    return []


def others(trial: Trial, index: int) -> Iterator[tuple[int, int, int]]:
    """The sizes of the other tensors: (place, dimension, size)."""
    for other, place in enumerate(trial.places):
        if other != index:
            yield from ((other, dim, size) for dim, size in enumerate(place.shape))


def two_sizes(trial: Trial) -> list[str]:
    """Two dimensions that must be equal: either of them changed to the other makes it run."""
    for index, place in enumerate(trial.places):
        if place.is_fixed:
            continue
        for dim, size in enumerate(place.shape):
            for number, other_dim, other in others(trial, index):
                if other == size or not trial.runs({index: put(place.shape, dim, other)}):
                    continue
                there = trial.places[number]
                if there.is_fixed or trial.runs({number: put(there.shape, other_dim, size)}):
                    return [
                        f"Dimension {dim} of {place.text} is {size}, dimension {other_dim} of "
                        f"{there.text} is {other}: here they must be equal."
                    ]
    return []


def one_size(trial: Trial) -> list[str]:
    """One dimension with another size, which stands somewhere in the call."""
    numbers = sorted(trial.numbers)
    couples = list(itertools.combinations_with_replacement(numbers[:6], 2))
    composed = sorted({*(a + b for a, b in couples), *(a * b for a, b in couples)})
    for index, place in enumerate(trial.places):
        if place.is_fixed:
            continue
        for dim, size in enumerate(place.shape):
            sizes = (*place.shape, *(other for _, _, other in others(trial, index)))
            wanted = dict.fromkeys((*numbers, *sizes, *composed, 1))
            for other in list(wanted)[:MOST_SIZES]:
                if other != size and trial.runs({index: put(place.shape, dim, other)}):
                    return [
                        f"Dimension {dim} of {place.text} is {size}; with {other} it would fit."
                    ]
    return []


def last_sizes(trial: Trial) -> list[str]:
    """The last dimensions together: a picture that is smaller than the window over it."""
    for index, place in enumerate(trial.places):
        for count in () if place.is_fixed else range(2, len(place.shape)):
            for size in sorted(trial.numbers):
                kept = place.shape[: len(place.shape) - count]
                if size > max(place.shape[-count:]) and trial.runs(
                    {index: (*kept, *(size,) * count)}
                ):
                    return [
                        f"The last {count} dimensions of {place.text} are "
                        f"{list(place.shape[-count:])}; with {[size] * count} they would fit."
                    ]
    return []


def rank(trial: Trial) -> list[str]:
    """One tensor with more dimensions, or fewer."""
    for index, place in enumerate(trial.places):
        if place.is_fixed:
            continue
        have = len(place.shape)
        for more in range(1, MOST_CHANGES + 1):
            alike = {p.shape for p in trial.places if len(p.shape) == have + more}
            shapes = [
                (1,) * more + place.shape, place.shape + (1,) * more, *sorted(alike),
                place.shape[more:], place.shape[: have - more],
            ]  # fmt: skip
            for shape in shapes:
                if len(shape) != have and trial.runs({index: shape}):
                    return [
                        f"{place.text} has {counted(have)}, {list(place.shape)}; with "
                        f"{counted(len(shape))} it would fit, as {list(shape)}."
                    ]
    return []


def pairs(trial: Trial) -> list[str]:
    """Two dimensions of one tensor with sizes of others: a tensor that was transposed, say."""
    for index, place in enumerate(trial.places):
        if place.is_fixed or len(place.shape) < 2:
            continue
        for first, second in itertools.combinations(range(len(place.shape)), 2):
            shape = list(place.shape)
            shape[first], shape[second] = shape[second], shape[first]
            if tuple(shape) != place.shape and trial.runs({index: tuple(shape)}):
                return [
                    f"Dimensions {first} and {second} of {place.text}, {place.shape[first]} and "
                    f"{place.shape[second]}: exchanged they would fit."
                ]
    for index, place in enumerate(trial.places):
        for other in () if place.is_fixed else trial.places:
            if other.shape != place.shape and trial.runs({index: other.shape}):
                return [
                    f"{place.text} is {list(place.shape)} and {other.text} is "
                    f"{list(other.shape)}: here they must be equal."
                ]
    return []


def put(shape: Shape, dim: int, size: int) -> Shape:
    """A shape with another size in one dimension."""
    return (*shape[:dim], size, *shape[dim + 1 :])


def counted(dimensions: int) -> str:
    """`1 dimension`, `3 dimensions`."""
    return f"{dimensions} dimension{'' if dimensions == 1 else 's'}"


def values_in(value: Any) -> Iterator[Value]:
    """The tensors of an argument, in order. Those that one call gave together are left out."""
    if isinstance(value, Value):
        yield value
    elif type(value) in (list, tuple) and not isinstance(value, Several):
        for item in value:
            yield from values_in(item)


def numbers_in(value: Any, *, negative: bool = False) -> Iterator[int]:
    """The whole numbers of arguments, in order; those below 1 only if they are asked for."""
    if type(value) is int and (negative or value > 0):
        yield value
    elif type(value) in (list, tuple) and not isinstance(value, (Value, Several)):
        for item in value:
            yield from numbers_in(item, negative=negative)
