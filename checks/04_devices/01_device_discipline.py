"""Judges lessons/04_devices/01_device_discipline.md."""

import copy
from collections import namedtuple

import torch
from torch import nn
from torch.utils._pytree import tree_map

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
    recorded,
)

background("Two parts of a script run on a laptop", "Its class takes its items one by one")

META = torch.device("meta")
DEVICE = "`device` is a torch.device here. It may be a text as well: `t.to(device)` takes both."
Pair = namedtuple("Pair", "image label")
Single = namedtuple("Single", "only")
Nothing = namedtuple("Nothing", "")


def expect_on(got, device, name, hint):
    """`got` is a tensor on the device."""
    expect_true(isinstance(got, torch.Tensor), f"{name} is no tensor")
    wanted = torch.empty(0, device=device).device
    expect_true(got.device == wanted, f"{name} is on {got.device}, not on {wanted}", hint=hint)


@check(
    "the tensors of a dict arrive on the device",
    holds="Write `to_device`, which moves all tensors of such a nest.",
)
def arrives(answer, rng, device):
    n = rng.randrange(1, 6)
    start = {"x": torch.randn(n, 3), "y": torch.arange(n)}
    start["leaf"] = torch.randn(n, requires_grad=True)
    start["parameter"] = nn.Parameter(torch.randn(n))
    with advising(TypeError, hint=DEVICE), advising(AttributeError, hint=DEVICE):
        got = answer.to_device(start, META)
    expect_true(isinstance(got, dict), f"a dict came back as {type(got).__name__}")
    kept = "`t.to(device)` leaves t where it is and returns another tensor. Is the result kept?"
    plain = "An nn.Parameter is a tensor too: isinstance says so, type(t) is torch.Tensor does not."
    for key in start:
        hint = plain if key == "parameter" else kept
        expect_on(got[key], META, f"the tensor under {key!r}", hint=hint)


@check("values, shapes and dtypes stay", holds="The batch with every tensor in it on device.")
def values(answer, rng, device):
    n = rng.randrange(2, 6)
    start = {
        "float": torch.randn(n, 3),
        "turned": torch.randn(n, 3).T,
        "int": torch.arange(n),
        "bool": torch.arange(n) > 1,
        "half": torch.randn(n).to(torch.bfloat16),
        "0-d": torch.tensor(rng.random()),
        "nan": torch.tensor([float("nan"), float("inf"), -0.0]),
        "empty": torch.zeros(0, n),
    }
    got = answer.to_device(start, device)
    wanted = {key: t.to(device) for key, t in start.items()}
    hint = "Only the device changes."
    expect_equal(got, wanted, name="the batch", hint=hint, shape_hint=hint, dtype_hint=hint)


@check(
    "a bare tensor is a batch too",
    holds=["a torch.device or its name", "a tensor; a dict, list, tuple or named tuple of batches"],
    both_sides=True,
)
def bare(answer, rng, device):
    for where in ("meta", META):
        got = answer.to_device(torch.randn(rng.randrange(1, 5)), where)
        expect_on(
            got,
            META,
            "the tensor",
            hint="The smallest nest is one tensor. And `device` may be a text as well as a "
            "torch.device, as it may for `to`.",
        )


@check(
    "tensors deep inside a nest arrive",
    holds=[
        "Batches are nests: dicts of tensors, pairs, lists with texts among them.",
        "which moves all tensors of such a nest",
    ],
)
def deep(answer, rng, device):
    def t():
        return torch.randn(rng.randrange(1, 4))

    start = [{"a": [t(), {7: t()}]}, [[t(), "cat"]], t(), ({"b": (t(),)}, "dog")]
    got = answer.to_device(start, META)
    hint = "A value may be a container itself, to any depth. Who can move a nest?"
    places = {
        "[0]['a'][0]": lambda g: g[0]["a"][0],
        "[0]['a'][1][7]": lambda g: g[0]["a"][1][7],
        "[1][0][0]": lambda g: g[1][0][0],
        "[2]": lambda g: g[2],
        "[3][0]['b'][0]": lambda g: g[3][0]["b"][0],
    }
    for place, take in places.items():
        expect_on(take(got), META, f"the tensor at {place}", hint)


@check(
    "lists stay lists, tuples stay tuples",
    holds=["the same kinds of containers", "empty ones too"],
)
def kinds(answer, rng, device):
    n = rng.randrange(1, 4)
    for start in ([torch.zeros(n)], (torch.zeros(n), torch.ones(2)), (torch.zeros(n),), [], (), {}):
        got = answer.to_device(start, device)
        kind = type(start).__name__
        expect_true(
            type(got) is type(start) and len(got) == len(start),
            f"a {kind} of {len(start)} came back as a {type(got).__name__}",
            hint="The caller unpacks what comes back. Make each container of the type that it had.",
        )


@check("a named tuple keeps its names", holds="A named tuple is a tuple whose places have names")
def named(answer, rng, device):
    start = [Pair(torch.randn(rng.randrange(1, 4)), {"id": torch.arange(2)})]
    got = answer.to_device(start, META)[0]
    expect_true(
        isinstance(got, Pair) and len(got) == 2,
        f"a named tuple came back as {type(got).__name__} of {len(got)}",
        hint="It is an instance of tuple, but its class, type(batch), takes the items one by "
        "one: Pair(*items). It is known by its `_fields`.",
    )
    expect_on(got.image, META, "`image`", hint="The items of a named tuple are batches too.")
    expect_true(isinstance(got.label, dict), "`label` is no dict any more")
    expect_on(got.label["id"], META, "`label['id']`", hint="The items may be nests.")
    for start in (Single(torch.zeros(2)), Nothing()):
        got = answer.to_device(start, META)
        expect_true(
            type(got) is type(start) and len(got) == len(start),
            f"a named tuple of {len(start)} came back as {type(got).__name__} of {len(got)}",
            hint="A named tuple may have any number of places.",
        )


@check(
    "what is no tensor is handed on",
    holds="or anything else, which is handed on as it is",
    both_sides=True,
)
def others(answer, rng, device):
    thing = object()
    start = {
        "name": "cat",
        "n": rng.randrange(9),
        "none": None,
        "thing": thing,
        "text": ("a", b"b"),
    }
    got = answer.to_device(start, META)
    hint = "Texts, numbers and None have no device. A text is no list of letters here."
    expect_true(isinstance(got, dict), f"a dict came back as {type(got).__name__}")
    for key, value in got.items():
        expect_true(not isinstance(value, torch.Tensor), f"{key!r} became a tensor", hint=hint)
    copied = type(got.get("thing")) is object and got["thing"] is not thing
    expect_true(not copied, "an object was copied", hint="Hand it on as it is.")
    expect_equal(got, start, name="the batch without tensors", hint=hint)
    for what in (range(3), {1, 2}, slice(2), iter([torch.zeros(1)])):
        kept = "Dicts, lists and tuples are taken apart. Anything else is handed on, though one "
        kept += "can go through it with `for`."
        with advising(TypeError, hint=kept):
            same = answer.to_device([what], META)[0] is what
        expect_true(same, f"a {type(what).__name__} was taken apart or copied", hint=kept)
    layer = nn.Linear(1, 1)
    same = answer.to_device([layer], META)[0] is layer
    expect_true(
        same and layer.weight.device.type == "cpu",
        "a module in the batch was moved",
        hint="A module has a `to` as well, and is no tensor: it is handed on as it is, where it "
        "is. isinstance(value, torch.Tensor) tells them apart.",
    )


@check(
    "the caller's containers stay as they were",
    holds=["made anew, empty ones too", "The caller's containers stay as they are"],
)
def untouched(answer, rng, device):
    x, y, z = torch.randn(2), torch.randn(3), torch.randn(rng.randrange(1, 4))
    inner, outer = [y], {"x": x, "z": (z,)}
    outer["list"] = inner
    got = answer.to_device(outer, META)
    same = outer["x"] is x and inner[0] is y and outer["z"][0] is z and outer["list"] is inner
    hint = "Writing into the caller's dict or list moves the caller's batch. Build new ones."
    expect_true(same and len(outer) == 3, "the batch that was passed in has changed", hint=hint)
    expect_true(
        got is not outer and got["list"] is not inner,
        "a container of the caller came back",
        hint="If caller and result share a list, each sees what the other changes. " + hint,
    )
    hollow = {"list": [], "dict": {}}
    got = answer.to_device(hollow, META)
    for key, container in hollow.items():
        expect_true(
            got[key] is not container,
            f"an empty {key} of the caller came back",
            hint="An empty container is one too: the caller may fill it later. " + hint,
        )


@check(
    "a tensor that is there already is not copied",
    holds="A tensor that is on device already is handed on, not copied.",
)
def no_copy(answer, rng, device):
    x = torch.randn(rng.randrange(1, 5), 3, device=device)
    start = {"x": x, "rows": [x[:1], x.T]}
    got = answer.to_device(start, device)
    same = got["x"] is x and all(a is b for a, b in zip(got["rows"], start["rows"], strict=True))
    expect_true(
        same,
        "a tensor on the right device was made anew",
        hint="`to` returns the tensor itself if there is nothing to do. Nothing else is needed.",
    )


@check(
    "Normalize gives each channel mean 0 and std 1",
    holds="(x - mean) / std for each of C channels.",
    both_sides=True,
)
def normalises(answer, rng, device):
    for b, c in ((rng.randrange(2, 6), rng.randrange(2, 5)), (1, 3), (4, 1), (0, 2)):
        mean, std = torch.randn(c, device=device), torch.rand(c, device=device) + 0.5
        std[0] = 1e-4  # nothing is to be added to it
        x = torch.randn(b, c, device=device)
        with expect_unchanged(x, mean, std):
            norm = answer.Normalize(mean, std)
            got = recorded(answer, "Normalize(mean, std)", norm)(x)
        hint = "Subtract the mean, then divide by std, as it is: (x - mean) / std."
        expect_close(got, (x - mean) / std, hint=hint)


@check(
    "mean and std move with the module",
    holds=[
        "And mend `Normalize`, so that its two tensors move with the module.",
        "its attributes `mean` and `std`",
        "They follow `to`, of a device or of a dtype, of the module or of a model that it is a "
        "part of",
    ],
    side="device",
)
def moves(answer, rng, device):
    c = rng.randrange(1, 5)
    norm = answer.Normalize(torch.randn(c), torch.rand(c) + 0.5)
    moved = norm.to("meta")
    for name in ("mean", "std"):
        message = f"the module has no attribute `{name}`"
        expect_true(hasattr(moved, name), message, hint="Others read them by these names.")
        expect_on(
            getattr(moved, name),
            META,
            f"`{name}` after .to('meta')",
            hint="`to` moves what is registered. A tensor in a plain attribute is not.",
        )
    call = recorded(answer, "Normalize(mean, std)", moved)
    model = nn.Sequential(answer.Normalize(torch.randn(c), torch.rand(c) + 0.5)).to("meta")
    for name in ("mean", "std"):
        expect_on(
            getattr(model[0], name),
            META,
            f"`{name}`, after .to('meta') of a model that Normalize is a part of,",
            hint="Moving a model moves what its parts have registered. It does not call `to` of "
            "each part, so a `to` of your own is passed over.",
        )
    hint = "What is computed with must have moved as well, and nothing else must be made."
    expect_on(call(torch.randn(3, c, device="meta")), META, "the output", hint=hint)


@check(
    "they follow a change of dtype",
    holds="They follow `to`, of a device or of a dtype, of the module or of a model that it is a "
    "part of",
    side="dtype",
)
def dtype(answer, rng, device):
    mean, std = torch.randn(3, device=device), torch.rand(3, device=device) + 0.5
    norm = answer.Normalize(mean, std).to(torch.float64)
    x = torch.randn(2, 3, device=device, dtype=torch.float64)
    expect_close(
        recorded(answer, "Normalize(mean, std)", norm)(x),
        (x - mean.double()) / std.double(),
        dtype_hint="A module converts what it has registered, as it moves it.",
    )
    model = nn.Sequential(answer.Normalize(mean, std)).to(torch.float16)
    expect_true(
        model[0].mean.dtype == model[0].std.dtype == torch.float16,
        f"after .to(torch.float16) of a model, mean is {model[0].mean.dtype} in it",
        hint="A module converts what it has registered, as it moves it.",
    )


@check("nothing in it is trained", holds=["They are not for training.", "no parameters"])
def not_trained(answer, rng, device):
    norm = answer.Normalize(torch.zeros(3, device=device), torch.ones(3, device=device))
    found = [name for name, _ in norm.named_parameters()]
    expect_true(
        not found,
        f"an optimizer would train {' and '.join(found)}",
        hint="Parameters move, and are trained. Buffers move, and are not.",
    )


@mutant("drops the result of to", caught_by=arrives)
def to_device(batch, device):
    for value in batch.values():
        if isinstance(value, torch.Tensor):
            value.to(device)
    return batch


@mutant("moves the first level only", caught_by=deep)
def to_device(batch, device):
    if isinstance(batch, dict):
        return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}
    if isinstance(batch, (list, tuple)):
        return type(batch)(v.to(device) if isinstance(v, torch.Tensor) else v for v in batch)
    return batch.to(device)


@mutant("turns tuples into lists", caught_by=kinds)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if isinstance(batch, (list, tuple)):
            return [go(item) for item in batch]
        return batch.to(device) if isinstance(batch, torch.Tensor) else batch

    return go(batch)


@mutant("turns named tuples into tuples", caught_by=named)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if isinstance(batch, list):
            return [go(item) for item in batch]
        if isinstance(batch, tuple):
            return tuple(go(item) for item in batch)
        return batch.to(device) if isinstance(batch, torch.Tensor) else batch

    return go(batch)


@mutant("hands a named tuple its items as one list", caught_by=named)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)([go(item) for item in batch])
        return batch.to(device) if isinstance(batch, torch.Tensor) else batch

    return go(batch)


@mutant("writes into the caller's containers", caught_by=untouched)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, dict):
            batch.update({key: go(value) for key, value in batch.items()})
        elif isinstance(batch, list):
            batch[:] = [go(item) for item in batch]
        elif isinstance(batch, tuple):
            moved = [go(item) for item in batch]
            return type(batch)(*moved) if hasattr(batch, "_fields") else type(batch)(moved)
        return batch.to(device) if isinstance(batch, torch.Tensor) else batch

    return go(batch)


@mutant("makes tensors of numbers", caught_by=others)
def to_device(batch, device):
    def move(leaf):
        leaf = torch.tensor(leaf) if isinstance(leaf, int) else leaf
        return leaf.to(device) if isinstance(leaf, torch.Tensor) else leaf

    return tree_map(move, batch)


@mutant("copies in any case", caught_by=no_copy)
def to_device(batch, device):
    return tree_map(lambda t: t.to(device, copy=True) if isinstance(t, torch.Tensor) else t, batch)


@mutant("takes apart whatever can be gone through", caught_by=others)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(device)
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if hasattr(batch, "_fields"):
            return type(batch)(*[go(item) for item in batch])
        if hasattr(batch, "__iter__") and not isinstance(batch, (str, bytes)):
            return type(batch)([go(item) for item in batch])
        return batch

    return go(batch)


@mutant("hands empty containers on", caught_by=untouched)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(device)
        if not batch:
            return batch
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if hasattr(batch, "_fields"):
            return type(batch)(*[go(item) for item in batch])
        if isinstance(batch, (list, tuple)):
            return type(batch)(go(item) for item in batch)
        return batch

    return go(batch)


@mutant("moves whatever has a to", caught_by=others)
def to_device(batch, device):
    return tree_map(lambda t: t.to(device) if hasattr(t, "to") else t, batch)


@mutant("makes everything float32", caught_by=values)
def to_device(batch, device):
    def move(t):
        return t.to(device, torch.float32) if isinstance(t, torch.Tensor) else t

    return tree_map(move, batch)


@mutant("keeps plain attributes", caught_by=moves)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean
        self.std = std

    def forward(self, x):
        return (x - self.mean) / self.std


@mutant("has a to of its own, which a model does not call", caught_by=moves)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean, std

    def to(self, *args, **kwargs):
        self.mean = self.mean.to(*args, **kwargs)
        self.std = self.std.to(*args, **kwargs)
        return super().to(*args, **kwargs)

    def forward(self, x):
        return (x - self.mean) / self.std


@mutant("fetches the constants in every call", caught_by=moves)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = mean
        self.std = std

    def forward(self, x):
        return (x - self.mean.to(x)) / self.std.to(x)


@mutant("makes parameters of them", caught_by=not_trained)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = nn.Parameter(mean, requires_grad=False)
        self.std = nn.Parameter(std, requires_grad=False)

    def forward(self, x):
        return (x - self.mean) / self.std


@mutant("adds something to std", caught_by=normalises)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        return (x - self.mean) / (self.std + 1e-5)


@mutant("divides first", caught_by=normalises)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        return x / self.std - self.mean


@mutant("asks for the exact type of a tensor", caught_by=arrives)
def to_device(batch, device):
    return tree_map(lambda t: t.to(device) if type(t) is torch.Tensor else t, batch)


@mutant("copies the whole batch deeply first", caught_by=no_copy)
def to_device(batch, device):
    def move(t):
        return t.to(device) if isinstance(t, torch.Tensor) else t

    return tree_map(move, copy.deepcopy(batch))


@mutant("cuts the history of what it moves", caught_by=no_copy)
def to_device(batch, device):
    return tree_map(lambda t: t.detach().to(device) if isinstance(t, torch.Tensor) else t, batch)


@mutant("gives the buffers names of its own", caught_by=moves)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("m", mean)
        self.register_buffer("s", std)

    def forward(self, x):
        return (x - self.m) / self.s


@mutant("takes a pair for a named tuple", caught_by=kinds)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(device)
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if isinstance(batch, list):
            return [go(item) for item in batch]
        if isinstance(batch, tuple):
            return Pair(*[go(item) for item in batch])
        return batch

    return go(batch)


@mutant("takes device for a torch.device", caught_by=bare)
def to_device(batch, device):
    def move(t):
        here = not isinstance(t, torch.Tensor) or t.device.type == device.type
        return t if here else t.to(device)

    return tree_map(move, batch)


@mutant("moves one of the two", caught_by=moves)
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.register_buffer("mean", mean)
        self.std = std

    def forward(self, x):
        return (x - self.mean) / self.std.to(x)


@hinted(1, reaches=deep)
def to_device(batch, device):
    def go(batch):
        if isinstance(batch, torch.Tensor):
            return batch.to(device)
        if isinstance(batch, dict):
            return {key: go(value) for key, value in batch.items()}
        if isinstance(batch, (list, tuple)):
            return type(batch)(go(item) for item in batch)
        return batch

    return go(batch)


@accepted("lets torch walk the nest")
def to_device(batch, device):
    return tree_map(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, batch)


@accepted("asks for one kind after the other, and copies without waiting")
def to_device(batch, device):
    def move(batch):
        match batch:
            case torch.Tensor():
                return batch.to(device, non_blocking=True)
            case dict():
                return dict(zip(batch, [move(value) for value in batch.values()], strict=True))
            case list():
                return list(map(move, batch))
            case tuple():
                moved = map(move, batch)
                return batch._make(moved) if hasattr(batch, "_make") else tuple(moved)
        return batch

    return move(batch)


@accepted("moves its attributes whenever a module is moved")
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean, self.std = mean, std

    def _apply(self, fn, recurse=True):
        self.mean, self.std = fn(self.mean), fn(self.std)
        return super()._apply(fn, recurse)

    def forward(self, x):
        return (x - self.mean) / self.std


@accepted("keeps the buffers out of the checkpoint")
class Normalize(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = nn.Buffer(mean, persistent=False)
        self.std = nn.Buffer(std, persistent=False)

    def forward(self, x):
        return x.sub(self.mean).div(self.std)
