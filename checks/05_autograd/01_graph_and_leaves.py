"""Judges lessons/05_autograd/01_graph_and_leaves.md."""

import sys

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "A model trains, but one part of it never changes.",
    "Which tensors does the loss reach at all?",
    "The graph knows.",
    "Two things make a graph larger than it looks.",
)

WALK = "A node names its parents in `next_functions`, and those have parents again."
EXTRA = "A leaf of the graph requires grad, and no operation has made it."
DEEP = (
    "A function may call itself about a thousand times. A list of nodes that wait has no such "
    "limit."
)
IDENTITY = "`in` and == compare the numbers. Which object it is, `is` says."


def leaf(rng, device):
    """A small leaf that requires grad."""
    return torch.randn(rng.randrange(1, 4), device=device, requires_grad=True)


def expect_leaves(answer, t, wanted, hint=WALK, extra_hint=EXTRA):
    """leaves(t) is these tensors, the very objects, each once.

    hint: where some are missing; extra_hint: where there are others.
    """
    with advising(RecursionError, hint=DEEP):
        got = answer.leaves(t)
    expect_true(isinstance(got, list), f"leaves returned {type(got).__name__}, no list")
    for item in got:
        expect_true(isinstance(item, torch.Tensor), f"{type(item).__name__} is in the list")
    extra = [g for g in got if all(g is not w for w in wanted)]
    expect_true(
        not extra,
        f"{len(extra)} of the {len(got)} tensors are no leaves of this graph",
        hint=extra_hint,
    )
    found = [w for w in wanted if any(g is w for g in got)]
    expect_true(
        len(found) == len(wanted), f"{len(found)} of {len(wanted)} leaves were found", hint=hint
    )
    expect_true(
        len(got) == len(wanted),
        f"the list has {len(got)} entries for {len(wanted)} leaves",
        hint="A leaf that was used twice is met twice. It belongs into the list once.",
    )


def steps_of(call):
    """How many lines Python executes during `call`."""
    count = 0

    def tracer(frame, event, arg):
        nonlocal count
        count += event == "line"
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
    return count


@check("the leaves of one operation are found")
def direct(answer, rng, device):
    a = leaf(rng, device)
    b = torch.randn(a.shape, device=device, requires_grad=True)
    expect_leaves(answer, a * b, [a, b], WALK)
    expect_leaves(answer, a.exp(), [a], WALK)


@check("leaves further down are found")
def further(answer, rng, device):
    a, b, c = (torch.randn(3, device=device, requires_grad=True) for _ in range(3))
    expect_leaves(answer, ((a * b).exp() + c).sum(), [a, b, c], WALK)
    parts = torch.stack([a * 2, b.sin()])
    expect_leaves(answer, parts[0].sum() + parts[1].sum() * c.sum(), [a, b, c], WALK)


@check(
    "each leaf is there once",
    holds="The leaves that get a gradient from t.backward(), each once.",
    both_sides=True,
)
def once(answer, rng, device):
    a = leaf(rng, device)
    b = torch.randn(a.shape, device=device, requires_grad=True)
    expect_leaves(answer, ((a * b + a) * a + b).sum(), [a, b], WALK)
    expect_leaves(answer, a + a, [a], WALK)


@check("constants are no leaves of the graph")
def constants(answer, rng, device):
    a = leaf(rng, device)
    c = torch.randn(a.shape, device=device)
    hint = "Where an operand requires no grad, `next_functions` has None instead of a node."
    expect_leaves(answer, (a * c + 1).sum() + c.sum(), [a], extra_hint=hint)
    expect_leaves(answer, (a.detach() * 2 + c * a).sum(), [a], extra_hint=hint)


@check(
    "a leaf is its own leaf, and without a graph there is none",
    holds=[
        "with a graph or without",
        "If t is a leaf that requires grad, it is the only one.",
        "If t does not require grad, there are none",
    ],
    both_sides=True,
)
def itself(answer, rng, device):
    a = leaf(rng, device)
    c = torch.randn(2, device=device)
    hint = "`grad_fn` is None for every leaf. Whether it gets a gradient is another question."
    expect_leaves(answer, a, [a], hint, hint)
    expect_leaves(answer, c, [], hint, hint)
    expect_leaves(answer, c * 2, [], hint, hint)
    expect_leaves(answer, (a * 2).detach(), [], hint, hint)


@check("a graph of thousands of nodes is walked", holds="It may be thousands of nodes deep")
def deep(answer, rng, device):
    a, b = (torch.randn(1, device=device, requires_grad=True) for _ in range(2))
    x = a
    for _ in range(3000 + rng.randrange(100)):
        x = x + b
    expect_leaves(answer, x, [a, b])


@check(
    "each node is visited once, however many ways lead to it",
    holds="And `x = x + x`, forty times, has forty-one nodes",
)
def many_ways(answer, rng, device):
    a = torch.zeros(1, device=device, requires_grad=True)
    few = steps_of(lambda: answer.leaves(doubled(a, 3)))
    many = steps_of(lambda: answer.leaves(doubled(a, 13)))
    expect_true(
        many < few * 8 + 200,
        f"3 doublings take {few} steps of Python, 13 doublings take {many}",
        hint="Each `x = x + x` doubles the ways. Remember the nodes that you have visited, and "
        "do not follow them again.",
    )
    expect_leaves(answer, doubled(a, 13), [a], WALK)


def doubled(x, times):
    """x = x + x, over and over."""
    for _ in range(times):
        x = x + x
    return x


@check(
    "unreached names what the loss does not depend on",
    holds=["which names the tensors that would be left out", "in the order of named"],
)
def names(answer, rng, device):
    words = ["weight", "scale", "bias", "shift", "head"]  # neither order of the alphabet
    params = [(word, torch.randn(3, device=device, requires_grad=True)) for word in words]
    used = rng.sample(range(5), 2)
    loss = (params[used[0]][1].exp() * params[used[1]][1]).sum()
    wanted = [name for i, (name, _) in enumerate(params) if i not in used]
    hint = "A tensor is reached if it is one of the leaves. Names keep the order of named."
    expect_equal(answer.unreached(loss, params), wanted, name="the names", hint=hint)
    everything = sum(p.sum() for _, p in params)
    expect_equal(answer.unreached(everything, params), [], name="the names", hint=hint)
    nothing = torch.zeros((), device=device)
    wanted = [name for name, _ in params]
    empty = "This t has no graph at all: nobody is reached, and backward() would raise."
    with advising(RuntimeError, saying="does not require grad", hint=empty):
        got = answer.unreached(nothing, params)
    expect_equal(got, wanted, name="the names", hint=empty)
    expect_equal(answer.unreached(loss, []), [], name="the names of no tensors", hint=hint)


@check("a frozen tensor is not reached", holds="with or without requires_grad", both_sides=True)
def frozen(answer, rng, device):
    n = rng.randrange(1, 4)
    w = torch.randn(n, device=device, requires_grad=True)
    ice = torch.randn(n, device=device)
    hint = "It was used, but it does not require grad: no gradient flows to it."
    with advising(RuntimeError, saying="does not require grad", hint=hint):
        got = answer.unreached((w * ice).sum(), [("ice", ice), ("w", w)])
    expect_equal(got, ["ice"], name="the names", hint=hint)


@check(
    "tensors with equal numbers are told apart",
    holds="list of tensors, the very objects, in any order",
    both_sides=True,
)
def equal_values(answer, rng, device):
    one, two = (torch.zeros(1, device=device, requires_grad=True) for _ in range(2))
    expect_equal(
        answer.unreached((one * 3).sum(), [("one", one), ("two", two)]),
        ["two"],
        name="the names of two biases that are both 0",
        hint=IDENTITY,
    )
    expect_leaves(answer, (one * two).sum(), [one, two], IDENTITY)
    twin = one.detach().requires_grad_()
    expect_equal(
        answer.unreached((one * 3).sum(), [("one", one), ("twin", twin)]),
        ["twin"],
        name="the names of two leaves that share their memory",
        hint="Each is a leaf of its own, with a .grad of its own. " + IDENTITY,
    )
    square, line = (torch.zeros(*s, device=device, requires_grad=True) for s in ((2, 2), (2,)))
    with advising(RuntimeError, hint=IDENTITY):
        got = answer.unreached(square.sum(), [("line", line), ("square", square)])
    expect_equal(got, ["line"], name="the names", hint=IDENTITY)


@check("the graph is only read", holds="no .grad changes")
def read_only(answer, rng, device):
    a, b, c = (torch.randn(3, device=device, requires_grad=True) for _ in range(3))
    c.grad = torch.ones(3, device=device)
    loss = (a.exp() * b).sum()
    named = [("a", a), ("b", b), ("c", c)]
    expect_equal(
        answer.unreached(loss, named),
        ["c"],
        name="the names",
        hint="c has the gradient of another loss. Ask the graph, not `.grad`.",
    )
    answer.leaves(loss)
    hint = "backward adds to `.grad` and frees the graph. Neither is yours to use up."
    expect_true(a.grad is None and b.grad is None, "the leaves have gradients now", hint=hint)
    expect_true(bool((c.grad == 1).all()), "c's gradient was changed", hint=hint)
    try:
        loss.backward()
    except RuntimeError:
        fail("the caller can no longer run backward", hint=hint)


@mutant("looks at the direct parents", caught_by=further)
def leaves(t):
    if t.grad_fn is None:
        return [t] if t.requires_grad else []
    found = {node for node, _ in t.grad_fn.next_functions if hasattr(node, "variable")}
    return [node.variable for node in found]


@mutant("walks down the first operand", caught_by=direct)
def leaves(t):
    if t.grad_fn is None:
        return [t] if t.requires_grad else []
    node = t.grad_fn
    while node is not None and node.next_functions:
        node = node.next_functions[0][0]
    return [] if node is None else [node.variable]


@mutant("lists a leaf for each of its uses", caught_by=once)
def leaves(t):
    if t.grad_fn is None:
        return [t] if t.requires_grad else []
    waiting, found = [t.grad_fn], []
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        if node is not None:
            waiting += [parent for parent, _ in node.next_functions]
    return found


@mutant("follows every way and sorts out afterwards", caught_by=many_ways)
def leaves(t):
    if t.grad_fn is None:
        return [t] if t.requires_grad else []
    waiting, found = [t.grad_fn], {}
    while waiting:
        node = waiting.pop()
        if hasattr(node, "variable"):
            found[id(node.variable)] = node.variable
        if node is not None:
            waiting += [parent for parent, _ in node.next_functions]
    return list(found.values())


@mutant("calls itself for each parent", caught_by=deep)
def leaves(t):
    seen, found = set(), []

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        for parent, _ in node.next_functions:
            visit(parent)

    visit(t.grad_fn)
    return found or ([t] if t.requires_grad else [])


@mutant("forgets that t may be a leaf", caught_by=itself)
def leaves(t):
    waiting, seen, found = [t.grad_fn], set(), []
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            if hasattr(node, "variable"):
                found.append(node.variable)
            waiting += [parent for parent, _ in node.next_functions]
    return found


@mutant("counts every tensor without a node as a leaf", caught_by=itself)
def leaves(t):
    if t.grad_fn is None:
        return [t]
    waiting, seen = [t.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    return [node.variable for node in seen if hasattr(node, "variable")]


@mutant("compares the numbers", caught_by=equal_values)
def unreached(t, named):
    waiting, seen = [t.grad_fn], {None}
    while waiting:
        node = waiting.pop()
        if node not in seen:
            seen.add(node)
            waiting += [parent for parent, _ in node.next_functions]
    reached = [node.variable for node in seen if hasattr(node, "variable")]
    return [name for name, p in named if p not in reached]


@mutant("compares the addresses", caught_by=equal_values)
def unreached(t, named):
    waiting, seen, reached = [t.grad_fn], set(), set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            reached |= {node.variable.data_ptr()} if hasattr(node, "variable") else set()
            waiting += [parent for parent, _ in node.next_functions]
    return [name for name, p in named if p.data_ptr() not in reached]


@mutant("runs backward and looks who has a gradient", caught_by=read_only)
def unreached(t, named):
    if t.requires_grad:
        t.backward()
    return [name for name, p in named if p.grad is None]


@mutant("lists what does not require grad", caught_by=names)
def unreached(t, named):
    return [name for name, p in named if not p.requires_grad]


@mutant("sorts the names", caught_by=names)
def unreached(t, named):
    waiting, seen, reached = [t.grad_fn], set(), set()
    while waiting:
        node = waiting.pop()
        if node is not None and node not in seen:
            seen.add(node)
            reached |= {id(node.variable)} if hasattr(node, "variable") else set()
            waiting += [parent for parent, _ in node.next_functions]
    return sorted(name for name, p in named if id(p) not in reached)


@mutant("asks autograd about tensors that require no grad", caught_by=frozen)
def unreached(t, named):
    leaves = [p for _, p in named]
    if not leaves or not t.requires_grad:
        return [name for name, _ in named]
    shares = torch.autograd.grad(t, leaves, retain_graph=True, allow_unused=True)
    return [name for (name, _), share in zip(named, shares, strict=True) if share is None]


@hinted(1, reaches=direct)
def leaves(t):
    waiting, found = [t.grad_fn], []
    while waiting:
        node = waiting.pop()
        if node is None:
            continue
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting += [parent for parent, _ in node.next_functions]
    return found


@accepted("takes one layer of the graph after the other")
def leaves(t):
    if not t.requires_grad:
        return []
    if t.is_leaf:
        return [t]
    seen, layer = set(), {t.grad_fn}
    while layer:
        seen |= layer
        layer = {p for node in layer for p, _ in node.next_functions} - seen - {None}
    return [node.variable for node in seen if type(node).__name__ == "AccumulateGrad"]


@accepted("asks autograd which gradients are unused")
def unreached(t, named):
    wanted = [(name, p) for name, p in named if p.requires_grad]
    if not t.requires_grad or not wanted:
        return [name for name, _ in named]
    shares = torch.autograd.grad(t, [p for _, p in wanted], retain_graph=True, allow_unused=True)
    have = {name for (name, _), share in zip(wanted, shares, strict=True) if share is not None}
    return [name for name, _ in named if name not in have]
