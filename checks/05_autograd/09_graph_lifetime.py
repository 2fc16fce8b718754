"""Judges lessons/05_autograd/09_graph_lifetime.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write `tbptt`, the inner loop", "`xs.split(k)` gives pieces of k")

shows = ["autograd/detach_vs_data"]


class Cell:
    """tanh(x W + h U), in float64. Knows how many of its results wait for a backward."""

    def __init__(self, rng, device):
        self.d, self.n = rng.randrange(2, 5), rng.randrange(2, 5)
        shapes = {"W": (self.d, self.n), "U": (self.n, self.n)}
        self.parameters = {
            name: torch.randn(shape, dtype=torch.float64, device=device).requires_grad_()
            for name, shape in shapes.items()
        }
        self.seen = []
        self.waiting = self.most = 0

    def __repr__(self):
        return "cell"

    def __call__(self, x, h):
        self.seen.append(x)
        out = torch.tanh(x @ self.parameters["W"] + h @ self.parameters["U"])
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        out.register_hook(self.gone_back)
        return out

    def gone_back(self, grad):
        self.waiting -= 1

    def text(self, steps, batch):
        """Inputs (T, B, D) and a state (B, H)."""
        W = self.parameters["W"]
        shapes = (steps, batch, self.d), (batch, self.n)
        return (torch.randn(shape, dtype=W.dtype, device=W.device) for shape in shapes)


def wanted(cell, xs, h, k):
    """The last state, the loss, and the gradients by name: chunk by chunk, by autograd.grad."""
    W, U = cell.parameters.values()
    sums = {name: torch.zeros_like(p) for name, p in cell.parameters.items()}
    total, h = 0.0, h.detach()
    for start in range(0, len(xs), k):
        states = [h.detach()]
        for x in xs[start : start + k]:
            states.append(torch.tanh(x @ W + states[-1] @ U))
        loss = torch.stack(states[1:]).square().sum()
        shares = torch.autograd.grad(loss, [W, U], allow_unused=True)
        for name, share in zip(sums, shares, strict=True):
            sums[name] += 0 if share is None else share
        total, h = total + loss.item(), states[-1].detach()
    return h, total, sums


def take(answer, cell, xs, h, k):
    """The learner's (state, total)."""
    hint = (
        "Backward walked into a graph that was spent: that of the chunk before, or of the call "
        "before. The state brings it along, unless it is cut."
    )
    with advising(RuntimeError, saying="a second time", hint=hint):
        got = answer.tbptt(cell, xs, h, k)
    pair = isinstance(got, tuple) and len(got) == 2
    expect_true(pair, "two results are wanted: the last state and the total")
    return got


def expect_gradients(cell, sums, hint):
    for name, p in cell.parameters.items():
        expect_true(
            p.grad is not None,
            f"{name}.grad is None",
            hint="No chunk went back. The last one does too, even if it has fewer than k steps.",
        )
        expect_close(p.grad, sums[name], name=f"{name}.grad", rtol=1e-9, atol=1e-9, hint=hint)


@check(
    "one chunk for all steps gives the full gradient",
    holds=[
        "The loss of a chunk is the sum of `(h ** 2).sum()` over its steps.",
        "T is 1 or more",
        "steps in a chunk, 1 or more",
    ],
    both_sides=True,
)
def one_chunk(answer, rng, device):
    for steps, k in ((rng.randrange(3, 7), 100), (4, 4), (1, 3)):
        cell = Cell(rng, device)
        xs, h = cell.text(steps, rng.randrange(1, 4))
        _, _, sums = wanted(cell, xs, h, k)
        take(answer, cell, xs, h, k)
        expect_gradients(
            cell,
            sums,
            f"All {steps} steps are one chunk here. Inside a chunk nothing is cut, or no step "
            "learns what it did to the later ones. Each step's (h ** 2).sum() counts in the loss, "
            "as it is: nothing is divided.",
        )


@check(
    "gradients stop between chunks",
    holds=["It goes through the text in chunks of k steps", "the history does not"],
)
def chunks(answer, rng, device):
    for steps, k in ((7, 3), (8, 2), (5, 4), (3, 1)):
        cell = Cell(rng, device)
        xs, h = cell.text(steps, rng.randrange(1, 4))
        _, _, sums = wanted(cell, xs, h, k)
        take(answer, cell, xs, h, k)
        expect_gradients(
            cell,
            sums,
            f"T = {steps}, k = {k}. A chunk learns from its own steps alone, and the last chunk "
            "may be shorter. Kept graphs let the gradient cross the border.",
        )


@check(
    "gradients are added to those that were there",
    holds="the gradients add up in the parameters' `.grad`",
    both_sides=True,
)
def added(answer, rng, device):
    cell = Cell(rng, device)
    xs, h = cell.text(5, 2)
    _, _, sums = wanted(cell, xs, h, 2)
    for name, p in cell.parameters.items():
        p.grad = torch.full_like(p, 7)
        sums[name] += 7
    take(answer, cell, xs, h, 2)
    hint = "Every .grad held 7 before the call, and holds 7 and the gradients of all chunks after "
    hint += "it. Clearing is the caller's."
    expect_gradients(cell, sums, hint)


@check(
    "the last state goes on, without history",
    holds=["The state goes on from chunk to chunk", "the last state, without history"],
)
def state(answer, rng, device):
    for steps, k in ((rng.randrange(3, 8), 3), (1, 1)):
        cell = Cell(rng, device)
        xs, h = cell.text(steps, rng.randrange(1, 4))
        right, _, _ = wanted(cell, xs, h, k)
        got, _ = take(answer, cell, xs, h, k)
        expect_shape(got, h.shape, name="the last state")
        expect_true(
            not got.requires_grad,
            "the last state has a history",
            hint="Whoever keeps it keeps the graph of the last chunk, and walks into it next time.",
        )
        expect_close(got, right, name="the last state", hint="The value passes every cut.")


@check(
    "the total is a plain number: the loss of all steps",
    holds=["the loss of the whole text as a plain number", "the loss of all T steps"],
)
def total(answer, rng, device):
    for steps, k in ((7, 3), (4, 2), (1, 5)):
        cell = Cell(rng, device)
        xs, h = cell.text(steps, 2)
        _, right, _ = wanted(cell, xs, h, k)
        _, got = take(answer, cell, xs, h, k)
        expect_true(
            not isinstance(got, torch.Tensor),
            "the total is a tensor",
            hint="A sum of losses leads to the nodes of all of them. Take the numbers out.",
        )
        expect_true(isinstance(got, float), f"the total is of type {type(got).__name__}, not float")
        expect_true(
            abs(got - right) < 1e-5 * (1 + right),
            f"with T = {steps} and k = {k} the total is {got:.6g}, not {right:.6g}",
            hint="The sum of (h ** 2).sum() over all steps of all chunks.",
        )


@check(
    "a state with a spent history may come in",
    holds=["The state that comes in may have a history too", "it stays as it is"],
)
def spent(answer, rng, device):
    cell = Cell(rng, device)
    xs, start = cell.text(5, 2)
    origin = start.requires_grad_()
    h = origin.exp().tanh()
    h.sum().backward()
    before = origin.grad.clone()
    _, _, sums = wanted(cell, xs, h, 2)
    with expect_unchanged(h, hint="The caller's state stays as it is."):
        take(answer, cell, xs, h, 2)
    expect_gradients(cell, sums, "The history before the first step must not count.")
    expect_equal(origin.grad, before, name="the .grad of what came before the text")
    expect_true(
        h.grad_fn is not None,
        "the caller's h has lost its history",
        hint="`detach_()` cuts the caller's own tensor. `detach()` makes a new one.",
    )


@check("no gradient flows into the state that came in", holds="No gradient flows into it.")
def first_state(answer, rng, device):
    cell = Cell(rng, device)
    xs, h = cell.text(4, 2)
    h.requires_grad_()
    take(answer, cell, xs, h, 2)
    expect_true(
        h.grad is None,
        "h.grad is not None after the call",
        hint="The first chunk reached back behind its first step. Cut before it, too.",
    )
    expect_true(h.requires_grad, "the caller's h has lost its flag", hint="Make a new tensor.")


@check(
    "only one chunk's graph is alive at a time",
    holds="After each chunk it goes back once",
    both_sides=True,
)
def one_graph(answer, rng, device):
    for k in (1, rng.randrange(2, 5)):
        steps = 3 * k + rng.randrange(1, 3)
        cell = Cell(rng, device)
        xs, h = cell.text(steps, 1)
        take(answer, cell, xs, h, k)
        expect_true(
            cell.most <= k,
            f"{cell.most} steps waited for a backward at once, and a chunk has {k}",
            hint="Go back at the end of each chunk: that is what frees its memory.",
        )
        passes = steps - cell.waiting
        expect_true(
            passes == steps,
            f"for chunks of {k}, backward came by {passes} steps, and the text has {steps}",
            hint="One backward for the whole chunk, from the sum of its losses, comes by each of "
            "its steps once. One for each step walks the earlier ones again.",
        )


@check(
    "each step runs the cell once, in order",
    holds="calls `cell` once for each step",
    both_sides=True,
)
def once(answer, rng, device):
    cell = Cell(rng, device)
    xs, h = cell.text(7, 2)
    take(answer, cell, xs, h, 3)
    expect_true(
        len(cell.seen) == 7,
        f"the cell ran {len(cell.seen)} times for 7 steps",
        hint="Each step costs one forward. Use its result for the loss, the total and the state.",
    )
    expect_equal(torch.stack(cell.seen), xs, name="what the cell was given")


@mutant("cuts nothing", caught_by=chunks)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant("goes back after each step, through the whole chunk again", caught_by=one_graph)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        h = h.detach()
        for x in chunk:
            h = cell(x, h)
            loss = (h**2).sum()
            loss.backward(retain_graph=True)
            total += loss.item()
    return h.detach(), total


@mutant("keeps the graph instead of cutting it", caught_by=chunks)
def tbptt(cell, xs, h, k):
    total, h = 0.0, h.detach()
    for chunk in xs.split(k):
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward(retain_graph=True)
        total += loss.item()
    return h.detach(), total


@mutant("cuts at every step", caught_by=one_chunk)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        loss = 0.0
        for x in chunk:
            h = cell(x, h.detach())
            loss = loss + (h**2).sum()
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant("cuts after each chunk and not before the first", caught_by=first_state)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward()
        total += loss.item()
        h = h.detach()
    return h, total


@mutant("walks into the history of the call before", caught_by=spent)
def tbptt(cell, xs, h, k):
    total = 0.0
    for number, chunk in enumerate(xs.split(k)):
        h = h.detach() if number else h
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant(
    "cuts the caller's state in place",
    caught_by=spent,
    misconception="autograd/detach_vs_data",
    like="cuts in place",
)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        h.detach_()
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward()
        total += loss.item()
    return h.detach(), total


def with_cuts(cell, xs, h, k, last_only=False):
    """The loss of each chunk, in turn, with the state after it."""
    for chunk in xs.split(k):
        h = h.detach()
        losses = []
        for x in chunk:
            h = cell(x, h)
            losses.append((h**2).sum())
        yield losses[-1] if last_only else sum(losses), h


@mutant("hands the history on with the state", caught_by=state)
def tbptt(cell, xs, h, k):
    total = 0.0
    for loss, last in with_cuts(cell, xs, h, k):
        h = last
        loss.backward()
        total += loss.item()
    return h, total


@mutant("sums the losses with their graphs", caught_by=total)
def tbptt(cell, xs, h, k):
    total = 0.0
    for loss, last in with_cuts(cell, xs, h, k):
        h = last
        loss.backward()
        total = total + loss
    return h.detach(), total


@mutant("reports the last chunk only", caught_by=total)
def tbptt(cell, xs, h, k):
    for loss, last in with_cuts(cell, xs, h, k):
        h = last
        loss.backward()
    return h.detach(), loss.item()


@mutant("counts the last step of a chunk only", caught_by=one_chunk)
def tbptt(cell, xs, h, k):
    total = 0.0
    for loss, last in with_cuts(cell, xs, h, k, last_only=True):
        h = last
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant("goes back once, at the end", caught_by=one_graph)
def tbptt(cell, xs, h, k):
    whole = 0.0
    for loss, last in with_cuts(cell, xs, h, k):
        h = last
        whole = whole + loss
    whole.backward()
    return h.detach(), whole.item()


@mutant("drops the short chunk at the end", caught_by=chunks)
def tbptt(cell, xs, h, k):
    full = len(xs) // k * k if len(xs) > k else len(xs)
    total = 0.0
    for loss, last in with_cuts(cell, xs[:full], h, k):
        h = last
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant("clears the gradients before each chunk", caught_by=added)
def tbptt(cell, xs, h, k):
    total = 0.0
    for loss, last in with_cuts(cell, xs, h, k):
        h = last
        for p in cell.parameters.values():
            p.grad = None
        loss.backward()
        total += loss.item()
    return h.detach(), total


@mutant("runs the text again for the total", caught_by=once)
def tbptt(cell, xs, h, k):
    for loss, last in with_cuts(cell, xs, h, k):
        end = last
        loss.backward()
    total = 0.0
    for x in xs:
        h = cell(x, h)
        total += (h**2).sum().item()
    return end.detach(), total


@hinted(1, reaches=added)
def tbptt(cell, xs, h, k):
    total = 0.0
    for chunk in xs.split(k):
        h = h.detach()
        loss = 0.0
        for x in chunk:
            h = cell(x, h)
            loss = loss + (h**2).sum()
        loss.backward(retain_graph=True)
        total = total + loss
    return h, total


@accepted("counts the steps, and cuts before every k-th")
def tbptt(cell, xs, h, k):
    total, loss = 0.0, None
    for t, x in enumerate(xs):
        if t % k == 0:
            h, states = h.detach(), []
        h = cell(x, h)
        states.append(h)
        if t % k == k - 1 or t == len(xs) - 1:
            loss = torch.stack(states).pow(2).sum()
            loss.backward()
            total += float(loss.detach())
    return h.detach(), total


@accepted("slices, and cuts the state in place once it is its own")
def tbptt(cell, xs, h, k):
    total, h = 0.0, h.detach()
    for start in range(0, len(xs), k):
        loss = h.new_zeros(())
        for x in xs[start : start + k]:
            h = cell(x, h)
            loss = loss + h.square().sum()
        loss.backward()
        total += loss.tolist()
        h.detach_()
    return h, total
