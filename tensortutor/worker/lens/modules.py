"""The trees of modules: parameters, buffers, what is frozen, how large the gradients are."""

from collections.abc import Iterator
from typing import Any

from tensortutor.protocol.lens import MOST_MODULES, ModuleInfo, Modules, ParameterInfo
from tensortutor.worker import access
from tensortutor.worker.lens import tensor_values
from tensortutor.worker.lens.budget import Budget

MOST_PARAMETERS = 2000
LONGEST_PATH = 120


def modules_of(found: list[tuple[str, Any]], budget: Budget) -> Modules:
    """The trees of these modules, in this order."""
    forest = Forest(budget)
    told: list[ModuleInfo] = []
    left_out = 0
    for name, root in found:
        for path, depth, module in walk(name, root):
            if len(told) < MOST_MODULES:
                told.append(forest.tell(path, depth, module))
            else:
                left_out += 1
    return Modules(tuple(told), left_out)


def walk(name: str, root: Any) -> Iterator[tuple[str, int, Any]]:
    """A module and its children with their paths, each once, in the order of definition."""
    seen: set[int] = set()
    todo = [(name, 0, root)]
    while todo:
        path, depth, module = todo.pop()
        if id(module) in seen or not access.is_module(module):
            continue
        seen.add(id(module))
        yield path, depth, module
        inner = children(module)
        todo += [(f"{path}.{key}", depth + 1, child) for key, child in reversed(inner)]


def children(module: Any) -> list[tuple[str, Any]]:
    """The modules directly inside."""
    found = access.attributes(module).get("_modules")
    return [(str(k), v) for k, v in found.items()] if type(found) is dict else []


def tensors_in(module: Any, kind: str) -> list[tuple[str, Any]]:
    """kind: "_parameters" or "_buffers". Those that are None are left out."""
    found = access.attributes(module).get(kind)
    if type(found) is not dict:
        return []
    return [(str(k), v) for k, v in found.items() if v is not None and access.is_tensor(v)]


class Forest:
    """What is told of modules that may share parameters."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._first: dict[int, str] = {}
        self._room = MOST_PARAMETERS

    def tell(self, path: str, depth: int, module: Any) -> ModuleInfo:
        """One module."""
        count, trainable = counts(module)
        return ModuleInfo(
            path=access.cut(path, LONGEST_PATH),
            depth=depth,
            type=access.class_name(module),
            detail=detail(module),
            training=access.attributes(module).get("training") is True,
            count=count,
            trainable=trainable,
            parameters=self._tensors(path, module, "_parameters"),
            buffers=self._tensors(path, module, "_buffers"),
        )

    def _tensors(self, path: str, module: Any, kind: str) -> tuple[ParameterInfo, ...]:
        own = tensors_in(module, kind)[: max(0, self._room)]
        self._room -= len(own)
        return tuple(self._tensor(f"{path}.{name}", name, tensor) for name, tensor in own)

    def _tensor(self, path: str, name: str, tensor: Any) -> ParameterInfo:
        tied = self._first.setdefault(id(tensor), path)
        try:
            grad = access.gradient(tensor)
            on_time = self._budget.left(0.4)
            return ParameterInfo(
                name=access.cut(name),
                words=words_of(tensor),
                count=numel(tensor),
                trainable=access.get_requires_grad(tensor),
                norm=tensor_values.norm(tensor) if on_time and not is_lazy(tensor) else None,
                grad_norm=tensor_values.norm(grad) if on_time and grad is not None else None,
                tied="" if tied == path else access.cut(tied, LONGEST_PATH),
            )
        except Exception as error:  # a subclass of its own, a poisoned device
            return ParameterInfo(access.cut(name), access.cut(f"? {type(error).__name__}"), 0)


def is_lazy(tensor: Any) -> bool:
    """A parameter of a lazy module that has seen no input yet: it has no shape."""
    return any(kind.__name__ == "UninitializedTensorMixin" for kind in type(tensor).__mro__)


def words_of(tensor: Any) -> str:
    """The words, "not yet initialised" where there is no shape."""
    return "not yet initialised" if is_lazy(tensor) else access.words(tensor)


def numel(tensor: Any) -> int:
    """Elements, 0 where that is open."""
    return 0 if is_lazy(tensor) else int(access.Base.numel(tensor))


def parameters_of(found: list[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """All parameters and buffers of these modules, with their paths."""
    for name, root in found:
        for path, _, module in walk(name, root):
            for kind in ("_parameters", "_buffers"):
                for key, tensor in tensors_in(module, kind):
                    if not is_lazy(tensor):
                        yield f"{path}.{key}", tensor


def counts(module: Any) -> tuple[int, int]:
    """Elements of all parameters below a module, each once; and of those that train."""
    tensors = {
        id(tensor): tensor
        for _, _, one in walk("", module)
        for _, tensor in tensors_in(one, "_parameters")
    }
    try:
        all_of_them = sum(numel(t) for t in tensors.values())
        training = sum(numel(t) for t in tensors.values() if access.get_requires_grad(t))
    except Exception:  # a subclass that does not tell its shape
        return 0, 0
    return all_of_them, training


def detail(module: Any) -> str:
    """What torch's own modules say of themselves; a learner's `extra_repr` is not called."""
    method: Any = getattr(type(module), "extra_repr", None)
    if not str(getattr(method, "__module__", "")).startswith("torch.nn."):
        return ""
    try:
        return access.cut(" ".join(str(method(module)).split()))
    except Exception:  # a module that was taken apart
        return ""
