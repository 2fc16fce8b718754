"""Judges lessons/17_deployment/02_export.md."""

import copy

import torch
from torch import nn
from torch.export import Dim, ExportedProgram, export

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

background("example is a batch, one tensor.", "A call that may help")

EVAL = "Export the model in eval mode: the graph keeps the mode in which it was exported."
ROWS = "dynamic_shapes=({0: Dim.DYNAMIC},) frees the rows of the first argument."
SINGLE = "A size of 1 is taken for a constant. Show the export two rows: torch.cat([row, row])."
FIXED = "Free the first dimension alone."
CLOSED = (
    "The model divides by len(x), which is a number. Dim.AUTO closes the size without a word; "
    "Dim.DYNAMIC and a named Dim raise an error. Let it through."
)
BOUND = "Give the Dim no max: the number of rows has no upper bound."
MODES = "Export copy.deepcopy(model).eval(), and leave the model itself alone."


class Tagger(nn.Module):
    """Takes token numbers (rows, length)."""

    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words, width)
        self.norm = nn.BatchNorm1d(width)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(self.norm(self.table(x).mean(1)))


class Elementwise(nn.Module):
    def forward(self, x):
        return x.tanh() + 1


class Share(nn.Module):
    """Makes the number of rows a constant."""

    def __init__(self):
        super().__init__()
        self.drop = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5))

    def forward(self, x):
        return self.drop(x) / len(x)


def network(rng, device):
    d, h = rng.randint(3, 7), rng.randint(3, 7)
    layers = [nn.Linear(d, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(0.5), nn.Linear(h, 2)]
    model = nn.Sequential(*layers).to(device)
    for _ in range(3):
        model(torch.randn(16, d, device=device) * 2 + 1)
    return model, lambda n: torch.randn(n, d, device=device)


def exported(answer, model, example, hint=SINGLE):
    with advising(Exception, saying="specialized", hint=hint):
        program = answer.export_model(model, example)
    good = isinstance(program, ExportedProgram)
    expect_true(
        good, f"export_model returns a {type(program).__name__}", hint="Return export(...)."
    )
    return program.module()


def compare(graph, model, make, counts, hint):
    right = copy.deepcopy(model).eval()
    for n in counts:
        x = make(n)
        try:
            out = graph(x)
        except AssertionError as error:
            fail(f"the graph refuses {n} rows: {str(error)[:80]}", hint=hint)
        with torch.no_grad():
            expect_close(out, right(x), name=f"the graph's answer to {n} rows", hint=EVAL)


@check(
    "the graph answers as the model does in eval mode",
    holds="the ExportedProgram of the model as it behaves in eval mode",
)
def mode(answer, rng, device):
    model, make = network(rng, device)
    graph = exported(answer, model, make(2))
    compare(graph, model, make, (2,), ROWS)
    x = make(2)
    expect_true(torch.equal(graph(x), graph(x)), "two calls with one input differ", hint=EVAL)


@check(
    "any number of rows",
    holds=["The number of rows is free, without an upper bound", "for any number of rows"],
    side="rows other than the example's",
)
def rows(answer, rng, device):
    model, make = network(rng, device)
    graph = exported(answer, model, make(rng.randint(2, 5)))
    compare(graph, model, make, (1, 3, 7, 40), ROWS)
    compare(graph, model, make, (rng.randint(2**18, 2**18 + 99),), BOUND)


@check(
    "an example of one row",
    holds=["The example may hold one row.", "a tensor (rows, ...), rows >= 1"],
    both_sides=True,
)
def single(answer, rng, device):
    model, make = network(rng, device)
    graph = exported(answer, model, make(1))
    compare(graph, model, make, (1, 2, 9), SINGLE)


@check("other sizes are fixed", holds="every other size stays that of the example", both_sides=True)
def fixed(answer, rng, device):
    for count in (1, 3):
        a, b = rng.randint(2, 5), rng.randint(2, 5)
        example = torch.randn(count, a, b, device=device)
        graph = exported(answer, Elementwise(), example)
        compare(
            graph,
            Elementwise(),
            lambda n, a=a, b=b: torch.randn(n, a, b, device=device),
            (1, 6),
            ROWS,
        )
        for shape in ((count, a + 1, b), (count, a, b + 1)):
            with expect_raises(
                AssertionError, f"the graph for (rows, {a}, {b}) takes {shape}", hint=FIXED
            ):
                graph(torch.randn(shape, device=device))


@check("token numbers and buffers", holds="a tensor (rows, ...), rows >= 1", side="whole numbers")
def tokens(answer, rng, device):
    words, length = rng.randint(5, 20), rng.randint(2, 6)
    model = Tagger(words, 3).to(device)
    for _ in range(3):
        model(torch.randint(words, (8, length), device=device))

    def make(n):
        return torch.randint(words, (n, length), device=device)

    compare(exported(answer, model, make(1)), model, make, (1, 4), SINGLE)


@check(
    "the model is left alone",
    holds="The model keeps the mode of each of its modules, in that case too.",
    side="an export that succeeds",
)
def untouched(answer, rng, device):
    model, make = network(rng, device)
    for frozen in (True, False):
        model.train(frozen)
        model[1].eval()
        modes = [m.training for m in model.modules()]
        before = copy.deepcopy(model.state_dict())
        exported(answer, model, make(2))
        now = [m.training for m in model.modules()]
        expect_equal(now, modes, name="the modes of all modules after the export", hint=MODES)
        for name, t in model.state_dict().items():
            expect_close(t, before[name], name=f"{name} after the export", hint=MODES)


@check(
    "a model that may close the size",
    holds=[
        "If export cannot keep the number of rows free, its error reaches the caller.",
        "The model keeps the mode of each of its modules, in that case too.",
    ],
    side="an export that fails",
)
def closed(answer, rng, device):
    model = Share().to(device)
    model.drop[rng.randrange(2)].eval()
    modes = [m.training for m in model.modules()]
    example = torch.randn(rng.randint(1, 4), rng.randint(2, 5), device=device)
    try:
        program = answer.export_model(model, example)
    except Exception:
        program = None
    if program is not None:  # strict=True keeps len(x) open

        def make(n):
            return torch.randn(n, example.shape[1], device=device)

        compare(program.module(), model, make, (1, 3, 8), CLOSED)
    now = [m.training for m in model.modules()]
    expect_equal(now, modes, name="the modes after an export that failed", hint=MODES)


FREE = ({0: Dim.DYNAMIC},)


@mutant("exports for the example's rows", caught_by=rows)
def export_model(model, example):
    return export(copy.deepcopy(model).eval(), (example,))


@mutant("exports in the mode it finds", caught_by=mode)
def export_model(model, example):
    two = torch.cat([example, example])
    return export(model, (two,), dynamic_shapes=FREE)


@mutant("leaves the model in eval mode", caught_by=untouched)
def export_model(model, example):
    two = torch.cat([example, example])
    return export(model.eval(), (two,), dynamic_shapes=FREE)


@mutant("puts the whole model back into one mode", caught_by=untouched)
def export_model(model, example):
    training = model.training
    program = export(model.eval(), (torch.cat([example, example]),), dynamic_shapes=FREE)
    model.train(training)
    return program


@mutant("shows a single row to the export", caught_by=single)
def export_model(model, example):
    return export(copy.deepcopy(model).eval(), (example,), dynamic_shapes=FREE)


@mutant("lets the export decide about a single row", caught_by=single)
def export_model(model, example):
    return export(copy.deepcopy(model).eval(), (example,), dynamic_shapes=({0: Dim.AUTO},))


@mutant("frees every size", caught_by=fixed)
def export_model(model, example):
    two = torch.cat([example, example])
    shapes = (dict.fromkeys(range(two.dim()), Dim.AUTO),)
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=shapes)


@mutant("returns a module", caught_by=mode)
def export_model(model, example):
    two = torch.cat([example, example])
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=FREE).module()


@mutant("makes the rows even", caught_by=single)
def export_model(model, example):
    half = Dim("half", min=1)
    two = torch.cat([example, example])
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=({0: 2 * half},))


@mutant("shows random numbers of the example's shape", caught_by=tokens)
def export_model(model, example):
    two = torch.randn(2, *example.shape[1:], device=example.device)
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=FREE)


@mutant("bounds the rows from above", caught_by=rows)
def export_model(model, example):
    two = torch.cat([example, example])
    shapes = ({0: Dim("rows", max=1024)},)
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=shapes)


@mutant("lets the export decide whether the rows are free", caught_by=closed)
def export_model(model, example):
    two = torch.cat([example, example])
    return export(copy.deepcopy(model).eval(), (two,), dynamic_shapes=({0: Dim.AUTO},))


@mutant("falls back to the example's rows", caught_by=closed)
def export_model(model, example):
    frozen, two = copy.deepcopy(model).eval(), torch.cat([example, example])
    try:
        return export(frozen, (two,), dynamic_shapes=FREE)
    except Exception:
        return export(frozen, (example,))


@mutant("forgets the modes when the export fails", caught_by=closed)
def export_model(model, example):
    modes = {m: m.training for m in model.modules()}
    two = torch.cat([example, example])
    program = export(model.eval(), (two,), dynamic_shapes=FREE)
    for module, training in modes.items():
        module.training = training
    return program


@hinted(1, reaches=mode)
def export_model(model, example):
    return export(copy.deepcopy(model).eval(), (example,))


@accepted("names the dimension and turns the modes back by hand")
def export_model(model, example):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    try:
        x = example.expand(2, *example.shape[1:]).clone() if len(example) == 1 else example
        return export(model, (x,), dynamic_shapes=[{0: Dim("rows")}])
    finally:
        for module, training in modes.items():
            module.training = training


@accepted("shows zeros of the right type")
def export_model(model, example):
    x = example.new_zeros(3, *example.shape[1:])
    with torch.no_grad():
        return export(copy.deepcopy(model).eval(), (x,), dynamic_shapes=({0: Dim.DYNAMIC},))


@accepted("says the least number of rows that the export assumes anyway")
def export_model(model, example):
    two = torch.cat([example, example])
    return export(
        copy.deepcopy(model).eval(), (two,), dynamic_shapes=({0: Dim("rows", min=2)},), strict=True
    )
