"""Judges lessons/06_autograd_advanced/05_autograd_hooks.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Training is unstable",
    "The run itself must not notice.",
    "Two facts make that harder",
)

NAMES = "A function made in a loop looks `name` up when it runs, and by then the loop is over. "
NAMES += "Bind this round's name, as a default argument."
NOTHING = (
    "No hook has written anything. `.grad` is no help: before backward it is empty, and in the "
)
NOTHING += "middle of a graph it stays so. `register_hook` is called with the gradient."
TWO_NAMES = "Here one tensor has two names. Each name gets an entry."
ONLY_LOOKS = (
    "What a hook returns takes the gradient's place. One that only looks returns None, and "
)
ONLY_LOOKS += "writes into nothing."


class Chain:
    """x -> a -> b -> loss. a is used twice, b is a matrix product, the loss is weighted."""

    def __init__(self, rng, device, dtype=torch.float32, rows=None):
        n = rng.randrange(1, 6) if rows is None else rows
        m, k = rng.randrange(1, 6), rng.randrange(1, 6)
        make = {"device": device, "dtype": dtype}
        self.weights = torch.randn(m, k, **make)
        self.upstream = torch.randn(n, k, **make)
        self.x = torch.randn(m, n, **make).T.requires_grad_()
        self.a = self.x.sin()
        self.b = (self.a + 0.5 * self.a) @ self.weights
        self.loss = (self.b * self.upstream).sum()
        self.grads = {"b": self.upstream, "a": 1.5 * self.upstream @ self.weights.T}
        self.grads["x"] = self.grads["a"] * self.x.detach().cos()

    def pick(self, *names):
        return {f"layer.{name}": getattr(self, name) for name in names}


def watch(answer, tensors):
    got = answer.capture_grads(tensors)
    expect_true(
        isinstance(got, tuple) and len(got) == 2 and isinstance(got[0], dict) and callable(got[1]),
        "capture_grads does not return a dict and a function",
        hint="Return both: `return grads, remove`.",
    )
    return got


def go_back(loss, **settings):
    """backward(), which may meet what a hook has returned."""
    with advising(RuntimeError, saying="has changed the", hint=ONLY_LOOKS):
        loss.backward(**settings)


def expect_grads(grads, chain, *names, hint="", missing_hint=""):
    """hint: for other entries or values; missing_hint: for entries that are not there."""
    wanted = {f"layer.{name}": chain.grads[name] for name in names}
    missing = sorted(wanted.keys() - grads.keys())
    message = f"there is no entry for {missing}"
    expect_true(not missing, message, hint=missing_hint if grads else NOTHING)
    extra = sorted(grads.keys() - wanted.keys(), key=str)
    expect_true(not extra, f"there are entries for {extra}", hint=hint)
    for name, grad in wanted.items():
        expect_close(grads[name], grad, name=f"grads[{name!r}]", hint=hint)


@check(
    "each name gets the gradient of its own tensor",
    holds=[
        "dict of str -> tensor that requires grad, any shape",
        "one tensor may have two names",
        "name -> its gradient there",
    ],
)
def own_names(answer, rng, device):
    for names in (("a", "b"), ("b", "a"), ("x", "b", "a"), ("a",)):
        for dtype, rows in ((torch.float32, None), (torch.float64, None), (torch.float32, 0)):
            chain = Chain(rng, device, dtype, rows)
            grads, _ = watch(answer, chain.pick(*names))
            go_back(chain.loss)
            arrived = "Each entry is what arrived at the tensor of that name."
            expect_grads(grads, chain, *names, hint=arrived, missing_hint=NAMES)
    pair = torch.randn(2, 3, device=device, requires_grad=True).unbind()
    grads, _ = watch(answer, {"first": pair[0], "second": pair[1]})
    go_back(pair[0].sum() + 2 * pair[1].sum())
    node = "Both came out of one node. The gradient of each is its own: a hook on the tensor is "
    node += "called with it, a hook on the node with those of all outputs."
    for name, factor in (("first", 1.0), ("second", 2.0)):
        right = torch.full((3,), factor, device=device)
        expect_close(grads.get(name), right, name=f"grads[{name!r}]", hint=node)
    point = torch.tensor(3.0, device=device, requires_grad=True)
    grads, _ = watch(answer, {"point": point, "again": point})
    go_back(point * point)
    for name in ("point", "again"):
        expect_true(name in grads, f"there is no entry for {name!r}", hint=TWO_NAMES)
        expect_close(grads[name], torch.tensor(6.0, device=device), name=f"grads[{name!r}]")


@check(
    "an entry appears when backward has reached its tensor",
    holds=[
        "grads: dict, empty at first.",
        "A backward stores, for each tensor that it reaches",
    ],
    both_sides=True,
)
def when_reached(answer, rng, device):
    chain = Chain(rng, device)
    aside = chain.x * 2
    grads, _ = watch(answer, {**chain.pick("a"), "aside": aside})
    expect_equal(grads, {}, name="grads before any backward", hint="Leave the work to the hooks.")
    go_back(chain.loss)
    hint = "A tensor that the loss does not depend on gets no gradient at all."
    expect_grads(grads, chain, "a", hint=hint)
    go_back(aside.sum())
    expect_true("aside" in grads, "there is no entry for 'aside' after its own backward")
    kept = "This backward reaches 'aside' alone. The entry of another tensor stays."
    expect_true("layer.a" in grads, "the entry for 'layer.a' is gone after it", hint=kept)
    expect_close(grads["layer.a"], chain.grads["a"], name="grads['layer.a']", hint=kept)
    expect_equal(watch(answer, {})[0], {}, name="grads for no tensors")


@check(
    "the gradients that the run computes stay as they are",
    holds=[
        "Each gradient stays as it is, the hooks of others stay on",
        "no tensor retains a `.grad` that it would not have",
    ],
    side="gradients",
)
def unnoticed(answer, rng, device):
    for names in (("a", "b"), ("x",), ("x", "a", "b")):
        chain = Chain(rng, device)
        watch(answer, chain.pick(*names))
        none = "Until a backward has reached it, a leaf has no .grad. Leave the field alone."
        expect_true(chain.x.grad is None, "x has a .grad before any backward", hint=none)
        go_back(chain.loss)
        expect_close(chain.x.grad, chain.grads["x"], name="x.grad", hint=ONLY_LOOKS)
        expect_true(
            not chain.a.retains_grad and not chain.b.retains_grad,
            "a tensor in the middle has been told to keep its gradient",
            hint="A hook needs no `retain_grad`, which stays on after remove().",
        )


@check(
    "the last backward counts, not the first and not the sum",
    holds=["a new copy in each backward", "takes the place of the entry before"],
    both_sides=True,
)
def last(answer, rng, device):
    chain = Chain(rng, device)
    grads, _ = watch(answer, chain.pick("x", "a"))
    go_back(chain.loss * 3, retain_graph=True)
    first = grads.get("layer.a")
    go_back(chain.loss)
    hint = "A new gradient takes the old one's place. The `.grad` of a leaf adds up over the "
    hint += "backwards; what `register_hook` is called with does not."
    expect_grads(grads, chain, "x", "a", hint=hint)
    name = "the entry that was taken out after the first backward"
    hint = "Somebody may have kept the old entry. Put a new tensor in its place, and do not write "
    hint += "into the old one."
    expect_close(first, 3 * chain.grads["a"], name=name, hint=hint)


@check(
    "each entry has memory of its own",
    holds=[
        "The entries are read after backward, perhaps much later.",
        "Autograd may hand *the same* tensor to two hooks",
    ],
    both_sides=True,
)
def own_memory(answer, rng, device):
    left = torch.randn(3, device=device, requires_grad=True)
    a, b = left * 2, left * 3
    grads, _ = watch(answer, {"a": a, "b": b})
    later = a.register_hook(lambda g: g.mul_(-1).clone().mul_(-1))
    upstream = torch.rand(3, device=device) + 1
    go_back(((a + b) * upstream).sum())
    later.remove()
    hint = "An addition hands one tensor to both sides, and others may write into it later. Store "
    hint += "a copy, and return None: what a hook returns travels on, and is written into as well."
    expect_close(grads.get("a"), upstream, name="grads['a'], after a later hook wrote", hint=hint)
    sides = {"one": left * 2, "two": left * 3}
    grads, _ = watch(answer, sides)
    go_back(((sides["one"] + sides["two"]) * upstream).sum())
    expect_close(grads.get("one"), upstream, name="grads['one']")
    grads["one"].zero_()
    name = "grads['two'], after grads['one'].zero_()"
    expect_close(grads.get("two"), upstream, name=name, hint=hint)


@check(
    "an entry holds on to no graph",
    holds=["And `backward(create_graph=True)`, which records backward itself", "without history"],
)
def no_history(answer, rng, device):
    x = torch.rand(4, device=device, requires_grad=True)
    a = x * 2
    loss = (a**3).sum()
    grads, _ = watch(answer, {"a": a})
    go_back(loss, create_graph=True)
    try:
        grad = grads.get("a")
        expect_close(grad, 3 * a.detach() ** 2, name="grads['a']")
        expect_true(
            not grad.requires_grad,
            "grads['a'] requires grad after backward(create_graph=True)",
            hint="This gradient has a history. An entry that keeps it keeps the whole graph alive.",
        )
    finally:
        x.grad = None  # or it would hold the graph in a circle


@check(
    "remove() ends the watching of every tensor",
    holds=[
        "it watches the given tensors until it is told to stop",
        "a function without arguments that ends the watching; grads keeps what it has",
    ],
)
def removed(answer, rng, device):
    chain = Chain(rng, device)
    grads, remove = watch(answer, chain.pick("x", "a", "b"))
    go_back(chain.loss, retain_graph=True)
    there = bool(grads)
    remove()
    kept = "remove() leaves the entries as they are."
    expect_true(grads or not there, "after remove() the entries are gone", hint=kept)
    expect_grads(grads, chain, "x", "a", "b", hint=kept, missing_hint=NAMES)
    grads.clear()
    go_back(chain.loss)
    names = sorted(map(str, grads))
    expect_true(
        not grads,
        f"after remove() a backward still wrote {names}",
        hint="register_hook returns a handle. Keep them all, and call .remove() on each.",
    )
    left = [len(t._backward_hooks or {}) for t in (chain.x, chain.a, chain.b)]
    expect_true(
        left == [0, 0, 0],
        f"after remove(), {sum(left)} hooks are still on the tensors",
        hint="They write nothing, but run in every backward. handle.remove() takes a hook off.",
    )


@check(
    "remove() leaves the hooks of others on",
    holds="Each gradient stays as it is, the hooks of others stay on",
    side="hooks",
)
def others(answer, rng, device):
    chain = Chain(rng, device)
    runs = []
    chain.a.register_hook(lambda g: runs.append("before"))
    _, remove = watch(answer, chain.pick("a"))
    chain.a.register_hook(lambda g: runs.append("after"))
    second, _ = watch(answer, chain.pick("a"))
    remove()
    go_back(chain.loss)
    hint = "Take off what you put on, and nothing else."
    expect_equal(runs, ["before", "after"], name="the list of other hooks that ran", hint=hint)
    if not second:
        fail("a second watcher of the same tensor went blind", hint=hint)


def watched(tensors, keep, grads):
    """remove() for hooks that call keep(grads, name, gradient)."""
    handles = [
        t.register_hook(lambda g, name=name: keep(grads, name, g)) for name, t in tensors.items()
    ]
    return lambda: [handle.remove() for handle in handles]


@mutant("fills the .grad of leaves with zeros", caught_by=unnoticed)
def capture_grads(tensors):
    grads, handles = {}, []
    for name, t in tensors.items():
        if t.is_leaf and t.grad is None:
            t.grad = torch.zeros_like(t)
        store = lambda g, name=name: grads.update({name: g.detach().clone()})  # noqa: E731
        handles.append(t.register_hook(store))
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("hangs the hook on the node, and takes its first gradient", caught_by=own_names)
def capture_grads(tensors):
    grads, handles = {}, []
    for name, t in tensors.items():

        def store(given, name=name):
            grads[name] = (given[0] if isinstance(given, tuple) else given).detach().clone()

        place = t.register_hook if t.grad_fn is None else t.grad_fn.register_prehook
        handles.append(place(store))
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("binds the name late", caught_by=own_names)
def capture_grads(tensors):
    grads, handles = {}, []
    for name, t in tensors.items():

        def keep(grad):
            grads[name] = grad.detach().clone()  # noqa: B023

        handles.append(t.register_hook(keep))
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("reads .grad at once", caught_by=own_names)
def capture_grads(tensors):
    return {name: t.grad for name, t in tensors.items() if t.grad is not None}, lambda: None


@mutant("prepares an entry for each name", caught_by=when_reached)
def capture_grads(tensors):
    grads = dict.fromkeys(tensors)

    def keep(grads, name, g):
        grads[name] = g.detach().clone()

    return grads, watched(tensors, keep, grads)


@mutant("retains the gradients", caught_by=unnoticed)
def capture_grads(tensors):
    grads = {}
    for t in tensors.values():
        t.retain_grad()

    def keep(grads, name, g):
        grads[name] = g.detach().clone()

    return grads, watched(tensors, keep, grads)


@mutant("returns something else", caught_by=unnoticed)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach().clone()
        return g * 0

    return grads, watched(tensors, keep, grads)


@mutant("keeps the first gradient", caught_by=last)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads.setdefault(name, g.detach().clone())

    return grads, watched(tensors, keep, grads)


@mutant("writes into the old entry", caught_by=last)
def capture_grads(tensors):
    def keep(grads, name, grad):
        grads.setdefault(name, torch.empty_like(grad)).copy_(grad.detach())

    grads = {}
    return grads, watched(tensors, keep, grads)


@mutant("finds the name by the tensor", caught_by=own_names)
def capture_grads(tensors):
    grads, handles = {}, []
    for t in tensors.values():

        def keep(grad, t=t):
            name = next(name for name, other in tensors.items() if other is t)
            grads[name] = grad.detach().clone()

        handles.append(t.register_hook(keep))
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("adds the gradients up", caught_by=last)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = grads.get(name, 0) + g.detach()

    return grads, watched(tensors, keep, grads)


@mutant("stores the tensor that it was given", caught_by=own_memory)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach()

    return grads, watched(tensors, keep, grads)


@mutant("hands its copy on", caught_by=own_memory)
def capture_grads(tensors):
    grads = {}

    def keep(name):
        def copy(g):
            grads[name] = g.detach().clone()
            return grads[name]

        return copy

    handles = [t.register_hook(keep(name)) for name, t in tensors.items()]
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("reads the .grad of leaves, which adds up", caught_by=last)
def capture_grads(tensors):
    grads, handles = {}, []
    for name, t in tensors.items():

        def after(p, name=name):
            grads[name] = p.grad.detach().clone()

        def arriving(g, name=name):
            grads[name] = g.detach().clone()

        if t.is_leaf:
            handles.append(t.register_post_accumulate_grad_hook(after))
        else:
            handles.append(t.register_hook(arriving))
    return grads, lambda: [handle.remove() for handle in handles]


@mutant("stores float32", caught_by=own_names)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach().float().clone()

    return grads, watched(tensors, keep, grads)


@mutant("clones the history too", caught_by=no_history)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.clone()

    return grads, watched(tensors, keep, grads)


@mutant("remove does nothing", caught_by=removed)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach().clone()

    watched(tensors, keep, grads)
    return grads, lambda: None


@mutant("raises a flag and leaves the hooks on", caught_by=removed)
def capture_grads(tensors):
    grads, watching = {}, [True]

    def keep(store, name, grad):
        if watching:
            store[name] = grad.detach().clone()

    watched(tensors, keep, grads)
    return grads, watching.clear


@mutant("removes the last hook only", caught_by=removed)
def capture_grads(tensors):
    grads = {}
    for name, t in tensors.items():

        def keep(grad, name=name):
            grads[name] = grad.detach().clone()

        handle = t.register_hook(keep)
    return grads, lambda: handle.remove() if tensors else None


@mutant("empties the dict as well", caught_by=removed)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach().clone()

    remove = watched(tensors, keep, grads)
    return grads, lambda: (remove(), grads.clear())


@mutant("takes every hook off", caught_by=others)
def capture_grads(tensors):
    grads = {}

    def keep(grads, name, g):
        grads[name] = g.detach().clone()

    watched(tensors, keep, grads)

    def remove():
        for t in tensors.values():
            if t._backward_hooks:
                t._backward_hooks.clear()

    return grads, remove


@hinted(1, reaches=own_names)
def capture_grads(tensors):
    grads = {}
    for name, t in tensors.items():
        t.register_hook(lambda g, name=name: grads.setdefault(name, g))
    return grads, lambda: None


@accepted("a function that makes hooks")
def capture_grads(tensors):
    grads = {}

    def keeper(name):
        def keep(grad):
            grads.update({name: grad.clone().detach()})

        return keep

    handles = [t.register_hook(keeper(name)) for name, t in tensors.items()]

    def remove():
        while handles:
            handles.pop().remove()

    return grads, remove


@accepted("copies with recording off")
def capture_grads(tensors):
    grads, handles = {}, []

    class Keep:
        def __init__(self, name):
            self.name = name

        @torch.no_grad()
        def __call__(self, grad):
            grads[self.name] = torch.clone(grad)

    for name in tensors:
        handles.append(tensors[name].register_hook(Keep(name)))
    return grads, lambda: [handle.remove() for handle in handles]


@accepted("hooks for groups of one tensor")
def capture_grads(tensors):
    from torch.autograd.graph import register_multi_grad_hook

    grads = {}

    def watch(name, tensor):
        return register_multi_grad_hook(
            [tensor], lambda g: grads.update({name: g.detach().clone()}), mode="any"
        )

    handles = [watch(name, tensor) for name, tensor in tensors.items()]
    return grads, lambda: [handle.remove() for handle in handles]


@accepted("partial and a stack of contexts")
def capture_grads(tensors):
    from contextlib import ExitStack
    from functools import partial

    grads, stack = {}, ExitStack()

    def keep(name, grad):
        grads[name] = torch.empty_like(grad, requires_grad=False).copy_(grad.detach())

    for name, t in tensors.items():
        stack.callback(t.register_hook(partial(keep, name)).remove)
    return grads, stack.close
