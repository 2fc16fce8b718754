"""Judges lessons/07_modules/09_freezing.md."""

import copy

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("Fine-tuning: a backbone that somebody", "One thing must get through.")

MODE = "train() reaches every child. Override it, let nn.Module do its work, and put the backbone "
MODE += "back into eval mode. A fresh module is in training mode too."
OPTIMIZER = "An optimizer skips a parameter only if its .grad is None. Gradients that the backbone "
OPTIMIZER += "brought along must go, and no new ones may come."


def backbone(rng, device, dtype=torch.float32):
    """(module, inputs, outputs): it has been trained a little, and has gradients."""
    n, m = rng.randrange(2, 7), rng.randrange(2, 7)
    body = nn.Sequential(
        nn.Linear(n, m), nn.Sequential(nn.BatchNorm1d(m), nn.Tanh()), nn.Dropout(0.5)
    ).to(device, dtype)
    for _ in range(2):
        body(torch.randn(9, n, device=device, dtype=dtype)).square().sum().backward()
    return body, n, m


def built(answer, rng, device, dtype=torch.float32):
    """(model, backbone, head, inputs): a FineTune with a head that has modes as well."""
    body, n, m = backbone(rng, device, dtype)
    head = nn.Sequential(nn.BatchNorm1d(m), nn.Dropout(0.5), nn.Linear(m, 2)).to(device, dtype)
    return answer.FineTune(body, head), body, head, n


def snapshot(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def expect_same_state(module, before, when, hint):
    for name, value in module.state_dict().items():
        expect_equal(value, before[name], name=f"{when}, the backbone's {name}", hint=hint)


@check("the output is head(backbone(x))", holds="forward(x): head(backbone(x))")
def output(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        body, n, m = backbone(rng, device, dtype)
        head = nn.Linear(m, 3).to(device, dtype)
        model = answer.FineTune(body, head)
        x = torch.randn(rng.randrange(1, 6), n, device=device, dtype=dtype)
        wanted = head(copy.deepcopy(body).eval()(x))
        hint = "The backbone in eval mode, then the head."
        expect_close(model(x), wanted, hint=hint)
        model.eval()
        expect_close(model(x), wanted, name="the result in eval mode", hint=hint)


@check(
    "the two modules are held, and no copies",
    holds="Write the module that holds both.",
    both_sides=True,
)
def held(answer, rng, device):
    model, body, head, _ = built(answer, rng, device)
    hint = "Assign the modules that came in to self.backbone and self.head."
    expect_true(
        getattr(model, "backbone", None) is body, "model.backbone is another one", hint=hint
    )
    expect_true(getattr(model, "head", None) is head, "model.head is another one", hint=hint)
    names = {name.split(".")[0] for name in model.state_dict()}
    expect_equal(names, {"backbone", "head"}, name="the set of prefixes in state_dict()", hint=hint)


@check(
    "only the head's parameters train",
    holds=["its parameters have requires_grad False and no .grad", "The head trains"],
    both_sides=True,
)
def trainable(answer, rng, device):
    model, _, head, n = built(answer, rng, device)
    model.train()
    for name, p in model.named_parameters():
        wanted = name.startswith("head.")
        expect_true(
            p.requires_grad == wanted,
            f"{name}.requires_grad is {p.requires_grad}",
            hint="requires_grad_(False) with the underscore, for the backbone alone.",
        )
    model(torch.randn(8, n, device=device)).square().sum().backward()
    for name, p in head.named_parameters():
        expect_true(
            p.grad is not None,
            f"the head's {name} got no gradient",
            hint="The head must be outside of any no_grad.",
        )


@check(
    "no old gradient is left in the backbone",
    holds="its parameters have requires_grad False and no .grad",
    both_sides=True,
)
def old_gradients(answer, rng, device):
    _, body, _, _ = built(answer, rng, device)
    stale = sum(p.grad is not None for p in body.parameters())
    expect_equal(stale, 0, name="the number of backbone parameters with a .grad", hint=OPTIMIZER)


@check(
    "an optimizer that holds everything leaves the backbone alone",
    holds=[
        "They give the optimizer *all* parameters, with weight decay",
        "Its values stay the same to the last bit.",
    ],
    both_sides=True,
)
def careless_optimizer(answer, rng, device):
    model, body, head, n = built(answer, rng, device)
    before, head_before = snapshot(body), snapshot(head)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    for _ in range(3):
        opt.zero_grad(set_to_none=False)
        model.train()
        model(torch.randn(8, n, device=device)).square().sum().backward()
        opt.step()
    values = dict(body.named_parameters())
    for name, p in values.items():
        expect_equal(
            p, before[name], name=f"after three steps, the backbone's {name}", hint=OPTIMIZER
        )
    expect_true(
        not torch.equal(head[2].weight, head_before["2.weight"]),
        "after three steps the head has not moved",
        hint="The head is to learn.",
    )


@check(
    "statistics stay, whatever mode is set",
    holds=[
        "It keeps the backbone as it is, even in careless hands.",
        "the backbone is always in eval mode, whichever mode the whole is set to",
    ],
    both_sides=True,
)
def statistics(answer, rng, device):
    model, body, _, n = built(answer, rng, device)
    before = snapshot(body)
    x = torch.randn(8, n, device=device) + 3
    model(x)
    expect_same_state(body, before, "after a call of the fresh model", MODE)
    for when, switch in (
        ("after train()", model.train),
        ("after eval() and train(True)", lambda: (model.eval(), model.train(True))),
        ("in a larger model that trains", nn.Sequential(model).train),
    ):
        switch()
        model(x)
        expect_same_state(body, before, when, MODE)


@check("the backbone drops nothing, the head does")
def dropout(answer, rng, device):
    model, _, head, n = built(answer, rng, device)
    seen = []
    head.register_forward_pre_hook(lambda m, args: seen.append(args[0]))
    x = torch.randn(20, n, device=device)
    model.train()
    first, second = model(x), model(x)
    hint = "Call the modules, `self.head(...)`: that runs their hooks, and then forward."
    expect_true(len(seen) == 2, "the head was not called as head(features)", hint=hint)
    expect_equal(seen[1], seen[0], name="what the head gets the second time", hint=MODE)
    expect_true(
        not torch.equal(first, second),
        "in training mode the head's dropout is off",
        hint="Only the backbone stays in eval mode.",
    )


@check(
    "the head and the whole follow train() and eval()",
    holds=["follows train() and eval() as usual", "returns the module itself"],
)
def modes(answer, rng, device):
    model, body, head, _ = built(answer, rng, device)
    hint = "Pass the mode on: `super().train(mode)`. Then the backbone alone goes back to eval."
    for mode, switch in (
        (True, lambda: model.train()),
        (False, lambda: model.eval()),
        (True, lambda: model.train(True)),
        (False, lambda: model.train(False)),
        (True, lambda: nn.ModuleList([model]).train()),
    ):
        returned = switch()
        expect_true(
            returned is model or isinstance(returned, nn.ModuleList),
            "train() or eval() does not return the model",
            hint="nn.Module's train ends with `return self`, so that calls can be chained.",
        )
        flags = [model.training, *(m.training for m in head.modules())]
        expect_equal(flags, [mode] * 5, name="the flags of the model and its head", hint=hint)
        expect_true(
            not any(m.training for m in body.modules()),
            f"with mode {mode}, a part of the backbone is in training mode",
            hint=MODE,
        )


@check(
    "a gradient passes through to x",
    holds=[
        "What comes in as x may be the output of something that learns",
        "If x requires grad, it gets a gradient.",
    ],
    both_sides=True,
)
def through(answer, rng, device):
    model, body, head, n = built(answer, rng, device)
    model.eval()
    prompt = torch.randn(5, n, device=device, requires_grad=True)
    same = prompt.detach().clone().requires_grad_()
    (wanted,) = torch.autograd.grad(
        copy.deepcopy(head).eval()(copy.deepcopy(body).eval()(same)).square().sum(), same
    )
    out = model(prompt * 1.0)  # not a leaf: the output of something that learns
    out.square().sum().backward()
    hint = "What learns before the backbone needs the way back. Freezing blocks nothing; no_grad "
    hint += "and detach do."
    expect_true(prompt.grad is not None, "x requires grad and gets none", hint=hint)
    expect_close(prompt.grad, wanted, name="x.grad", hint=hint)
    leaf = prompt.detach().clone().requires_grad_()
    model(leaf).square().sum().backward()
    expect_true(leaf.grad is not None, "x is a leaf that requires grad and gets none", hint=hint)
    expect_close(leaf.grad, wanted, name="the .grad of a leaf x", hint=hint)
    left = sum(p.grad is not None for p in body.parameters())
    expect_equal(left, 0, name="the number of backbone parameters with a .grad", hint=OPTIMIZER)


class Right(nn.Module):
    """What the variants below vary."""

    def __init__(self, backbone, head):
        super().__init__()
        backbone.zero_grad()
        self.backbone = backbone.requires_grad_(False).eval()
        self.head = head

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, x):
        return self.head(self.backbone(x))


@mutant("no train of its own", caught_by=statistics)
class FineTune(Right):
    def train(self, mode=True):
        return nn.Module.train(self, mode)


@mutant("eval comes with the first train", caught_by=statistics)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(backbone, head)
        backbone.train()


@mutant("nothing is frozen", caught_by=trainable)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(backbone, head)
        backbone.requires_grad_(True)


@mutant("sets an attribute of the module", caught_by=trainable)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(backbone, head)
        backbone.requires_grad_(True)
        backbone.requires_grad = False


@mutant("freezes the head as well", caught_by=trainable)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(backbone, head)
        self.requires_grad_(False)


@mutant("computes the head under no_grad", caught_by=trainable)
class FineTune(Right):
    def forward(self, x):
        with torch.no_grad():
            return self.head(self.backbone(x)).requires_grad_()


@mutant("computes the backbone under no_grad", caught_by=through)
class FineTune(Right):
    def forward(self, x):
        with torch.no_grad():
            features = self.backbone(x)
        return self.head(features)


@mutant("detaches the features", caught_by=through)
class FineTune(Right):
    def forward(self, x):
        return self.head(self.backbone(x).detach())


@mutant("leaves old gradients where they lie", caught_by=old_gradients)
class FineTune(Right):
    def __init__(self, backbone, head):
        nn.Module.__init__(self)
        self.backbone = backbone.requires_grad_(False).eval()
        self.head = head


@mutant("makes the old gradients zero", caught_by=careless_optimizer)
class FineTune(Right):
    def __init__(self, backbone, head):
        nn.Module.__init__(self)
        backbone.zero_grad(set_to_none=False)
        self.backbone = backbone.requires_grad_(False).eval()
        self.head = head


@mutant("freezes the norm layers only", caught_by=dropout)
class FineTune(Right):
    def train(self, mode=True):
        nn.Module.train(self, mode)
        for m in self.backbone.modules():
            if isinstance(m, nn.BatchNorm1d):
                m.eval()
        return self


@mutant("keeps the head in eval mode", caught_by=modes)
class FineTune(Right):
    def train(self, mode=True):
        return nn.Module.train(self, False)


@mutant("ignores the mode", caught_by=modes)
class FineTune(Right):
    def train(self, mode=True):
        nn.Module.train(self, True)
        self.backbone.eval()
        return self


@mutant("returns nothing from train", caught_by=modes)
class FineTune(Right):
    def train(self, mode=True):
        nn.Module.train(self, mode)
        self.backbone.eval()


@mutant("copies the backbone", caught_by=held)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(copy.deepcopy(backbone), head)


@mutant("hides the backbone from the module", caught_by=held)
class FineTune(Right):
    def __init__(self, backbone, head):
        super().__init__(backbone, head)
        del self.backbone
        self.__dict__["backbone"] = backbone


@mutant("gives the head the mean of the features", caught_by=output)
class FineTune(Right):
    def forward(self, x):
        features = self.backbone(x)
        return self.head(torch.zeros_like(features) + features.mean())


@mutant("records where x is a leaf alone", caught_by=through)
class FineTune(Right):
    def forward(self, x):
        with torch.set_grad_enabled(x.requires_grad and x.is_leaf):
            features = self.backbone(x)
        return self.head(features)


@hinted(1, reaches=trainable)
class FineTune(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone = backbone.requires_grad_(False).eval()
        self.head = head

    def forward(self, x):
        return self.head(self.backbone(x))


@accepted("takes train away from the backbone itself")
class FineTune(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.head, self.backbone = head, backbone
        for p in backbone.parameters():
            p.requires_grad, p.grad = False, None
        backbone.eval()
        backbone.train = lambda mode=True: backbone

    def forward(self, x):
        return self.head(self.backbone(x))


@accepted("passes the mode on to the head alone")
class FineTune(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.add_module("backbone", backbone)
        self.add_module("head", head)
        for m in self.backbone.modules():
            m.training = False
        for p in backbone.parameters():
            p.requires_grad_(False)
        self.backbone.zero_grad(set_to_none=True)

    def train(self, mode=True):
        self.training = mode
        self.head.train(mode)
        return self

    def forward(self, x):
        features = self.backbone(x)
        return self.head(features)
