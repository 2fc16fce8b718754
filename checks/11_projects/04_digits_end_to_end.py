"""Judges lessons/11_projects/04_digits_end_to_end.md."""

import heapq

import torch
from torch import nn
from torch.nn import functional as F

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

background("They are worth reading first")

PLACE = "Count how many samples came before this batch, and add that."
SURE = "The softmax of the class that the model names, with dropout off."


class Planted(nn.Module):
    """Its scores are half its inputs, so that a check knows them. Dropout shows the mode."""

    def __init__(self, classes):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(torch.full((classes,), 0.5))
        self.recorded, self.modes = [], []

    def forward(self, x):
        z = self.drop(x) * self.scale
        self.recorded.append(z.requires_grad)
        self.modes.append(self.drop.training)
        return z


def case(rng, device):
    """(batches, all mistakes, surest first, classes)."""
    classes, n = rng.randint(3, 6), rng.randint(14, 25)
    z = 3 * torch.randn(n, classes)
    guess = z.argmax(1)
    wrong = torch.tensor(rng.sample(range(n), rng.randint(6, 9)))
    y = guess.clone()
    y[wrong] = (guess[wrong] + torch.randint(1, classes, (len(wrong),))) % classes
    # One mistake has large scores and doubts, one has small scores and is sure.
    z[wrong[0]], z[wrong[1]] = 20.0, -8.0
    z[wrong[0], guess[wrong[0]]], z[wrong[1], guess[wrong[1]]] = 20.1, 2.0
    p = z.double().softmax(1)
    found = [
        (i, y[i].item(), guess[i].item(), p[i, guess[i]].item()) for i in sorted(wrong.tolist())
    ]
    size = rng.choice([b for b in (3, 4, 5) if n % b])
    batches = [
        (2 * z[i : i + size].to(device), y[i : i + size].to(device)) for i in range(0, n, size)
    ]
    return batches, sorted(found, key=lambda m: -m[3]), classes


def rows_of(answer, batches, classes, k, device, training=True):
    model = Planted(classes).to(device).train(training)
    got = answer.mistakes(model, batches, k)
    if not isinstance(got, list) or any(len(row) != 4 for row in got):
        fail("mistakes returns no list of four numbers each", hint="Append a tuple for each.")
    return got, model


@check("the model is judged in eval mode", holds="The model is judged in eval mode")
def eval_mode(answer, rng, device):
    batches, _, classes = case(rng, device)
    model = rows_of(answer, batches, classes, 100, device)[1]
    hint = "With dropout on, scores are left out at random. model.eval()."
    expect_true(not any(model.modes), "the model was called in training mode", hint=hint)


@check("the mode comes back", holds="and comes back in the mode in which it came.")
def mode(answer, rng, device):
    batches, _, classes = case(rng, device)
    for training in (True, False):
        model = rows_of(answer, batches, classes, 3, device, training)[1]
        hint = "Remember model.training, and restore it."
        expect_equal(model.training, training, name="model.training afterwards", hint=hint)


@check("no graph is recorded", holds="No graph is recorded.")
def no_graph(answer, rng, device):
    batches, _, classes = case(rng, device)
    model = rows_of(answer, batches, classes, 3, device)[1]
    expect_true(not any(model.recorded), "the scores require grad", hint="torch.no_grad().")


@check(
    "the parameters come back",
    holds="Afterwards the parameters require a gradient as before",
)
def parameters_back(answer, rng, device):
    batches, _, classes = case(rng, device)
    model = rows_of(answer, batches, classes, 3, device)[1]
    hint = "Leave requires_grad as it is, and work under torch.no_grad()."
    expect_true(model.scale.requires_grad, "a parameter was frozen", hint=hint)


@check("recording comes back", holds="and recording is on or off as it was.", both_sides=True)
def recording_back(answer, rng, device):
    batches, _, classes = case(rng, device)
    model = Planted(classes).to(device)
    for on in (True, False):
        with torch.set_grad_enabled(on):
            answer.mistakes(model, batches, 3)
            got = torch.is_grad_enabled()
        hint = "torch.no_grad() as a context or a decorator restores what was."
        expect_equal(got, on, name="torch.is_grad_enabled() afterwards", hint=hint)


@check(
    "each mistake stands at its place in the data set",
    holds="The place is the number of the sample, counted over all batches from 0.",
)
def places(answer, rng, device):
    batches, wanted, classes = case(rng, device)
    got = rows_of(answer, batches, classes, 100, device)[0]
    hint = "A mistake is a guess, the largest score of a sample, that is not its label. Each once."
    expect_equal(len(got), len(wanted), name="the number of mistakes", hint=hint)
    places = sorted(int(m[0]) for m in got)
    expect_equal(places, sorted(m[0] for m in wanted), name="all places", hint=PLACE)


@check(
    "the confidence is that of the class named",
    holds=[
        "Confidence is the probability of the class that the model names.",
        "The result is a list of `(place, true, guess, confidence)`, surest first.",
    ],
)
def confidence(answer, rng, device):
    batches, wanted, classes = case(rng, device)
    got = rows_of(answer, batches, classes, 100, device)[0]
    known = {m[0]: m for m in wanted}
    for place, true, guess, sure in got:
        name = f"(true, guess) of sample {int(place)}"
        hint = "First the label, then the class that the model names."
        expect_equal((int(true), int(guess)), known[int(place)][1:3], name=name, hint=hint)
        right = known[int(place)][3]
        message = f"the confidence of sample {int(place)} is {float(sure):.3f}, not {right:.3f}"
        expect_true(abs(float(sure) - right) < 1e-4, message, hint=SURE)
    sures = [float(m[3]) for m in got]
    expect_equal(sures, sorted(sures, reverse=True), name="the confidences", hint="Surest first.")


@check(
    "the k surest of the whole data set",
    holds=[
        "the `k` mistakes of which the model is surest, over the whole data set.",
        "If there are fewer than `k` mistakes, the list has them all.",
    ],
)
def surest(answer, rng, device):
    batches, wanted, classes = case(rng, device)
    for k in (3, 5, 100):
        got = [int(m[0]) for m in rows_of(answer, batches, classes, k, device)[0]]
        hint = "Sort what all batches had, then cut."
        expect_equal(got, [m[0] for m in wanted[:k]], name=f"the places, k = {k}", hint=hint)


@check(
    "three ints and a float",
    holds="The first three are Python ints, and the confidence is a float.",
)
def python_numbers(answer, rng, device):
    batches, _, classes = case(rng, device)
    for row in rows_of(answer, batches, classes, 3, device)[0]:
        kinds = [type(v).__name__ for v in row]
        expect_equal(kinds, ["int"] * 3 + ["float"], name="the types", hint=".item(), .tolist()")


def base(model, loader, k, offset=True, of_true=False, softmax=True, order=-1, evaluate=True,
         only_wrong=True, restore=True, per_batch=None, grad=False):  # fmt: skip
    """A right answer with one thing wrong."""
    was, found, start = model.training, [], 0
    if evaluate:
        model.eval()
    with torch.set_grad_enabled(grad):
        for x, y in loader:
            z = model(x)
            p = z.softmax(1) if softmax else z
            g = p.argmax(1)
            part = [
                (
                    i + start * offset,
                    y[i].item(),
                    g[i].item(),
                    p[i, (y if of_true else g)[i]].item(),
                )
                for i in range(len(y))
                if g[i] != y[i] or not only_wrong
            ]
            found += sorted(part, key=lambda m: -m[3])[:per_batch]
            start += len(y)
    if restore:
        model.train(was)
    return sorted(found, key=lambda m: order * m[3])[:k]


@mutant("counts from the start of the batch", caught_by=places)
def mistakes(model, loader, k):
    return base(model, loader, k, offset=False)


@mutant("takes the probability of the true class", caught_by=confidence)
def mistakes(model, loader, k):
    return base(model, loader, k, of_true=True)


@mutant("takes logits for probabilities", caught_by=confidence)
def mistakes(model, loader, k):
    return base(model, loader, k, softmax=False)


@mutant("puts the least sure first", caught_by=surest)
def mistakes(model, loader, k):
    return base(model, loader, k, order=1)


@mutant("leaves dropout on", caught_by=eval_mode)
def mistakes(model, loader, k):
    return base(model, loader, k, evaluate=False)


@mutant("takes right answers too", caught_by=places)
def mistakes(model, loader, k):
    return base(model, loader, k, only_wrong=False)


@mutant("leaves the model in eval mode", caught_by=mode)
def mistakes(model, loader, k):
    return base(model, loader, k, restore=False)


@mutant("takes one mistake per batch", caught_by=surest)
def mistakes(model, loader, k):
    return base(model, loader, k, per_batch=1)


@mutant("records a graph", caught_by=no_graph)
def mistakes(model, loader, k):
    return base(model, loader, k, grad=True)


@mutant("freezes the parameters", caught_by=parameters_back)
def mistakes(model, loader, k):
    model.requires_grad_(False)
    return base(model, loader, k)


@mutant("turns recording off for good", caught_by=recording_back)
def mistakes(model, loader, k):
    torch.set_grad_enabled(False)
    return base(model, loader, k)


@mutant("turns recording on for good", caught_by=recording_back)
def mistakes(model, loader, k):
    found = base(model, loader, k)
    torch.set_grad_enabled(True)
    return found


@mutant("names the guess before the label", caught_by=confidence)
def mistakes(model, loader, k):
    return [(i, guess, true, sure) for i, true, guess, sure in base(model, loader, k)]


@mutant("returns tensors", caught_by=python_numbers)
def mistakes(model, loader, k):
    return [tuple(torch.tensor(v) for v in row) for row in base(model, loader, k)]


@hinted(1, reaches=no_graph)
def mistakes(model, loader, k):
    return base(model, loader, k, offset=False, softmax=False, order=0)


@accepted("joins all scores first")
def mistakes(model, loader, k):
    was = model.training
    model.train(False)
    with torch.inference_mode():
        z = torch.cat([model(x) for x, _ in loader])
    model.train(was)
    y = torch.cat([y for _, y in loader])
    guess = z.argmax(1)
    p = (z - z.logsumexp(1, keepdim=True)).exp().gather(1, guess[:, None])[:, 0]
    rows = torch.where(guess != y)[0]
    rows = rows[p[rows].argsort(descending=True)][:k]
    return [(int(i), int(y[i]), int(guess[i]), float(p[i])) for i in rows]


@accepted("goes sample by sample, with a heap")
def mistakes(model, loader, k):
    was, n, every = model.training, 0, []
    model.eval()
    with torch.no_grad():
        for x, y in loader:
            for q, t in zip(F.softmax(model(x), dim=-1), y, strict=True):
                g = int(q.argmax())
                if g != t:
                    every.append((n, int(t), g, float(q[g])))
                n += 1
    model.train(was)
    return heapq.nlargest(k, every, key=lambda m: m[3])
