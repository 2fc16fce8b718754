"""Judges lessons/04_devices/03_meta_device.md."""

import inspect

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Will it fit, and how do we get it in?",
    "Write both halves of loading a model",
    "`build` is a function without arguments",
    "Run normally, it would take memory",
    "`dtype.itemsize` is how many bytes",
    "The `build` below puts two layers",
    "`nn.BatchNorm1d(30)` brings buffers along",
)

BUILT_FOR_REAL = (
    "build() ran where tensors have numbers: memory was taken and filled. Inside "
    'torch.device("meta") used with `with`, the same call makes labels alone.'
)

CONVERTS = (
    "A module is not converted to integers. Nothing needs to be converted: `dtype.itemsize` is the "
    "size of one number."
)
FINFO = "`finfo` takes no integers, and counts bits. `dtype.itemsize` serves every dtype."


def has_no_memory(tensor):
    """A meta tensor, or one of those that compilers trace with, which pretend to have a device."""
    return tensor.device.type == "meta" or type(tensor).__name__ == "FakeTensor"


def on_meta(make):
    """A `build` that makes its module if that costs nothing, and fails the check if not."""

    def build():
        tensor = torch.empty(0)
        if not has_no_memory(tensor):
            fail(f"build() ran on {tensor.device.type}", hint=BUILT_FOR_REAL)
        return make()

    return build


class Tied(nn.Module):
    """Two layers that share one weight."""

    def __init__(self, n, m):
        super().__init__()
        self.first = nn.Linear(n, m, bias=False)
        self.last = nn.Linear(n, m, bias=False)
        self.last.weight = self.first.weight


def stack(rng):
    """A function that builds layers with parameters and buffers."""
    a, b, c = (rng.randrange(1, 6) for _ in range(3))

    def make():
        return nn.Sequential(nn.Linear(a, b), nn.BatchNorm1d(b), nn.Linear(b, c, bias=False))

    return make


@check(
    "param_bytes builds the model on meta",
    holds="In your functions it must not get that far.",
)
def counts_on_meta(answer, rng, device):
    seen = []

    def build():
        model = nn.Linear(rng.randrange(1, 9), 3)
        seen.append(model.weight)
        return model

    answer.param_bytes(build, torch.float32)
    expect_true(seen, "build was never called")
    real = [weight.device.type for weight in seen if not has_no_memory(weight)]
    expect_true(not real, f"the model was built on {' and '.join(real)}", hint=BUILT_FOR_REAL)


@check(
    "40 billion weights are counted exactly",
    holds="Bytes that the parameters of build()'s model take in dtype.",
)
def large(answer, rng, device):
    n = 200_000 + rng.randrange(1000)
    got = answer.param_bytes(on_meta(lambda: nn.Linear(n, n)), torch.bfloat16)
    hint = "A weight for each pair, a bias for each output, 2 bytes each."
    if got == n * 2:
        hint = "These are the bytes of the bias alone. On meta, data_ptr() is 0 for every tensor: "
        hint += "it tells no two apart. parameters() hands out each of them once."
    expect_equal(got, (n * n + n) * 2, name=f"the bytes of Linear({n}, {n}) in bfloat16", hint=hint)


@check(
    "the dtype asked for is the one that counts",
    holds=[
        "the dtype to count for, such as torch.bfloat16 or torch.int8",
        "build may use another one",
    ],
    both_sides=True,
)
def dtypes(answer, rng, device):
    a, b = rng.randrange(1, 9), rng.randrange(1, 9)
    build = on_meta(lambda: nn.Linear(a, b, dtype=rng.choice([torch.float64, torch.float32])))
    for dtype, size in (
        (torch.float64, 8),
        (torch.float32, 4),
        (torch.bfloat16, 2),
        (torch.float16, 2),
        (torch.int8, 1),
    ):
        with (
            advising(TypeError, saying="finfo", hint=FINFO),
            advising(TypeError, saying="only accepts", hint=CONVERTS),
        ):
            got = answer.param_bytes(build, dtype)
        expect_equal(
            got,
            (a * b + b) * size,
            name=f"the bytes of Linear({a}, {b}) in {dtype}",
            hint="build chose a dtype of its own. How many bytes has one number in the dtype "
            "that is asked for? `finfo` counts bits, and takes no integers.",
        )


@check("buffers are not parameters", holds="parameters alone, frozen ones too, without the buffers")
def no_buffers(answer, rng, device):
    make = stack(rng)
    wanted = 4 * sum(p.numel() for p in make().parameters())
    expect_equal(
        answer.param_bytes(on_meta(make), torch.float32),
        wanted,
        name="the bytes of a model with BatchNorm",
        hint="A state_dict holds the running statistics as well. Ask for the parameters.",
    )


@check(
    "a shared parameter counts once, a frozen one counts",
    holds=["frozen ones too", "and a parameter that is used twice counts once"],
)
def once(answer, rng, device):
    n, m = rng.randrange(1, 6), rng.randrange(1, 6)
    expect_equal(
        answer.param_bytes(on_meta(lambda: Tied(n, m)), torch.float32),
        4 * n * m,
        name="the bytes of two layers with one weight",
        hint="Two names, one tensor. `parameters()` hands it out once, a state_dict twice.",
    )
    expect_equal(
        answer.param_bytes(on_meta(lambda: nn.Linear(n, m).requires_grad_(False)), torch.float32),
        4 * (n * m + m),
        name="the bytes of a frozen layer",
        hint="A parameter that is not trained takes memory all the same.",
    )
    expect_equal(
        answer.param_bytes(on_meta(nn.Identity), torch.float32),
        0,
        name="the bytes of a model without parameters",
    )


@check(
    "the default device is what it was before",
    holds="Afterwards new tensors are made where they were made before, even if build raises an "
    "error.",
)
def default(answer, rng, device):
    before = torch.empty(0).device
    make = stack(rng)
    state = make().state_dict()
    count, load = (inspect.unwrap(f) for f in (answer.param_bytes, answer.from_checkpoint))
    count(make, torch.float32)  # unwrapped: between two calls the settings are put back
    after = torch.empty(0).device
    load(make, state, device)
    later = torch.empty(0).device
    expect_true(
        after == later == before,
        f"afterwards a new tensor is on {after if after != before else later}, not on {before}",
        hint="torch.set_default_device holds for the whole program. A `with` block ends.",
    )

    def broken():
        raise KeyError("no such layer")

    for call in (lambda: count(broken, torch.float32), lambda: load(broken, state, device)):
        with expect_raises(KeyError, "build raised an error, and it did not reach the caller"):
            call()
        expect_true(
            torch.empty(0).device == before,
            "after an error in build, new tensors are made on another device than before",
            hint="An error leaves the function at once. A `with` block ends all the same.",
        )

    def one_layer():
        return nn.Linear(2, 3)

    state_of_one = one_layer().state_dict()
    torch.set_default_device("meta")
    count(one_layer, torch.float32)
    after = torch.empty(0).device
    load(one_layer, state_of_one, device)
    later = torch.empty(0).device
    torch.set_default_device(None)
    other = after if after.type != "meta" else later
    expect_true(
        other.type == "meta",
        f"the caller's default device was meta, and afterwards a new tensor is on {other}",
        hint="The default before need not be the CPU: put back what it was. A `with` block does.",
    )


@check(
    "from_checkpoint initialises nothing",
    holds=[
        "In your functions it must not get that far.",
        "No parameter is initialised only to be overwritten.",
    ],
)
def loads_on_meta(answer, rng, device):
    make = stack(rng)
    answer.from_checkpoint(on_meta(make), make().state_dict(), device)


@check(
    "parameters and buffers have the checkpoint's numbers",
    holds=[
        "A model of build()'s that has its numbers from state.",
        "dict from names to CPU tensors, as state_dict() gives it",
        "the model may keep these very tensors",
    ],
)
def loaded(answer, rng, device):
    make = stack(rng)
    source = make()
    with torch.no_grad():
        for t in source.state_dict().values():
            t.copy_(torch.randn(t.shape).abs() * 9)
    state = {name: t.clone() for name, t in source.state_dict().items()}
    before = dict(state)
    model = answer.from_checkpoint(make, state, device)
    same = state.keys() == before.keys() and all(state[name] is before[name] for name in state)
    expect_true(
        same,
        "the caller's state has other entries than before",
        hint="The caller may load a second model from it. Make a dict of your own.",
    )
    expect_true(isinstance(model, nn.Module), f"a {type(model).__name__} came back, no module")
    got = model.state_dict()
    for name, wanted in source.state_dict().items():
        expect_true(
            got[name].device.type != "meta",
            f"{name} is still on meta",
            hint="Without assign=True, loading copies into the tensors that are there, and meta "
            "tensors have no place for a number.",
        )
        expect_equal(
            got[name].cpu(),
            wanted,
            name=name,
            hint="`to_empty` gets memory and nothing else. The numbers come from state, and "
            "they come last.",
        )


@check(
    "the model is on the device and computes",
    holds=["where all of the returned model lies, buffers too", "ready to compute"],
)
def computes(answer, rng, device):
    make = stack(rng)
    source = make().eval()
    model = answer.from_checkpoint(make, source.state_dict(), device).eval()
    where = torch.empty(0, device=device).device
    for name, t in model.state_dict().items():
        expect_true(
            t.device == where,
            f"{name} is on {t.device}, not on {where}",
            hint="What is taken from state is on the CPU: one move is left.",
        )
    x = torch.randn(4, source[0].in_features)
    expect_close(model(x.to(device)), source(x).to(where), atol=1e-4, name="the model's output")
    on = answer.from_checkpoint(make, source.state_dict(), torch.device("meta"))
    expect_true(
        on[0].weight.device.type == "meta",
        f"asked for the device meta, the model is on {on[0].weight.device}",
        hint="`device` is the caller's choice, and state is on the CPU.",
    )


@check(
    "the loaded model can be trained",
    holds=[
        "ready to compute and to be trained, in the mode that build left it in, train or eval",
        "Parameters that build has frozen are frozen",
    ],
    both_sides=True,
)
def trainable(answer, rng, device):
    make = stack(rng)
    model = answer.from_checkpoint(make, make().state_dict(), device)
    mode = "build's model is in training mode, and the loaded one is not"
    expect_true(
        model.training, mode, hint="Whether to train or to evaluate is the caller's choice."
    )
    calm = answer.from_checkpoint(lambda: make().eval(), make().state_dict(), device)
    mode = "build's model is in eval mode, and the loaded one is not"
    expect_true(not calm.training, mode, hint="The mode stays as build left it.")
    hint = "Parameters must come out as Parameters that require grad."
    for name, p in model.named_parameters():
        expect_true(p.requires_grad, f"{name} does not require grad", hint=hint)
    x = torch.randn(5, model[0].in_features, device=device)
    model(x).sum().backward()
    for name, p in model.named_parameters():
        expect_true(p.grad is not None, f"{name} gets no gradient", hint=hint)

    def partly_frozen():
        model = make()
        model[0].requires_grad_(False)
        return model

    model = answer.from_checkpoint(partly_frozen, make().state_dict(), device)
    for name, p in model.named_parameters():
        frozen = name.startswith("0.")
        message = f"{name} is {'frozen' if frozen else 'trained'} in build's model, and the loaded "
        message += f"one {'is not' if frozen else 'is'} frozen"
        expect_true(p.requires_grad != frozen, message, hint="build decides what is trained.")


@check(
    "a checkpoint with other names is refused",
    holds="RuntimeError if state lacks a name of the model, or has one that the model has not",
    both_sides=True,
)
def incomplete(answer, rng, device):
    make = stack(rng)
    for short in (True, False):
        state = make().state_dict()
        if short:
            del state[rng.choice(["0.weight", "0.bias", "1.running_var", "2.weight"])]
        else:
            state[rng.choice(["2.bias", "3.weight", "weight"])] = torch.ones(2)
        what = "state lacks one of its tensors" if short else "state has a tensor of another model"
        kind = "The task wants a RuntimeError where a name is missing, as load_state_dict raises."
        with (
            expect_raises(
                RuntimeError,
                f"a model was returned, though {what}",
                hint="load_state_dict compares the names, unless it is told strict=False.",
            ),
            advising(KeyError, hint=kind),
            advising(AttributeError, hint=kind),
        ):
            answer.from_checkpoint(make, state, device)


@check(
    "the caller's dict loads into another model as before",
    holds="The dict stays as it is: a later load_state_dict(state) copies",
)
def as_before(answer, rng, device):
    make = stack(rng)
    state = make().state_dict()
    names, tensors = list(state), list(state.values())
    values = [t.clone() for t in tensors]
    answer.from_checkpoint(make, state, device)
    same = names == list(state) and all(
        a is b for a, b in zip(tensors, state.values(), strict=True)
    )
    expect_true(
        same and all(torch.equal(a, b) for a, b in zip(tensors, values, strict=True)),
        "the caller's state has other entries than before",
        hint="The caller may load a second model from it. Make a dict of your own.",
    )
    other = make()
    held = other[0].weight
    other.load_state_dict(state)
    expect_true(
        other[0].weight is held and held.data_ptr() != state["0.weight"].data_ptr(),
        "after from_checkpoint, other.load_state_dict(state) no longer copies: other shares its "
        "memory with state",
        hint="`assign=True` leaves a mark in the attribute `_metadata` of the dict that it is "
        "given. Give it a copy: dict(state) has no such attribute.",
    )


@mutant("builds the model for real", caught_by=counts_on_meta)
def param_bytes(build, dtype):
    return sum(p.numel() for p in build().parameters()) * dtype.itemsize


@mutant("builds first and moves to meta then", caught_by=large)
def param_bytes(build, dtype):
    return sum(p.numel() for p in build().to("meta").parameters()) * dtype.itemsize


@mutant("counts in the dtype that build chose", caught_by=dtypes)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(p.numel() * p.element_size() for p in model.parameters())


@mutant("counts bits", caught_by=large)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(p.numel() for p in model.parameters()) * torch.finfo(dtype).bits


@mutant("counts the state_dict", caught_by=no_buffers)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(t.numel() for t in model.state_dict().values()) * dtype.itemsize


@mutant("counts a shared parameter twice", caught_by=once)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    named = model.named_parameters(remove_duplicate=False)
    return sum(p.numel() for _, p in named) * dtype.itemsize


@mutant("counts what is trained", caught_by=once)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(p.numel() for p in model.parameters() if p.requires_grad) * dtype.itemsize


@mutant("leaves meta as the default", caught_by=default)
def param_bytes(build, dtype):
    torch.set_default_device("meta")
    return sum(p.numel() for p in build().parameters()) * dtype.itemsize


@mutant("takes the CPU for the default", caught_by=default)
def param_bytes(build, dtype):
    torch.set_default_device("meta")
    try:
        model = build()
    finally:
        torch.set_default_device("cpu")
    return sum(p.numel() for p in model.parameters()) * dtype.itemsize


@mutant("tells parameters apart by their addresses", caught_by=large)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    sizes = {p.data_ptr(): p.numel() for p in model.parameters()}
    return sum(sizes.values()) * dtype.itemsize


@mutant("raises KeyError for a name that is missing", caught_by=incomplete)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict({name: state[name] for name in model.state_dict()}, assign=True)
    if len(state) != len(model.state_dict()):
        raise RuntimeError("state has a name that the model has not")
    return model.to(device)


@mutant("puts the default back unless build raises", caught_by=default)
def param_bytes(build, dtype):
    before = torch.get_default_device()
    torch.set_default_device("meta")
    model = build()
    torch.set_default_device(before)
    return sum(p.numel() for p in model.parameters()) * dtype.itemsize


@mutant("builds for real and loads over it", caught_by=loads_on_meta)
def from_checkpoint(build, state, device):
    model = build()
    model.load_state_dict(state)
    return model.to(device)


@mutant("copies into meta tensors", caught_by=loaded)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(state)
    return model


@mutant("gets memory and does not load", caught_by=loaded)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    return model.to_empty(device=device)


@mutant("empties what it has loaded", caught_by=loaded)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(dict(state), assign=True)
    return model.to_empty(device="meta").to_empty(device=device)


@mutant("takes the tensors out of the caller's dict", caught_by=loaded)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    moved = {name: state.pop(name).to(device) for name in list(state)}
    model.load_state_dict(moved, assign=True)
    return model


@mutant("leaves the model where the checkpoint was", caught_by=computes)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(dict(state), assign=True)
    return model


@mutant("loads the parameters by hand and forgets the buffers", caught_by=loaded)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.to_empty(device=device)
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(state[name])
    return model


@mutant("freezes what it loads", caught_by=trainable)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(dict(state), assign=True)
    return model.to(device).requires_grad_(False)


@mutant("switches to evaluation", caught_by=trainable)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(dict(state), assign=True)
    return model.to(device).eval()


@mutant("takes what there is", caught_by=incomplete)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.to_empty(device=device)
    model.load_state_dict(state, strict=False)
    return model


@mutant("leaves the mark of assign in the caller's dict", caught_by=as_before)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(state, assign=True)
    return model.to(device)


@mutant("turns parameters into ones that are trained", caught_by=trainable)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(dict(state), assign=True)
    return model.to(device).requires_grad_(True)


@mutant("loads what the model has, and forgets the rest", caught_by=incomplete)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    known = {name: state[name] for name in model.state_dict() if name in state}
    model.load_state_dict(known, assign=True)
    return model.to(device)


@mutant("converts the model to dtype", caught_by=dtypes)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build().to(dtype)
    return sum(p.nbytes for p in model.parameters())


@mutant("makes new parameters by hand", caught_by=trainable)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    for name, _ in list(model.named_parameters()):
        place, _, last = name.rpartition(".")
        setattr(model.get_submodule(place), last, nn.Parameter(state[name]))
    for name, _ in list(model.named_buffers()):
        place, _, last = name.rpartition(".")
        setattr(model.get_submodule(place), last, state[name])
    return model.to(device)


@mutant("takes one byte for two", caught_by=dtypes)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(p.numel() for p in model.parameters()) * max(dtype.itemsize, 2)


@mutant("initialises on meta, then really", caught_by=loads_on_meta)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        names = list(build().state_dict())
    model = build()
    model.load_state_dict({name: state[name] for name in names})
    return model.to(device)


@hinted(1, reaches=default)
def param_bytes(build, dtype):
    with torch.device("meta"):
        model = build()
    return sum(p.numel() for p in model.parameters()) * dtype.itemsize


@hinted(1, reaches=default)
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model.load_state_dict(state)
    return model


@accepted("sets the default device for a moment, and asks an empty tensor for its size")
def param_bytes(build, dtype):
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        model = build()
    finally:
        torch.set_default_device(before)
    one = torch.empty((), dtype=dtype).element_size()
    return sum(one * p.shape.numel() for p in model.parameters())


@accepted("counts tensors that pretend to be on the CPU")
def param_bytes(build, dtype):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return sum(p.numel() for p in build().parameters()) * dtype.itemsize


@accepted("gets memory, then copies the numbers into it")
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    model = model.to_empty(device=device)
    model.load_state_dict(state)
    return model


@accepted("moves the checkpoint first")
def from_checkpoint(build, state, device):
    with torch.device("meta"):
        model = build()
    moved = {name: t.to(device) for name, t in state.items()}
    model.load_state_dict(moved, assign=True)
    return model
