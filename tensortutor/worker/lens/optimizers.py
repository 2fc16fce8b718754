"""The program's optimizers: parameter groups, and what they remember."""

from typing import Any

import torch

from tensortutor.protocol.lens import Group, OptimizerInfo, Optimizers, Setting, State
from tensortutor.worker import access
from tensortutor.worker.lens import tensor_values
from tensortutor.worker.lens.budget import Budget

MOST_OPTIMIZERS = 20
MOST_GROUPS = 20
MOST_NAMES = 50
MOST_STATES = 20
MOST_PARAMETERS = 5000
LONGEST_VALUE = 60


def optimizers_of(
    found: list[tuple[str, Any]], named: dict[int, str], budget: Budget
) -> Optimizers:
    """named: the learner's names for parameters, by id."""
    told = tuple(tell(name, one, named, budget) for name, one in found[:MOST_OPTIMIZERS])
    return Optimizers(told, max(0, len(found) - len(told)))


def tell(name: str, optimizer: Any, named: dict[int, str], budget: Budget) -> OptimizerInfo:
    """One optimizer."""
    own = access.attributes(optimizer)
    groups = own.get("param_groups")
    state = own.get("state")
    entries = list(dict.values(state))[:MOST_PARAMETERS] if isinstance(state, dict) else []
    entries = [entry for entry in entries if isinstance(entry, dict)]
    return OptimizerInfo(
        access.cut(name),
        access.class_name(optimizer),
        tuple(group(one, named) for one in (groups or [])[:MOST_GROUPS] if type(one) is dict),
        states(entries, budget),
        steps(entries),
    )


def group(one: dict[str, Any], named: dict[int, str]) -> Group:
    """A parameter group: its settings, and what it holds."""
    tensors = [p for p in one.get("params", ()) if access.is_tensor(p)]
    settings = tuple(
        Setting(access.cut(str(key), LONGEST_VALUE), setting(value))
        for key, value in one.items()
        if key not in ("params", "param_names") and type(key) is str
    )
    names = (named.get(id(tensor), "") for tensor in tensors)
    return Group(
        settings,
        tuple([name for name in names if name][:MOST_NAMES]),
        len(tensors),
        sum(int(access.Base.numel(tensor)) for tensor in tensors),
    )


def setting(value: Any) -> str:
    """A number, a truth value, a tuple of them, a 0-d tensor."""
    if access.is_tensor(value):
        if tensor_values.why_unreadable(value) or access.Base.numel(value) != 1:
            return access.words(value)
        return tensor_values.text(access.plain(value).cpu().reshape(-1).tolist()[0])
    if type(value) in (int, float, bool, str, type(None)):
        return access.cut(str(value), LONGEST_VALUE)
    if type(value) in (tuple, list) and all(type(v) in (int, float, bool) for v in value):
        return access.cut(str(tuple(value)), LONGEST_VALUE)
    return access.class_name(value)


def states(entries: list[dict[str, Any]], budget: Budget) -> tuple[State, ...]:
    """What is remembered, key by key, over all parameters."""
    by_key: dict[str, list[Any]] = {}
    for entry in entries:
        for key, value in entry.items():
            if type(key) is str and key != "step" and access.is_tensor(value):
                by_key.setdefault(key, []).append(value)
    return tuple(state(key, kept, budget) for key, kept in list(by_key.items())[:MOST_STATES])


def state(key: str, kept: list[Any], budget: Budget) -> State:
    """One key. The norm is that of all its tensors together."""
    size = sum(int(access.Base.numel(t)) * int(access.Base.element_size(t)) for t in kept)
    norms: list[float] = []
    for tensor in kept:
        norm = tensor_values.norm(tensor) if budget.left(0.15) else None
        if norm is None:
            return State(access.cut(key), len(kept), size)
        norms.append(norm)
    return State(access.cut(key), len(kept), size, float(torch.tensor(norms).norm()))


def steps(entries: list[dict[str, Any]]) -> int | None:
    """The largest step counter."""
    found = [entry["step"] for entry in entries if "step" in entry]
    counts = []
    for one in found:
        if type(one) in (int, float):
            counts.append(int(one))
        elif access.is_tensor(one) and not tensor_values.why_unreadable(one):
            counts.append(int(access.plain(one)))
    return max(counts, default=None)
