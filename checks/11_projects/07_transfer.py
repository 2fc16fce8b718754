"""Judges lessons/11_projects/07_transfer.md."""

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

background("Write `layer_groups(stages, lr, factor)`", "Early stages hold", "So the rate falls")


def some_stages(rng, device):
    """Between three and six stages, of which one has no parameters."""
    d = rng.randint(2, 4)
    stages = [
        nn.Sequential(nn.Linear(d, d), rng.choice((nn.BatchNorm1d, nn.LayerNorm))(d))
        for _ in range(rng.randint(3, 5))
    ]
    stages.insert(rng.randint(1, len(stages) - 1), rng.choice((nn.ReLU(), nn.Flatten())))
    return [stage.to(device) for stage in stages]


def names(stages):
    """{id of a parameter: how a message calls it}; a shared one has the name of the later stage."""
    return {
        id(p): f"stage {k}, {name}"
        for k, stage in enumerate(stages)
        for name, p in stage.named_parameters()
    }


def rates(rng):
    return rng.uniform(0.01, 0.1), rng.uniform(0.2, 0.8)


def groups_of(answer, stages, lr, factor):
    groups = answer.layer_groups(list(stages), lr, factor)
    if not isinstance(groups, list) or not all(isinstance(g, dict) for g in groups):
        fail("layer_groups returns no list of dicts", hint='{"params": ..., "lr": ...}')
    groups = [{**g, "params": list(g.get("params", ()))} for g in groups]
    for group in groups:
        hint = "lr counts for this group, and no other value."
        expect_true("lr" in group, "a group has no lr of its own", hint=hint)
    return groups


def rate_of(groups):
    return {id(p): g["lr"] for g in groups for p in g["params"]}


def expect_rates(answer, stages, lr, factor, hint):
    called = names(stages)
    got = rate_of(groups_of(answer, stages, lr, factor))
    for depth, stage in enumerate(reversed(stages)):
        for p in stage.parameters():
            if id(p) in got and called[id(p)].startswith(f"stage {len(stages) - 1 - depth},"):
                wanted = lr * factor**depth
                message = f"{called[id(p)]} has rate {got[id(p)]:.6f}, expected {wanted:.6f}"
                expect_true(abs(got[id(p)] - wanted) < 1e-9, message, hint=hint)
    return got


@check(
    "the rate falls from the last stage to the first",
    holds=[
        "The last stage gets the rate `lr`, and each one before it gets `factor` times the rate of "
        "the next.",
        "Each group has its `lr`.",
    ],
    both_sides=True,
)
def falling(answer, rng, device):
    lr, factor = rates(rng)
    stages = [s for s in some_stages(rng, device) if list(s.parameters())]
    expect_rates(answer, stages, lr, factor, "lr * factor to the power of the stages behind it.")
    expect_rates(answer, stages[:1], lr, factor, "One stage alone is the last one.")


@check(
    "a stage without parameters counts",
    holds="A stage without parameters counts as a stage too.",
)
def counted(answer, rng, device):
    lr, factor = rates(rng)
    stages = some_stages(rng, device)
    hint = "Multiply the rate for every stage, whatever it holds."
    expect_rates(answer, stages, lr, factor, hint)
    stages = some_stages(rng, device)
    stages[-2].requires_grad_(False)
    expect_rates(answer, stages, lr, factor, hint)


@check("what is trained is there", holds="Parameters that are to be trained are all there")
def complete(answer, rng, device):
    stages = some_stages(rng, device)
    stages[0][0].bias.requires_grad_(False)
    got = rate_of(groups_of(answer, stages, *rates(rng)))
    for stage in stages:
        for p in stage.parameters():
            if p.requires_grad:
                message = f"{names(stages)[id(p)]} is missing"
                expect_true(id(p) in got, message, hint="Biases and norms are trained as well.")


@check("frozen parameters are in no group", holds="Frozen parameters stand in no group.")
def no_frozen(answer, rng, device):
    stages = some_stages(rng, device)
    stages[0].requires_grad_(False)
    stages[-1][0].bias.requires_grad_(False)
    for group in groups_of(answer, stages, *rates(rng)):
        for p in group["params"]:
            message = f"{names(stages)[id(p)]} is frozen, and stands in a group"
            expect_true(p.requires_grad, message, hint="Leave out what requires no grad.")


@check("no group is empty", holds="No group is empty.")
def no_empty(answer, rng, device):
    stages = some_stages(rng, device)
    stages[0].requires_grad_(False)
    for group in groups_of(answer, stages, *rates(rng)):
        hint = "ReLU has no parameters, a frozen stage none to train."
        expect_true(group["params"], "a group has no parameters", hint=hint)


@check("no parameter twice", holds="each of them once.", both_sides=True)
def once(answer, rng, device):
    stages = some_stages(rng, device)
    stages[0][0].weight = stages[-1][0].weight
    stages[0].append(stages[0][0])
    lr, factor = rates(rng)
    groups = groups_of(answer, stages, lr, factor)
    ids = [id(p) for g in groups for p in g["params"]]
    twice = sorted({names(stages)[i] for i in ids if ids.count(i) > 1})
    expect_equal(twice, [], name="what stands in two groups", hint="Remember what is taken.")
    try:
        torch.optim.SGD(answer.layer_groups(list(stages), lr, factor), lr=123.0)
    except (TypeError, ValueError) as error:
        fail(f"the optimizer refuses the groups: {error}", hint="A list of dicts.")


@check(
    "what is shared goes with the later stage",
    holds="Where two stages share one, it goes with the later stage.",
)
def shared(answer, rng, device):
    lr, factor = rates(rng)
    stages = some_stages(rng, device)
    early, late = stages[0][0], stages[-1][0]
    early.weight = late.weight
    got = expect_rates(answer, stages, lr, factor, "Give the later stage the first choice.")
    expect_true(id(late.weight) in got, "the shared parameter is missing", hint="Once, and once.")


@check("the stages stay", holds="`stages` stays as it is.")
def untouched(answer, rng, device):
    stages = some_stages(rng, device)
    stages[1].requires_grad_(False)
    kept, needed = list(stages), [p.requires_grad for s in stages for p in s.parameters()]
    answer.layer_groups(stages, *rates(rng))
    same = len(stages) == len(kept) and all(a is b for a, b in zip(stages, kept, strict=True))
    hint = "reversed(stages) goes backwards and leaves the list; stages.reverse() turns it around."
    expect_true(same, "the list of stages was changed", hint=hint)
    now = [p.requires_grad for s in stages for p in s.parameters()]
    hint = "Leave requires_grad as it is."
    expect_equal(now, needed, name="what requires a gradient afterwards", hint=hint)


def right(stages, lr, factor, *, skip=bool, keep=lambda p: p.requires_grad):
    groups, taken = [], set()
    for stage in reversed(stages):
        mine = [p for p in stage.parameters() if keep(p) and p not in taken]
        taken.update(mine)
        if skip(mine):
            groups.append({"params": mine, "lr": lr})
        lr *= factor
    return groups


@mutant("the first stage has lr", caught_by=falling)
def layer_groups(stages, lr, factor):
    rates = [g["lr"] for g in right(stages, lr, factor)]
    groups = right(stages, lr, factor)
    return [dict(g, lr=r) for g, r in zip(groups, reversed(rates), strict=True)]


@mutant("the rate falls linearly", caught_by=falling)
def layer_groups(stages, lr, factor):
    groups = right(stages, lr, factor)
    return [dict(g, lr=lr * (1 - k * (1 - factor))) for k, g in enumerate(groups)]


@mutant("begins with factor times lr", caught_by=falling)
def layer_groups(stages, lr, factor):
    return right(stages, lr * factor, factor)


@mutant("leaves lr to the optimizer", caught_by=falling)
def layer_groups(stages, lr, factor):
    return [{"params": g["params"]} for g in right(stages, lr, factor)]


@mutant("counts stages with parameters alone", caught_by=counted)
def layer_groups(stages, lr, factor):
    return right([s for s in stages if any(p.requires_grad for p in s.parameters())], lr, factor)


@mutant("takes matrices alone", caught_by=complete)
def layer_groups(stages, lr, factor):
    return right(stages, lr, factor, keep=lambda p: p.requires_grad and p.dim() > 1)


@mutant("leaves a stage out that is frozen in part", caught_by=complete)
def layer_groups(stages, lr, factor):
    frozen = {id(p) for s in stages for p in s.parameters()
              if not all(q.requires_grad for q in s.parameters())}  # fmt: skip
    return right(stages, lr, factor, keep=lambda p: id(p) not in frozen)


@mutant("takes frozen ones too", caught_by=no_frozen)
def layer_groups(stages, lr, factor):
    return right(stages, lr, factor, keep=lambda p: True)


@mutant("empty groups", caught_by=no_empty)
def layer_groups(stages, lr, factor):
    return right(stages, lr, factor, skip=lambda mine: True)


@mutant("shared parameters twice", caught_by=once)
def layer_groups(stages, lr, factor):
    n = len(stages)
    groups = [
        {"params": [p for p in s.parameters() if p.requires_grad], "lr": lr * factor ** (n - 1 - k)}
        for k, s in enumerate(stages)
    ]
    return [g for g in groups if g["params"]]


@mutant("what is shared goes with the earlier stage", caught_by=shared)
def layer_groups(stages, lr, factor):
    groups, taken = [], set()
    for k, stage in enumerate(stages):
        mine = [p for p in stage.parameters() if p.requires_grad and p not in taken]
        taken.update(mine)
        if mine:
            groups.append({"params": mine, "lr": lr * factor ** (len(stages) - 1 - k)})
    return groups


@mutant("turns the list around", caught_by=untouched)
def layer_groups(stages, lr, factor):
    groups = right(stages, lr, factor)
    stages.reverse()
    return groups


@hinted(1, reaches=no_empty)
def layer_groups(stages, lr, factor):
    groups = []
    for stage in reversed(stages):
        mine = [p for p in stage.parameters() if p.requires_grad]
        if mine:
            groups.append({"params": mine, "lr": lr})
        lr = lr * factor
    return groups


@accepted("owners by id, with names")
def layer_groups(stages, lr, factor):
    owner = {id(p): (k, p) for k, stage in enumerate(stages) for p in stage.parameters()}
    groups = []
    for k in range(len(stages)):
        mine = [p for depth, p in owner.values() if depth == k and p.requires_grad]
        if mine:
            rate = lr * factor ** (len(stages) - 1 - k)
            groups.append({"params": mine, "lr": rate, "name": f"stage {k}"})
    return groups


@accepted("a group for each parameter")
def layer_groups(stages, lr, factor):
    groups, seen = [], []
    for stage in stages[::-1]:
        for p in stage.parameters():
            if p.requires_grad and not any(p is q for q in seen):
                seen.append(p)
                groups.append({"params": [p], "lr": lr})
        lr = lr * factor
    return groups


@accepted("hands out iterators")
def layer_groups(stages, lr, factor):
    return [dict(g, params=iter(g["params"])) for g in right(stages, lr, factor)]
