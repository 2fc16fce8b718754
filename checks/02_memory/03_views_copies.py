"""Judges lessons/02_memory/03_views_copies.md."""

import copy

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_copy,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "You write checkpoints.",
    "The state is a dict from names to tensors.",
    "If they come out as two, the file grows",
)

REPEATS = (
    "x is expanded or made of overlapping windows here: some of its elements are one number in "
)
REPEATS += "memory. The result has a place for each element, so it cannot have the strides of x."
WHOLE = "The new tensor must not bring the storage along. Which calls copy the elements, and "
WHOLE += "which hand back what they got, or the whole storage?"


def views(rng, device):
    """Views of large storages, none empty: parts of them, rows in other orders, repeats."""
    n = rng.randint(3, 6)
    big = torch.randn(rng.randint(20, 40), n, device=device)
    return {
        "rows": big[:n],
        "a column": big[:, 1],
        "every second row": big[1::2],
        "a transpose": big[: n + 2].T,
        "an expanded row": big[5:6].expand(4, n),
        "overlapping windows": big[2].unfold(0, 2, 1),
        "one number": big[2, 1],
        "bools": (big > 0)[:, :2],
        "bytes": torch.arange(200, dtype=torch.uint8, device=device)[7:20],
        "halves": big.to(torch.bfloat16)[-3:],
        "gaps in a table": big.where(big < 0, torch.nan)[3:6],
        "a part of a parameter": big.clone().requires_grad_()[:, :1],
    }


def compacts(x):
    """x's values in a storage of their own, known to be right."""
    return torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x.detach())


def expect_small(got, name, hint):
    """The storage of `got` holds its elements and nothing else."""
    holds, needs = got.untyped_storage().nbytes(), got.numel() * got.element_size()
    expect_true(
        holds == needs, f"{name} needs {needs} bytes, and its storage has {holds}", hint=hint
    )


def share(a, b):
    return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


def expect_apart(state, name, other, hint):
    """Two names of the state have storages of their own."""
    shared = share(state[name], state[other])
    expect_true(not shared, f"{name!r} and {other!r} share a storage", hint=hint)


@check(
    "compact keeps the values",
    holds=[
        "tensor equal to x in values, shape and dtype, on its device",
        "real numbers of any dtype",
        "it may require grad",
    ],
)
def values(answer, rng, device):
    hint = "Same numbers, same shape, same dtype: only the storage is another."
    for name, x in views(rng, device).items():
        with (
            expect_unchanged(x, hint="compact reads x. It does not write to it."),
            advising(RuntimeError, saying="single memory location", hint=REPEATS),
        ):
            got = answer.compact(x)
        name = f"compact of {name}"
        expect_equal(got, compacts(x), name=name, hint=hint, shape_hint=hint, dtype_hint=hint)


@check(
    "compact holds its own elements and nothing else",
    holds=["its storage has exactly x.numel() elements", "that holds nothing else"],
)
def minimal(answer, rng, device):
    for name, x in views(rng, device).items():
        expect_small(answer.compact(x), f"compact of {name}", hint=WHOLE)


@check(
    "compact shares with nobody, even if there is nothing to shrink",
    holds=["x in a storage of its own", "compact already"],
)
def own(answer, rng, device):
    x = torch.randn(rng.randint(2, 6), rng.randint(2, 6), device=device)
    hint = "Some calls copy only if they must. A tensor that is compact already comes back as it "
    hint += "is, and whoever writes into one writes into both."
    for y in (x, x.T, x[None], x[:1], x.flatten()[:1]):
        expect_copy(answer.compact(y), y, name="compact(x)", hint=hint)


@check("compact takes a tensor without elements", holds="expanded, empty")
def empty(answer, rng, device):
    x = torch.randn(3, rng.randint(2, 6), device=device)
    for y in (x[:0], x[:, 2:2].T, x[:0].expand(4, 0, -1)):
        got = answer.compact(y)
        expect_equal(got, y, name="compact of an empty slice", shape_hint="The shape stays.")
        expect_small(got, "compact of an empty slice", hint=WHOLE)


@check("compact_state keeps names and values", holds="dict of the same names")
def state_values(answer, rng, device):
    state = views(rng, device)
    state["none"] = state["rows"][:0]
    got = answer.compact_state(dict(state))
    wanted = {name: compacts(x) for name, x in state.items()}
    other = "It came back as the tensor of another name. What makes two tensors the same one?"
    expect_equal(
        got, wanted, name="the state", hint="Every name comes back with its values.",
        shape_hint=other, dtype_hint=other,
    )  # fmt: skip
    expect_equal(answer.compact_state({}), {}, name="of an empty dict, the state")


@check(
    "compact_state leaves no name with more than its elements",
    holds=[
        "Some of them are small views of something large, and the file must not hold the rest.",
        "All tensors compact",
    ],
)
def state_minimal(answer, rng, device):
    got = answer.compact_state(views(rng, device))
    for name, x in got.items():
        expect_small(x, f"{name!r}", hint=WHOLE)


@check(
    "names for the same elements still share",
    holds=[
        "Others are one tensor under two names",
        "`is` will not find those: every `detach()` makes a new Python object",
        "Names that stand for the same label (first element, shape, strides, dtype) on the same "
        "storage share one compact tensor",
    ],
)
def tied(answer, rng, device):
    big = torch.randn(40, rng.randint(3, 6), device=device)
    for x in (big[2:5], big[:, 1], big[3:6].T, big):
        state = {"embed": x, "bias": big[7], "head": x.detach(), "again": x, "as": x.view_as(x)}
        got = answer.compact_state(state)
        hint = "Different Python objects may be labels on the same elements. Compare what the "
        hint += "labels say, not the objects."
        for name in ("head", "again", "as"):
            still = share(got[name], got["embed"])
            expect_true(still, f"{name!r} and 'embed' no longer share a storage", hint=hint)
            expect_equal(got[name], compacts(x), name=f"{name!r}", hint=hint)
        expect_small(got["head"], "'head'", hint=WHOLE)


@check("different views of one storage share nothing", holds="No others share")
def apart(answer, rng, device):
    n = rng.randint(4, 6)
    x = torch.randn(n, n, device=device)
    hint = "A common storage, or a common first element, does not make two tensors the same. All "
    hint += "of the label must agree: first element, shape, strides and dtype."
    state = {"all": x, "turned": x.T, "rows": x[:2], "more": x[1:], "column": x[:, 0], "row": x[0]}
    state |= {"next rows": x[1:3], "next row": x[1], "bits": x.view(torch.int32)}
    wanted = {name: compacts(y) for name, y in state.items()}
    got = answer.compact_state(state)
    expect_equal(got, wanted, name="the state", hint=hint, shape_hint=hint, dtype_hint=hint)
    names = list(state)
    for i, name in enumerate(names):
        for other in names[:i]:
            expect_apart(got, other, name, hint)


@check(
    "equal values do not tie",
    holds=["And equal values prove nothing.", "Many biases are zeros."],
)
def equal_values(answer, rng, device):
    n = rng.randint(2, 6)
    weight = torch.randn(n, device=device)
    state = {"b1": torch.zeros(n, device=device), "b2": torch.zeros(n, device=device)}
    state |= {"w": weight, "ema": weight.clone()}
    got = answer.compact_state(state)
    hint = "Two biases that are both zero today are not the same bias. Ask where the elements "
    hint += "live, not what they are."
    expect_apart(got, "b1", "b2", hint)
    expect_apart(got, "w", "ema", hint)


@check(
    "the state that came in is left alone",
    holds=["dict of names to tensors; stays as it is", "new dict"],
)
def left_alone(answer, rng, device):
    state = views(rng, device)
    before = dict(state)
    hint = "Return a new dict, with new tensors in it. Training goes on with the old ones."
    with expect_unchanged(*before.values(), hint=hint):
        got = answer.compact_state(state)
    same = state.keys() == before.keys() and all(state[name] is before[name] for name in before)
    expect_true(same, "the dict that came in was changed", hint=hint)
    for name, x in before.items():
        expect_copy(got[name], x, name=f"{name!r}", hint=hint)


@check("a second call sees what training has changed", holds="with the values of now")
def called_again(answer, rng, device):
    x = torch.randn(rng.randint(2, 6), 3, device=device)
    state = {"embed": x[:2], "head": x[:2].detach()}
    first = answer.compact_state(state)
    kept = compacts(first["embed"])
    x += 1
    hint = "Remember what you made for the length of one call. The next checkpoint has new values."
    second = answer.compact_state(state)
    expect_equal(second["embed"], compacts(x[:2]), name="'embed', after an update", hint=hint)
    earlier = "'embed' of the first checkpoint, after the second,"
    expect_equal(first["embed"], kept, name=earlier, hint=hint)


@mutant("forgets where the first element lies", caught_by=apart)
def compact_state(state):
    made, out = {}, {}
    for name, x in state.items():
        label = (x.untyped_storage().data_ptr(), x.shape, x.stride(), x.dtype)
        key = label if x.numel() else name
        if key not in made:
            made[key] = compact(x)
        out[name] = made[key]
    return out


@mutant("asks for contiguous memory", caught_by=minimal)
def compact(x):
    return x.contiguous()


@mutant("detaches", caught_by=minimal)
def compact(x):
    return x.detach()


@mutant("reshapes to the same shape", caught_by=own)
def compact(x):
    return x.reshape(x.shape)


@mutant("converts to the dtype that it has", caught_by=own)
def compact(x):
    return x.to(x.dtype)


@mutant("copies only what is not compact", caught_by=own)
def compact(x):
    full = x.untyped_storage().nbytes() == x.numel() * x.element_size()
    return x if full else x.clone()


@mutant("copies deeply", caught_by=minimal)
def compact(x):
    return copy.deepcopy(x)


@mutant("flattens through a list", caught_by=values)
def compact(x):
    return torch.tensor(x.tolist(), device=x.device)


@mutant("goes through NumPy", caught_by=values)
def compact(x):
    return torch.from_numpy(x.cpu().numpy().copy()).to(x.device)


@mutant("makes room for float32", caught_by=values)
def compact(x):
    return torch.empty(x.shape, device=x.device).copy_(x)


@mutant("leaves a gap at the end", caught_by=empty)
def compact(x):
    room = x.new_empty(max(x.numel(), 1))[: x.numel()]
    return room.view(x.shape).copy_(x)


@mutant("unties", caught_by=tied)
def compact_state(state):
    return {name: x.clone() for name, x in state.items()}


@mutant("goes by the Python object", caught_by=tied)
def compact_state(state):
    made = {id(x): x.clone() for x in state.values()}
    return {name: made[id(x)] for name, x in state.items()}


@mutant("copies the whole state deeply", caught_by=state_minimal)
def compact_state(state):
    return copy.deepcopy(state)


@mutant("remembers from call to call", caught_by=called_again)
def compact_state(state, made={}):  # noqa: B006
    result = {}
    for name, x in state.items():
        label = (x.data_ptr(), x.shape, x.stride(), x.dtype)
        made.setdefault(label, x.clone())
        result[name] = made[label]
    return result


def by_label(state, label):
    """Tie what has the same label."""
    made = {}
    for x in state.values():
        made.setdefault(label(x), x.clone())
    return {name: made[label(x)] for name, x in state.items()}


@mutant("ties what shares a storage", caught_by=apart)
def compact_state(state):
    return by_label(state, lambda x: x.untyped_storage().data_ptr())


@mutant("ties what begins at the same place", caught_by=apart)
def compact_state(state):
    return by_label(state, lambda x: x.data_ptr())


@mutant("forgets the strides", caught_by=apart)
def compact_state(state):
    return by_label(state, lambda x: (x.data_ptr(), x.shape, x.dtype))


@mutant("forgets the shape", caught_by=apart)
def compact_state(state):
    return by_label(state, lambda x: (x.data_ptr(), x.stride(), x.dtype))


@mutant("forgets the dtype", caught_by=apart)
def compact_state(state):
    return by_label(state, lambda x: (x.data_ptr(), x.shape, x.stride()))


@mutant("forgets where it begins", caught_by=state_values)
def compact_state(state):
    return by_label(state, lambda x: (x.untyped_storage().data_ptr(), x.stride(), x.dtype, x.ndim))


@mutant("ties what is equal", caught_by=equal_values)
def compact_state(state):
    return by_label(state, lambda x: (str(x.tolist()), x.shape, x.dtype))


@mutant("replaces the tensors in the caller's dict", caught_by=left_alone)
def compact_state(state):
    state.update(by_label(state, lambda x: (x.data_ptr(), x.shape, x.stride(), x.dtype)))
    return state


@hinted(1, reaches=empty)
def compact(x):
    return x.clone()


@accepted("fills an empty tensor")
def compact(x):
    return torch.empty(x.shape, dtype=x.dtype, device=x.device).copy_(x)


@accepted("clones in row-major order")
def compact(x):
    return x.clone(memory_format=torch.contiguous_format)


@accepted("stacks it alone")
def compact(x):
    return torch.stack([x])[0]


@accepted("asks is_set_to for each pair, and ties with a view")
def compact_state(state):
    result = {}
    for name, x in state.items():
        for other, y in result.items():
            if x.dtype == y.dtype and x.is_set_to(state[other]):
                result[name] = y.view_as(y)
                break
        else:
            result[name] = x.clone()
    return result


@accepted("goes by storage and offset")
def compact_state(state):
    return by_label(
        state,
        lambda x: (
            x.untyped_storage().data_ptr(),
            x.storage_offset() * x.element_size(),
            tuple(x.shape),
            x.stride(),
            str(x.dtype),
        ),
    )
