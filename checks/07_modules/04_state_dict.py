"""Judges lessons/07_modules/04_state_dict.md."""

import copy

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Write the loader that fine-tuning scripts need.",
    "The state was saved by somebody else",
    "A model under DDP is its attribute",
)

FITS = (
    "An entry fits if the model has its name, without the wrappers' prefixes, and exactly its "
    "shape there. Buffers are in state, too. All others are skipped."
)
PREFIX = (
    "Only whole prefixes at the front come off, `module.` and `_orig_mod.`, one after the other, "
    "and only while the model does not have the name."
)
REPORT = "loaded: names as the model has them. skipped: names as state has them. Two sorted lists."


def net(rng, device, d, classes):
    """A trunk with parameters and buffers, and a head."""
    model = nn.Sequential(nn.Linear(3, d), nn.BatchNorm1d(d), nn.Linear(d, classes))
    with torch.no_grad():
        for t in model.state_dict().values():
            t.copy_(torch.randn(t.shape) * 5)
        model[1].num_batches_tracked.fill_(rng.randrange(2, 99))
    return model.to(device)


def snapshot(state):
    return {name: t.detach().clone() for name, t in state.items()}


def load(answer, model, state):
    """The two lists, and an error as a sentence."""
    try:
        got = answer.load_matching(model, state)
    except RuntimeError as error:
        lines = str(error).split("\n")
        words = " ".join(lines[1 if len(lines) > 1 else 0].split()[:10])
        hint = "Sizes that differ are an error even with strict=False. Give load_state_dict only "
        hint += "what fits."
        fail(f"load_matching stops with: {words} ...", hint=hint)
    expect_true(
        isinstance(got, tuple) and len(got) == 2 and all(isinstance(part, list) for part in got),
        "load_matching does not return a pair of lists",
        hint=REPORT,
    )
    return got


def expect_loaded(answer, model, state, pairs, hint=FITS):
    """Exactly these entries are loaded. pairs: from the model's names to those in state."""
    before = snapshot(model.state_dict())
    given = snapshot(state)
    loaded, skipped = load(answer, model, state)
    for name, now in model.state_dict().items():
        if name in pairs:
            wanted = given[pairs[name]].to(now)
            expect_equal(now, wanted, name=f"{name}, which fits,", hint=hint)
        else:
            expect_equal(now, before[name], name=f"{name}, for which nothing fits,", hint=hint)
    expect_equal(loaded, sorted(pairs), name="loaded", hint=f"{hint} {REPORT}")
    rest = sorted(set(given) - set(pairs.values()))
    expect_equal(skipped, rest, name="skipped", hint=f"{hint} {REPORT}")


@check(
    "what fits is loaded, a head of other classes is not",
    holds=["It takes what fits and reports the rest.", "(loaded, skipped), two sorted lists"],
)
def fits(answer, rng, device):
    d = rng.randrange(2, 7)
    old, new = net(rng, "cpu", d, 10), net(rng, device, d, 4)
    state = snapshot(old.state_dict())
    pairs = {name: name for name in state if not name.startswith("2.")}
    expect_loaded(answer, new, state, pairs)
    same = net(rng, device, d, 10)
    expect_loaded(answer, same, state, {name: name for name in state})


@check(
    "wrappers' prefixes come off",
    holds="So a name may begin with `module.` or `_orig_mod.`, several times and in any order.",
    both_sides=True,
)
def prefixes(answer, rng, device):
    d = rng.randrange(2, 7)
    state = snapshot(net(rng, "cpu", d, 10).state_dict())
    for prefix in (
        "module.",
        "_orig_mod.",
        "module._orig_mod.",
        "_orig_mod.module.",
        "module.module.",
        "_orig_mod._orig_mod.",
        "_orig_mod.module._orig_mod.",
        "module._orig_mod.module._orig_mod.",
    ):
        new = net(rng, device, d, 4)
        wrapped = {prefix + name: t for name, t in state.items()}
        pairs = {name: prefix + name for name in state if not name.startswith("2.")}
        expect_loaded(answer, new, wrapped, pairs, hint=PREFIX)


@check(
    "each name has prefixes of its own", holds="So a name may begin with `module.`", side="mixed"
)
def mixed(answer, rng, device):
    d = rng.randrange(2, 7)
    state = snapshot(net(rng, "cpu", d, 4).state_dict())
    fronts = ["", "module.", "_orig_mod.", "module._orig_mod."]
    names = {name: fronts[i % 4] + name for i, name in enumerate(state)}
    for order in (list(state), list(state)[::-1]):
        wrapped = {names[name]: state[name] for name in order}
        hint = "Look at each name by itself: some of them may have prefixes, and others none."
        expect_loaded(answer, net(rng, device, d, 4), wrapped, names, hint=hint)


class Awkward(nn.Module):
    """A model whose names look like prefixes. `module` and `modul` hold the same shapes."""

    def __init__(self):
        super().__init__()
        self.submodule = nn.Linear(2, 3)
        self.module = nn.Linear(3, 2)
        self.modul = nn.Linear(3, 2)
        self.e = nn.ModuleDict({"module": nn.Linear(4, 2), "_orig_mod": nn.Linear(1, 2)})
        self.weight = nn.Parameter(torch.randn(2, 3))


@check(
    "a name that the model has is left alone",
    holds=[
        "A prefix is taken off only while the model does not have the name.",
        "It may well have a child `module` of its own, and names like `submodule.weight`",
    ],
)
def alone(answer, rng, device):
    state = snapshot(Awkward().state_dict())
    for prefix in ("", "module.", "_orig_mod.module."):
        wrapped = {prefix + name: t for name, t in state.items()}
        pairs = {name: prefix + name for name in state}
        if prefix:  # the wrapped `weight` could be either
            del wrapped[prefix + "weight"], pairs["weight"]
        expect_loaded(answer, Awkward().to(device), wrapped, pairs, hint=PREFIX)
    strange = {
        "omodule.weight": torch.randn(2, 3),
        "modules.weight": torch.randn(2, 3),
        "model.weight": torch.randn(2, 3),
        "modul.module.weight": torch.randn(2, 3),
        "module": torch.randn(2, 3),
    }
    expect_loaded(answer, Awkward().to(device), strange, {}, hint=PREFIX)
    hint = "The model has this name, with another shape. So the prefix stays, and nothing fits."
    other = {"module.weight": torch.randn(2, 3)}  # the shape of `weight`
    awkward = Awkward()
    awkward.module = nn.Linear(5, 2)
    expect_loaded(answer, awkward.to(device), other, {}, hint=hint)


@check("only exactly the same shape fits", holds="with exactly its shape")
def shapes(answer, rng, device):
    model = nn.Linear(3, 2).to(device)
    for weight in ((2, 4), (3, 2), (6,), (1, 3), (2, 1), (), (2, 3, 1), (0, 3)):
        state = {"weight": torch.randn(weight), "bias": torch.randn(2)}
        expect_loaded(answer, model, state, {"bias": "bias"})
    model.register_buffer("count", torch.tensor(3.0, device=device))
    expect_loaded(answer, model, {"count": torch.tensor([5.0])}, {})
    expect_loaded(answer, model, {"count": torch.tensor(5.0)}, {"count": "count"})


@check("state may be empty, or fit nowhere")
def nothing(answer, rng, device):
    model = net(rng, device, 4, 2)
    expect_loaded(answer, model, {}, {})
    expect_loaded(answer, model, {"a.b": torch.ones(2), "0": torch.ones(3)}, {})


@check(
    "the caller's state stays as it is",
    holds="it stays as it is, and the model shares no memory with it",
)
def untouched(answer, rng, device):
    d = rng.randrange(2, 7)
    model = net(rng, device, d, 4)
    source = net(rng, device, d, 10)
    state = {f"module.{name}": t for name, t in source.state_dict().items()}
    names, before = list(state), snapshot(state)
    load(answer, model, state)
    hint = "Collect what fits in a dict of your own."
    expect_equal(list(state), names, name="the list of names in state, afterwards", hint=hint)
    with torch.no_grad():
        for t in model.state_dict().values():
            t.zero_()
    hint = "The model must get numbers, not the tensors of state: the caller still needs those."
    for name, t in state.items():
        expect_equal(
            t, before[name], name=f"state[{name!r}], after the model was zeroed,", hint=hint
        )


@check(
    "Parameters stay the same objects, of the same dtype",
    holds="its Parameters and buffers stay the objects that they are, with their dtype",
)
def identity(answer, rng, device):
    d = rng.randrange(2, 7)
    model = net(rng, device, d, 4)
    model[0].weight.requires_grad_(False)
    state = snapshot(net(rng, "cpu", d, 10).double().state_dict())
    before = {n: (id(t), t.dtype, t.requires_grad) for n, t in model.named_parameters()}
    buffers = {name: id(t) for name, t in model.named_buffers()}
    load(answer, model, state)
    hint = "An optimizer holds these objects. Copy numbers into them, as load_state_dict does."
    after = {n: (id(t), t.dtype, t.requires_grad) for n, t in model.named_parameters()}
    for name, (number, dtype, grad) in before.items():
        message = f"{name} is another object than before"
        expect_true(after[name][0] == number, message, hint=hint)
        kept = "The numbers come in, converted to the model's dtype. load_state_dict and copy_ do "
        kept += "that; an assignment, to .data too, brings the dtype of the file."
        expect_equal(
            after[name][1:], (dtype, grad), name=f"(dtype, requires_grad) of {name}", hint=kept
        )
    same = {name: id(t) for name, t in model.named_buffers()} == buffers
    expect_true(same, "a buffer is another object than before", hint=hint)
    wanted = state["0.weight"].to(model[0].weight)
    expect_equal(model[0].weight.detach(), wanted, name="0.weight, from float64,", hint=kept)


@check("tied weights stay tied", holds="stay the objects that they are")
def tied(answer, rng, device):
    def build():
        model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
        model[1].weight = model[0].weight
        return model

    model = build().to(device)
    state = copy.deepcopy(build().state_dict())
    expect_loaded(answer, model, state, {name: name for name in state})
    message = "two names of one Parameter have become two Parameters"
    expect_true(model[0].weight is model[1].weight, message, hint="Copy into what is there.")


WRAPPERS = ("module.", "_orig_mod.")


def matching(model, state):
    """(what fits under the model's names, the other names): as the solution finds them."""
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        while path not in own and path.startswith(WRAPPERS):
            path = path.partition(".")[2]
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    return fit, sorted(skipped)


@mutant("leaves it all to strict=False", caught_by=fits)
def load_matching(model, state):
    result = model.load_state_dict(state, strict=False)
    skipped = set(result.unexpected_keys)
    return sorted(set(state) - skipped), sorted(skipped)


@mutant("takes no prefix off", caught_by=prefixes)
def load_matching(model, state):
    own = model.state_dict()
    fit = {n: t for n, t in state.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(set(state) - set(fit))


@mutant("takes one prefix off", caught_by=prefixes)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        if path not in own:
            path = path.removeprefix("module.").removeprefix("_orig_mod.")
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("takes off one kind of prefix after the other, once", caught_by=prefixes)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        for prefix in ("module.", "_orig_mod.", "module."):
            while path not in own and path.startswith(prefix):
                path = path.removeprefix(prefix)
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("takes from every name the prefixes of the first", caught_by=mixed)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    first = short = next(iter(state), "")
    while short not in own and short.startswith(WRAPPERS):
        short = short.partition(".")[2]
    front = first.removesuffix(short)
    for name, tensor in state.items():
        path = name.removeprefix(front)
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("takes a prefix off where the shape does not fit, too", caught_by=alone)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        while path.startswith(WRAPPERS) and (path not in own or own[path].shape != tensor.shape):
            path = path.partition(".")[2]
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("replaces wherever it stands", caught_by=alone)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name.replace("_orig_mod.", "").replace("module.", "")
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("strips characters instead of a prefix", caught_by=alone)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name if name in own else name.lstrip("".join(WRAPPERS))
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("takes the prefix off names that the model has", caught_by=alone)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        while path.startswith(WRAPPERS):
            path = path.partition(".")[2]
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("takes off whatever stands before the first dot", caught_by=alone)
def load_matching(model, state):
    own, fit, skipped = model.state_dict(), {}, []
    for name, tensor in state.items():
        path = name
        while path not in own and "." in path:
            path = path.partition(".")[2]
        if path in own and own[path].shape == tensor.shape:
            fit[path] = tensor
        else:
            skipped.append(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(skipped)


@mutant("compares the number of elements", caught_by=shapes)
def load_matching(model, state):
    own, (fit, _) = model.state_dict(), matching(model, state)
    for name, tensor in state.items():
        if name in own and own[name].numel() == tensor.numel():
            fit[name] = tensor.reshape(own[name].shape)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(set(state) - set(fit))


@mutant("copies with broadcasting", caught_by=shapes)
def load_matching(model, state):
    own, (fit, skipped) = model.state_dict(), matching(model, state)
    for name in list(skipped):
        try:
            own[name].copy_(state[name])
        except (KeyError, RuntimeError):
            continue
        skipped.remove(name)
        fit[name] = own[name]
    model.load_state_dict(fit, strict=False)
    return sorted(fit), skipped


@mutant("renames in the caller's dict", caught_by=untouched)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    for name in list(state):
        if name.startswith("module."):
            state[name.partition(".")[2]] = state.pop(name)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), skipped


@mutant("takes the tensors of state", caught_by=untouched)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    model.load_state_dict(fit, strict=False, assign=True)
    return sorted(fit), skipped


@mutant("makes new Parameters", caught_by=identity)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    clones = {name: t.clone() for name, t in fit.items()}
    model.load_state_dict(clones, strict=False, assign=True)
    return sorted(fit), skipped


@mutant("forgets the buffers", caught_by=fits)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    own = dict(model.named_parameters())
    fit = {name: t for name, t in fit.items() if name in own}
    model.load_state_dict(fit, strict=False)
    return sorted(fit), skipped


@mutant("reports the skipped names without prefix", caught_by=prefixes)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    model.load_state_dict(fit, strict=False)
    short = [n.removeprefix("module.").removeprefix("_orig_mod.") for n in skipped]
    return sorted(fit), sorted(short)


@mutant("gives up after the first misfit", caught_by=fits)
def load_matching(model, state):
    fit, skipped = matching(model, state)
    if skipped:
        return [], sorted(state)
    model.load_state_dict(fit, strict=False)
    return sorted(fit), skipped


@hinted(1, reaches=fits)
def load_matching(model, state):
    own = model.state_dict()
    fit = {n: t for n, t in state.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict(fit, strict=False)
    return sorted(fit), sorted(set(state) - set(fit))


@accepted("copies by hand, under no_grad")
def load_matching(model, state):
    own, loaded, skipped = model.state_dict(keep_vars=True), [], []
    for name in sorted(state):
        path = name
        for _ in range(name.count(".")):
            head, _, rest = path.partition(".")
            if path not in own and head in ("module", "_orig_mod"):
                path = rest
        target = own.get(path)
        if target is None or target.size() != state[name].size():
            skipped.append(name)
            continue
        with torch.no_grad():
            target.copy_(state[name])
        loaded.append(path)
    return sorted(loaded), skipped


@accepted("fills the gaps with the model's own tensors, and loads strictly")
def load_matching(model, state):
    own = model.state_dict()

    def path_of(name):
        if name in own:
            return name
        for prefix in WRAPPERS:
            if name.startswith(prefix):
                return path_of(name.removeprefix(prefix))
        return name

    fit = {path_of(n): t for n, t in state.items()}
    fit = {n: t for n, t in fit.items() if n in own and own[n].shape == t.shape}
    model.load_state_dict({**own, **fit})
    skipped = [n for n in state if path_of(n) not in fit]
    return sorted(fit), sorted(skipped)
