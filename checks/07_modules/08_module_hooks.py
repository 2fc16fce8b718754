"""Judges lessons/07_modules/08_module_hooks.md."""

import contextlib
import copy

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "A model arrives without documentation.",
    "Write `record_shapes`.",
    "It may run in a server's memory",
)

PATHS = "named_modules() gives every module its path, nested ones too: 2.0 is child 0 of child 2."
EACH = "Each leaf that runs has an entry of its own, under its own name."
OUTPUT = "A forward hook is called with (module, args, output). The shape is that of output."
AS_BEFORE = "The model belongs to others. What it finds switched, this function leaves as it was."
NAMES = "A function made in a loop looks `name` up when it runs, and by then the loop is over. "
NAMES += "Bind this round's name, as a default argument."
GONE = "Remove every handle, in `finally`: that runs whether the model raised or not."


class Doubles(nn.Module):
    """A leaf whose output has twice as many columns as its input."""

    def forward(self, x):
        return torch.cat([x, x], 1)


class Odd(nn.Module):
    """Runs its parts in another order than it holds them, one twice, one never."""

    def __init__(self, n):
        super().__init__()
        self.last = nn.Linear(4 * n, 3)
        self.unused = nn.Linear(n, n)
        self.twice = Doubles()
        self.parts = nn.ModuleDict({"first": nn.Sequential(nn.Linear(n, n), nn.Tanh())})
        self.empty = nn.ModuleList()

    def forward(self, x):
        side = self.parts["first"](x)
        return self.last(self.twice(self.twice(x + side)))


class Breaks(nn.Module):
    """A leaf that raises, at the second call."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        if self.calls > 1:
            raise Stop
        return x


class Stop(Exception):
    """What a model that breaks raises."""


def conv_net(rng, device):
    """(model, its input, the shapes): nested, with flattened images."""
    n, c, h, w = (rng.randrange(a, b) for a, b in ((1, 4), (2, 5), (4, 8), (4, 8)))
    flat = c * (h - 2) * (w - 2)
    net = nn.Sequential(
        nn.Conv2d(1, c, 3), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(flat, 5))
    ).to(device)
    shape = (n, c, h - 2, w - 2)
    shapes = {"0": shape, "1": shape, "2.0": (n, flat), "2.1": (n, 5)}
    return net, torch.randn(n, 1, h, w, device=device), shapes


def record(answer, net, x):
    try:
        got = answer.record_shapes(net, x)
    except TypeError as error:
        words = str(error)
        if "must be Tensor" not in words and "invalid combination of arguments" not in words:
            raise
        fail(
            f"a layer got no tensor: {' '.join(words.split()[:12])} ...",
            hint="What a hook returns takes the output's place. Does yours return something?",
        )
    expect_true(
        isinstance(got, dict), "record_shapes does not return a dict", hint="`return shapes`."
    )
    return got


def hooks_of(net):
    """How many hooks hang on the modules of a model, and on all modules."""
    everywhere = nn.modules.module._global_forward_hooks
    return len(everywhere) + sum(
        len(m._forward_hooks) + len(m._forward_pre_hooks) for m in net.modules()
    )


@check(
    "each leaf has its own name and shape",
    holds=["You want its shapes, layer by layer, from one run.", "Names as in named_modules()"],
)
def own_names(answer, rng, device):
    net, x, shapes = conv_net(rng, device)
    got = record(answer, net, x)
    missing = sorted(shapes.keys() - got.keys())
    message = f"there is no entry for {missing}, only for {sorted(map(str, got))}"
    expect_true(not missing, message, hint=NAMES if len(got) == 1 else PATHS)
    for name, shape in shapes.items():
        expect_equal(got[name], shape, name=f"the shape of {name!r}", hint=OUTPUT)


@check(
    "containers are left out, and leaves that did not run",
    holds=["A leaf is a module without children", "A leaf that did not run is left out"],
)
def leaves_only(answer, rng, device):
    n, rows = rng.randrange(2, 6), rng.randrange(1, 5)
    net = Odd(n).to(device)
    got = record(answer, net, torch.randn(rows, n, device=device))
    wanted = {"last", "twice", "parts.first.0", "parts.first.1"}
    missing = sorted(wanted - got.keys())
    expect_true(not missing, f"there is no entry for {missing}", hint=EACH)
    extra = sorted(map(str, got.keys() - wanted))
    hint = "A leaf has no children. The hook of a module that is not called does not run."
    expect_true(not extra, f"there are entries for {extra}", hint=hint)


@check(
    "of a leaf that runs twice, the last output counts",
    holds="of one that ran several times, the last output counts",
)
def last_output(answer, rng, device):
    n, rows = rng.randrange(2, 6), rng.randrange(1, 5)
    net = Odd(n).to(device)
    got = record(answer, net, torch.randn(rows, n, device=device))
    hint = "The second output takes the first one's place."
    expect_true("twice" in got, "there is no entry for 'twice'", hint=EACH)
    expect_equal(got["twice"], (rows, 4 * n), name="the shape of 'twice'", hint=hint)


@check("a model may be a leaf, and an output empty or a scalar", holds="perhaps a leaf itself")
def single(answer, rng, device):
    n = rng.randrange(1, 6)
    layer = nn.Linear(n, 3).to(device)
    hint = "named_modules() begins with the model, and its name is empty. Hooks run when the model "
    hint += "is called."
    got = record(answer, layer, torch.randn(2, n, device=device))
    expect_equal(got, {"": (2, 3)}, hint=hint)
    got = record(answer, layer, torch.randn(0, n, device=device))
    expect_equal(got, {"": (0, 3)}, name="for no rows, the result", hint=hint)
    got = record(answer, nn.Dropout(0.5), torch.tensor(1.0, device=device))
    expect_equal(got, {"": ()}, name="for a 0-d tensor, the result", hint=hint)


@check(
    "the model is called once, as its users call it",
    holds="it is called once, as its users call it, so that hooks of others run too",
)
def called_once(answer, rng, device):
    net, x, _ = conv_net(rng, device)
    runs = []
    net.register_forward_hook(lambda m, args, out: runs.append("net"))
    net.register_forward_pre_hook(lambda m, args: runs.append("before"))
    net[1].register_forward_hook(lambda m, args, out: runs.append("1"))
    given = []
    net[0].register_forward_hook(lambda m, args, out: given.append(m))
    record(answer, net, x)
    message = "another model ran than the one that was given"
    hint = "A copy of a large model may not fit into memory. Hang the hooks on the model itself."
    expect_true(all(m is net[0] for m in given), message, hint=hint)
    expect_equal(
        runs,
        ["before", "1", "net"],
        name="the list of the caller's own hooks that ran",
        hint="`model(x)`, one time. `model.forward(x)` goes past the model's hooks.",
    )


@check("the outputs pass on as they are")
def outputs_stay(answer, rng, device):
    net, x, _ = conv_net(rng, device)
    net.append(nn.LogSoftmax(1))
    seen = []
    handle = net.register_forward_hook(lambda m, args, out: seen.append(out))
    right = net(x)
    record(answer, net, x)
    handle.remove()
    expect_equal(
        seen[-1],
        right,
        name="the model's output while it is watched",
        hint="A hook that only looks returns None, and writes into nothing.",
    )


@check("no hook is left, and the dict grows no more", holds="So it leaves no hook behind")
def nothing_left(answer, rng, device):
    net, x, _ = conv_net(rng, device)
    before = hooks_of(net)
    got = record(answer, net, x)
    expect_equal(hooks_of(net) - before, 0, name="the number of hooks that are left", hint=GONE)
    noted = dict(got)
    net(torch.cat([x, x]))
    expect_equal(got, noted, name="the result, after the model ran again", hint=GONE)


@check(
    "no hook is left when the model raises",
    holds=["not even if the model raises in the middle", "the error goes on to the caller"],
)
def nothing_left_after_an_error(answer, rng, device):
    n = rng.randrange(2, 6)
    breaks = Breaks()
    net = nn.Sequential(nn.Linear(n, n), breaks, nn.Sequential(nn.Linear(n, 2), breaks)).to(device)
    before = hooks_of(net)
    hint = "The error is the caller's business. `finally` cleans up and lets it pass."
    with expect_raises(Stop, "the model raised an error, and record_shapes kept it", hint=hint):
        answer.record_shapes(net, torch.randn(3, n, device=device))
    left = hooks_of(net) - before
    expect_equal(left, 0, name="the number of hooks that are left after an error", hint=GONE)


@check(
    "modes and grad mode are as before",
    holds="the modules' modes and the grad mode are as before",
)
def modes_stay(answer, rng, device):
    n, breaks = rng.randrange(2, 6), Breaks()
    for when, ending in (("afterwards", ()), ("after an error in the model", (breaks, breaks))):
        inner = nn.Sequential(nn.BatchNorm1d(n), nn.Dropout(0.5))
        net = nn.Sequential(nn.Linear(n, n), inner, *ending).to(device).train()
        inner.train(rng.random() < 0.5)
        inner[1].train(not inner.training)
        modes = {name: m.training for name, m in net.named_modules()}
        for recording in (True, False):
            with torch.set_grad_enabled(recording):
                with contextlib.suppress(Stop):
                    answer.record_shapes(net, torch.randn(3, n, device=device))
                now = torch.is_grad_enabled()
            for name, m in net.named_modules():
                what = f"{when}, training of {name or 'the model itself'}"
                expect_equal(m.training, modes[name], name=what, hint=AS_BEFORE)
            what = f"{when}, torch.is_grad_enabled()"
            expect_equal(now, recording, name=what, hint=AS_BEFORE)


@check("the hooks of others are still there", holds="Hooks of others are still there.")
def others(answer, rng, device):
    net, x, _ = conv_net(rng, device)
    runs = []
    for m in (net, net[0], net[2][1]):
        m.register_forward_hook(lambda m, args, out: runs.append(1))
        m.register_forward_pre_hook(lambda m, args: runs.append(1))
    record(answer, net, x)
    runs.clear()
    net(x)
    expect_equal(
        len(runs),
        6,
        name="the number of the caller's hooks that still run",
        hint="Take off what you put on, and nothing else: handle.remove().",
    )


def leaves(model):
    return [(name, m) for name, m in model.named_modules() if not list(m.children())]


def watch(model, shapes):
    """The handles of hooks that note the shape of each leaf's output."""

    def keeper(name):
        def keep(m, args, out):
            shapes[name] = tuple(out.shape)

        return keep

    return [m.register_forward_hook(keeper(name)) for name, m in leaves(model)]


@mutant("binds the name late", caught_by=own_names)
def record_shapes(model, x):
    shapes, handles = {}, []
    for name, m in leaves(model):

        def keep(m, args, out):
            shapes[name] = tuple(out.shape)  # noqa: B023

        handles.append(m.register_forward_hook(keep))
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("notes the shape of the input", caught_by=own_names)
def record_shapes(model, x):
    shapes = {}
    handles = [
        m.register_forward_pre_hook(
            lambda m, args, name=name: shapes.update({name: tuple(args[0].shape)})
        )
        for name, m in leaves(model)
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("watches containers too", caught_by=leaves_only)
def record_shapes(model, x):
    shapes = {}
    handles = [
        m.register_forward_hook(
            lambda m, args, out, name=name: shapes.update({name: tuple(out.shape)})
        )
        for name, m in model.named_modules()
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("prepares an entry for each leaf", caught_by=leaves_only)
def record_shapes(model, x):
    shapes = {name: None for name, _ in leaves(model)}
    handles = watch(model, shapes)
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("looks at the direct children only", caught_by=own_names)
def record_shapes(model, x):
    shapes = {}
    handles = [
        m.register_forward_hook(
            lambda m, args, out, name=name: shapes.update({name: tuple(out.shape)})
        )
        for name, m in model.named_children()
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("keeps the first output", caught_by=last_output)
def record_shapes(model, x):
    shapes = {}

    def keeper(name):
        def keep(m, args, out):
            shapes.setdefault(name, tuple(out.shape))

        return keep

    handles = [m.register_forward_hook(keeper(name)) for name, m in leaves(model)]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("returns the shape from the hook", caught_by=own_names)
def record_shapes(model, x):
    shapes = {}
    handles = [
        m.register_forward_hook(
            lambda m, args, out, name=name: shapes.setdefault(name, tuple(out.shape))
        )
        for name, m in leaves(model)
    ]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("runs the leaves one after another", caught_by=leaves_only)
def record_shapes(model, x):
    shapes = {}
    for name, m in leaves(model):
        try:
            x = m(x)
        except (RuntimeError, NotImplementedError):
            continue
        shapes[name] = tuple(x.shape)
    return shapes


@mutant("calls forward", caught_by=called_once)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    try:
        model.forward(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("a run for each leaf", caught_by=called_once)
def record_shapes(model, x):
    shapes = {}
    for name, m in leaves(model):
        with m.register_forward_hook(
            lambda m, args, out, name=name: shapes.update({name: tuple(out.shape)})
        ):
            model(x)
    return shapes


@mutant("returns zeros from the hook", caught_by=outputs_stay)
def record_shapes(model, x):
    shapes = {}

    def keeper(name):
        def keep(m, args, out):
            shapes[name] = tuple(out.shape)
            return out * 0

        return keep

    handles = [m.register_forward_hook(keeper(name)) for name, m in leaves(model)]
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("never removes", caught_by=nothing_left)
def record_shapes(model, x):
    shapes = {}
    watch(model, shapes)
    model(x)
    return shapes


@mutant("removes the last one", caught_by=nothing_left)
def record_shapes(model, x):
    shapes = {}
    *_, handle = watch(model, shapes)
    try:
        model(x)
    finally:
        handle.remove()
    return shapes


@mutant("no finally", caught_by=nothing_left_after_an_error)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mutant("swallows the error", caught_by=nothing_left_after_an_error)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    with contextlib.suppress(Exception):
        model(x)
    for handle in handles:
        handle.remove()
    return shapes


@mutant("leaves the model in eval mode", caught_by=modes_stay)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    model.eval()
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("puts every module into training mode at the end", caught_by=modes_stay)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    model.eval()
    try:
        model(x)
    finally:
        model.train()
        for handle in handles:
            handle.remove()
    return shapes


@mutant("leaves recording off", caught_by=modes_stay)
def record_shapes(model, x):
    shapes = {}
    handles = watch(model, shapes)
    torch.set_grad_enabled(False)
    try:
        model(x)
    finally:
        for handle in handles:
            handle.remove()
    return shapes


@mutant("clears all hooks", caught_by=others)
def record_shapes(model, x):
    shapes = {}
    watch(model, shapes)
    try:
        model(x)
    finally:
        for m in model.modules():
            m._forward_hooks.clear()
    return shapes


@mutant("runs a copy", caught_by=called_once)
def record_shapes(model, x):
    model, shapes = copy.deepcopy(model), {}
    for name, m in model.named_modules():
        if not list(m.children()):
            m.register_forward_hook(
                lambda m, args, out, name=name: shapes.update({name: tuple(out.shape)})
            )
    model(x)
    return shapes


@hinted(1, reaches=own_names)
def record_shapes(model, x):
    shapes = {}
    for name, m in model.named_modules():
        m.register_forward_hook(lambda m, args, out, name=name: shapes.update({name: out.shape}))
    model.forward(x)
    return shapes


@accepted("a stack of contexts, and partial")
def record_shapes(model, x):
    from functools import partial

    shapes = {}

    def note(name, m, args, out):
        shapes[name] = out.size()

    with contextlib.ExitStack() as stack:
        for name, m in model.named_modules():
            if not any(True for _ in m.children()):
                stack.enter_context(m.register_forward_hook(partial(note, name)))
        model(x)
    return shapes


@accepted("one hook for all modules of the process")
def record_shapes(model, x):
    names = {m: name for name, m in model.named_modules() if next(m.children(), None) is None}
    shapes = {}

    def note(m, args, out):
        if m in names:
            shapes[names[m]] = (*out.shape,)

    handle = nn.modules.module.register_module_forward_hook(note)
    try:
        with torch.no_grad():
            model(x)
    finally:
        handle.remove()
    return shapes


equivalent(
    "shapes[name] = tuple(out.shape)",
    "shapes[name] = out.shape",
    because="torch.Size is a tuple.",
)
