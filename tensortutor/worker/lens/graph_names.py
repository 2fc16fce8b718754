"""Which name the learner has for a tensor that autograd speaks of."""

from typing import Any

from tensortutor.protocol.lens import Saved
from tensortutor.worker import access
from tensortutor.worker.lens.modules import parameters_of
from tensortutor.worker.lens.object_finder import Found


class TensorNames:
    """Names by tensor, by node and by place in memory. A name that is found first counts."""

    def __init__(self, *found: Found) -> None:
        self._by_id: dict[int, str] = {}
        self._by_function: dict[int, str] = {}
        self._functions: list[Any] = []  # while they live, their ids are nobody else's
        self._by_place: dict[tuple[int, tuple[int, ...]], list[str]] = {}
        self._detached: set[str] = set()
        named = [(name, tensor) for one in found for _scope, name, tensor in one.tensors]
        modules = [module for one in found for module in one.modules]
        for name, tensor in (*named, *parameters_of(modules)):
            try:
                self._add(name, tensor)
            except Exception:  # a wrapper that does not tell
                continue
        self._find_detached(named)

    def _add(self, name: str, tensor: Any) -> None:
        self._by_id.setdefault(id(tensor), name)
        function = access.get_grad_fn(tensor)
        if function is not None and id(function) not in self._by_function:
            self._by_function[id(function)] = name
            self._functions.append(function)
        place = place_of(tensor)
        if place is not None:
            self._by_place.setdefault(place, []).append(name)

    def _find_detached(self, named: list[tuple[str, Any]]) -> None:
        storages: dict[int, bool] = {}
        rest = []
        for name, tensor in named:
            try:
                key = int(access.Base.untyped_storage(tensor)._cdata)
                if access.get_requires_grad(tensor):
                    storages[key] = True
                else:
                    rest.append((name, key))
            except Exception:  # no storage
                continue
        self._detached = {name for name, key in rest if key in storages}

    def names(self) -> dict[int, str]:
        """The names by the tensors' ids."""
        return self._by_id

    def of_leaf(self, tensor: Any) -> str:
        """The learner's name, or ""."""
        return self._by_id.get(id(tensor), "")

    def of_function(self, function: Any) -> str:
        """The name of the tensor that a node has made, or ""."""
        return self._by_function.get(id(function), "")

    def detached(self, name: str) -> bool:
        """The tensor of this name has the values of one inside a graph, and is outside."""
        return name in self._detached

    def saved(self, name: str, tensor: Any, *, outside: bool) -> Saved:
        """A tensor that a node keeps. outside: one of the node's inputs is outside the graph."""
        place = place_of(tensor)
        variables = [] if place is None else self._by_place.get(place, [])
        detached = [variable for variable in variables if variable in self._detached]
        chosen = detached if outside and detached else variables
        return Saved(access.cut(name), access.words(tensor), chosen[0] if chosen else "")


def place_of(tensor: Any) -> tuple[int, tuple[int, ...]] | None:
    """Where in memory it begins and its shape; None where it has no such place."""
    try:
        start = int(access.Base.data_ptr(tensor))
        return (start, access.shape_of(tensor)) if start else None
    except Exception:  # sparse, wrapped, symbolic
        return None
