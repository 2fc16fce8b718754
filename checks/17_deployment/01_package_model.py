"""Judges lessons/17_deployment/01_package_model.md."""

import contextlib
import copy
import os
import pickle
import tempfile

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Write both ends of the hand-over.",
    "A model may change its buffers and its input when it answers",
)

COPY = "Answer the probe with a copy of the model in eval mode: copy.deepcopy(model).eval()."
PLAIN = "weights_only=True reads tensors, containers and plain values: save model.state_dict()."
LOADED = "load_state_dict copies the file's weights and buffers into the model that build made."
COUNTED = (
    "The model counts its answers in a buffer, in eval mode, too. Let a copy of the model answer, "
    "and save the state of the model itself."
)
ASKED = (
    "The model counts its answers in a buffer, in eval mode, too. Let a copy of the loaded model "
    "answer the probe, and return the model itself."
)
INPUT = "The model writes into its input. Give the model x.clone(), and save x."
COMPARE = (
    "Run the probe's input through the loaded model, and compare with the probe's answer, by an "
    "absolute tolerance."
)
NAN = "A comparison with NaN is false: ask whether the answer is near, not whether it is far."
CLOSE = "Two right runs differ in the last digits. Compare with an absolute tolerance of 1e-4."


class Scaled(nn.Module):
    """Scales by buffers that only training fills, drops out, and counts its answers."""

    def __init__(self, width, act="tanh", shift=0.0):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("answers", torch.zeros((), dtype=torch.int64))
        self.register_buffer("rows", torch.zeros((), dtype=torch.int64), persistent=False)
        self.act = {"tanh": torch.tanh, "relu": torch.relu}[act]
        self.shift = shift
        self.first = nn.Sequential(nn.Linear(4, width), nn.BatchNorm1d(width), nn.Dropout(0.5))
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        self.answers += 1
        self.rows += len(x)
        return self.last(self.act(self.first(x - self.mean))) + self.shift


def problem(rng, device):
    """A model with a past, in training mode but for one part, its config and a probe input."""
    config = {"width": rng.randint(3, 8), "act": rng.choice(["tanh", "relu"])}
    model = Scaled(**config).to(device)
    for _ in range(3):
        model(torch.randn(32, 4, device=device) * 3 + 1)
    model.mean.add_(torch.randn(4, device=device))
    model.first[1].eval()
    return model, config, torch.randn(rng.randint(1, 5), 4, device=device)


class Shifting(nn.Module):
    """Writes into its input."""

    def __init__(self, width):
        super().__init__()
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        return self.last(x.sub_(1.5))


def values(model):
    every = {**model.state_dict(), **dict(model.named_buffers())}
    return {name: t.detach().cpu().clone() for name, t in every.items()}


def opened(path):
    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        what = str(error).partition("Unsupported ")[2].partition(" was")[0]
        fail(f"torch.load refuses the file: unsupported {what}", hint=PLAIN)


def saved(answer, folder, model, config, x):
    path = os.path.join(folder, "a.pt")
    answer.save_bundle(path, model, config, x)
    expect_true(os.path.isfile(path), "after save_bundle there is no file at path")
    return path


@check(
    "the file holds the four keys",
    holds=[
        "writes a dict with four keys",
        "a pair of x and the model's answer to it in eval mode",
        "State and x are in the file as they were before the answer",
        "The answer does not require grad.",
        "torch.load(path, weights_only=True) opens the file",
    ],
)
def keys(answer, rng, device):
    model, config, x = problem(rng, device)
    before = {name: t.cpu().clone() for name, t in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        bundle = opened(saved(answer, folder, model, config, x))
    expect_true(isinstance(bundle, dict), "the file does not hold a dict", hint=PLAIN)
    expect_equal(sorted(bundle), ["config", "format", "probe", "state"], name="the keys")
    expect_equal(bundle["format"], 1, name="format")
    expect_equal(bundle["config"], config, name="config")
    pair = bundle["probe"]
    good = isinstance(pair, (tuple, list)) and len(pair) == 2
    expect_true(good, "probe is not a pair (input, answer)")
    expect_close(pair[0], x.cpu(), name="the probe's input")
    right = copy.deepcopy(model).eval()(x).detach().cpu()
    expect_close(pair[1], right, name="the probe's answer", hint=COPY)
    good = not pair[1].requires_grad
    expect_true(good, "the probe's answer requires grad", hint="Answer it under torch.no_grad().")
    state = bundle["state"]
    expect_true(isinstance(state, dict), "state is not a state_dict", hint=PLAIN)
    expect_equal(sorted(state), sorted(before), name="the keys of state", hint=PLAIN)
    for name, t in before.items():
        expect_close(state[name], t, name=f"{name} in the file's state", hint=COUNTED)


@check(
    "saving changes nothing in the model",
    holds="each module in its mode, each buffer with its values",
    both_sides=True,
)
def untouched(answer, rng, device):
    for training in (True, False):
        model, config, x = problem(rng, device)
        if not training:
            model.eval()
        modes, before = [m.training for m in model.modules()], values(model)
        with tempfile.TemporaryDirectory() as folder:
            saved(answer, folder, model, config, x)
        now = [m.training for m in model.modules()]
        expect_equal(now, modes, name="the modes of all modules after saving", hint=COPY)
        for name, t in values(model).items():
            expect_close(t, before[name], name=f"{name} after saving", hint=COUNTED)


@check(
    "the weights and buffers come back",
    holds=[
        "returns build(**config) with the weights and buffers of the file",
        "on the CPU",
        "in eval mode",
    ],
)
def back(answer, rng, device):
    model, config, x = problem(rng, device)
    wanted = {name: t.cpu().clone() for name, t in model.state_dict().items()}
    with tempfile.TemporaryDirectory() as folder:
        got = answer.load_bundle(saved(answer, folder, model, config, x), Scaled)
    expect_true(isinstance(got, nn.Module), "load_bundle does not return a model")
    expect_true(not any(m.training for m in got.modules()), "a part is in training mode")
    for name, t in got.state_dict().items():
        expect_equal(t.device.type, "cpu", name=f"the device of {name}")
        hint = ASKED if name == "answers" else LOADED
        expect_close(t, wanted[name], name=f"{name} of the loaded model", hint=hint)


@check(
    "the input stays as it was",
    holds=["x keeps its values.", "State and x are in the file as they were before the answer"],
)
def given(answer, rng, device):
    width = rng.randint(2, 6)
    model = Shifting(width).to(device)
    x = torch.randn(rng.randint(1, 4), width, device=device)
    before = x.clone()
    with tempfile.TemporaryDirectory() as folder:
        bundle = opened(saved(answer, folder, model, {"width": width}, x))
    expect_close(x, before, name="x after saving", hint=INPUT)
    expect_close(bundle["probe"][0], before.cpu(), name="the probe's input", hint=INPUT)


@check(
    "another format is refused",
    holds="raises ValueError if the format is not 1",
    side="another format",
)
def format_number(answer, rng, device):
    model, config, x = problem(rng, device)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(answer, folder, model, config, x)
        bundle = opened(path)
        for number in (0, 2, 9):
            torch.save({**bundle, "format": number}, path)
            with expect_raises(ValueError, f"a bundle of format {number} was loaded"):
                answer.load_bundle(path, Scaled)


@check(
    "a model that answers otherwise is refused",
    holds="if an answer differs from the probe's by more than 1e-3",
    side="too far",
)
def far(answer, rng, device):
    for shift in (2e-3, -2e-3, 5.0):
        model, config, x = problem(rng, device)
        with torch.no_grad():
            model.last.bias.add_(2000.0)
        with tempfile.TemporaryDirectory() as folder:
            path = saved(answer, folder, model, config, x)

            def other(shift=shift, **config):
                return Scaled(**config, shift=shift)

            with_hint = f"a model off by {shift:g} was returned"
            try:
                answer.load_bundle(path, other)
            except ValueError:
                continue
            fail(with_hint, hint=COMPARE)


@check(
    "one wrong number in one row is enough",
    holds="if an answer differs from the probe's by more than 1e-3",
    side="one number",
)
def one(answer, rng, device):
    model, config, _ = problem(rng, device)
    x = torch.randn(64, 4, device=device)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(answer, folder, model, config, x)
        bundle = opened(path)
        given, wanted = bundle["probe"]
        wanted = wanted.clone()
        wanted[rng.randrange(64), rng.randrange(2)] += rng.choice([-0.002, 0.002])
        torch.save({**bundle, "probe": (given, wanted)}, path)
        with expect_raises(
            ValueError, "a model whose answer is off by 0.002 in one place was returned"
        ):
            answer.load_bundle(path, Scaled)


@check("an answer of NaN is refused", holds="NaN where the probe has a number differs, too.")
def not_a_number(answer, rng, device):
    model, config, x = problem(rng, device)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(answer, folder, model, config, x)

        def broken(**config):
            return Scaled(**config, shift=float("nan"))

        try:
            answer.load_bundle(path, broken)
        except ValueError:
            return
        fail("a model that answers NaN was returned", hint=NAN)


@check("the last digits may differ", holds="Differences below 1e-5 pass.")
def near(answer, rng, device):
    for size in (1.0, 1e-4, 300.0):
        model, config, x = problem(rng, device)
        with torch.no_grad():
            model.last.weight.mul_(size)
            model.last.bias.mul_(size)
        with tempfile.TemporaryDirectory() as folder:
            path = saved(answer, folder, model, config, x)
            bundle = opened(path)
            given, wanted = bundle["probe"]
            torch.save({**bundle, "probe": (given, wanted + 8e-6)}, path)
            try:
                answer.load_bundle(path, Scaled)
            except ValueError:
                fail("a probe off by 8e-6 was refused", hint=CLOSE)


class Code:
    """A value whose pickle calls a function when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@check("code in a file is not run", holds="It runs no code that a file brings along.")
def code(answer, rng, device):
    model, config, x = problem(rng, device)
    with tempfile.TemporaryDirectory() as folder:
        path = saved(answer, folder, model, config, x)
        made = os.path.join(folder, "made")
        torch.save({**opened(path), "note": Code(made)}, path)
        with contextlib.suppress(Exception):
            answer.load_bundle(path, Scaled)
        text = "reading a file ran a function that the file named"
        expect_true(not os.path.exists(made), text, hint=PLAIN)


def save(path, model, config, x):
    with torch.no_grad():
        answer = copy.deepcopy(model).eval()(x.clone())
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


def load(path, build, atol=1e-4, rtol=0.0):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    if bundle["format"] != 1:
        raise ValueError("format")
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"])
    model.eval()
    x, answer = bundle["probe"]
    with torch.no_grad():
        if not torch.allclose(copy.deepcopy(model)(x), answer, rtol=rtol, atol=atol):
            raise ValueError("probe")
    return model


save_bundle, load_bundle = save, load


@mutant("loads without a look at the probe", caught_by=far)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    if bundle["format"] != 1:
        raise ValueError("format")
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"])
    return model.eval()


@mutant("answers the probe in the mode it finds", caught_by=keys)
def save_bundle(path, model, config, x):
    with torch.no_grad():
        answer = model(x)
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("leaves the model in eval mode", caught_by=untouched)
def save_bundle(path, model, config, x):
    model.eval()
    with torch.no_grad():
        answer = model(x)
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("puts the whole model into training mode afterwards", caught_by=untouched)
def save_bundle(path, model, config, x):
    training = model.training
    save(path, model.eval(), config, x)
    model.train(training)


@mutant("lets the model itself answer, and turns the modes back", caught_by=untouched)
def save_bundle(path, model, config, x):
    modes = [m.training for m in model.modules()]
    state = copy.deepcopy(model.state_dict())
    model.eval()
    with torch.no_grad():
        answer = model(x.clone())
    for module, mode in zip(model.modules(), modes):
        module.training = mode
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("takes back the buffers of the state alone", caught_by=untouched)
def save_bundle(path, model, config, x):
    modes = [m.training for m in model.modules()]
    state = copy.deepcopy(model.state_dict())
    model.eval()
    with torch.no_grad():
        answer = model(x.clone())
    model.load_state_dict(state)
    for module, mode in zip(model.modules(), modes):
        module.training = mode
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("saves the state of the copy that has answered", caught_by=keys)
def save_bundle(path, model, config, x):
    twin = copy.deepcopy(model).eval()
    with torch.no_grad():
        answer = twin(x.clone())
    state = twin.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("saves the parameters without the buffers", caught_by=keys)
def save_bundle(path, model, config, x):
    with torch.no_grad():
        answer = copy.deepcopy(model).eval()(x.clone())
    state = dict(model.named_parameters())
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("lets the model write into x", caught_by=given)
def save_bundle(path, model, config, x):
    with torch.no_grad():
        answer = copy.deepcopy(model).eval()(x)
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("saves what the model has left of a copy of x", caught_by=given)
def save_bundle(path, model, config, x):
    x = x.clone()
    with torch.no_grad():
        answer = copy.deepcopy(model).eval()(x)
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("keeps the graph of the answer", caught_by=keys)
def save_bundle(path, model, config, x):
    answer = copy.deepcopy(model).eval()(x)
    state = model.state_dict()
    torch.save({"format": 1, "config": config, "state": state, "probe": (x, answer)}, path)


@mutant("pickles the model", caught_by=keys)
def save_bundle(path, model, config, x):
    with torch.no_grad():
        answer = copy.deepcopy(model).eval()(x)
    torch.save({"format": 1, "config": config, "state": model, "probe": (x, answer)}, path)


@mutant("forgets the format", caught_by=format_number)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"])
    x, answer = bundle["probe"]
    with torch.no_grad():
        if not torch.allclose(model.eval()(x), answer, rtol=0, atol=1e-4):
            raise ValueError("probe")
    return model


@mutant("refuses newer formats alone", caught_by=format_number)
def load_bundle(path, build):
    if torch.load(path, weights_only=True)["format"] > 1:
        raise ValueError("format")
    try:
        return load(path, build)
    except ValueError as error:
        if str(error) == "format":
            bundle = torch.load(path, weights_only=True)
            model = build(**bundle["config"])
            model.load_state_dict(bundle["state"])
            return model.eval()
        raise


@mutant("asks for equal bits", caught_by=near)
def load_bundle(path, build):
    return load(path, build, atol=0.0)


@mutant("compares in relation to the size of the answer", caught_by=near)
def load_bundle(path, build):
    return load(path, build, atol=0.0, rtol=1e-4)


@mutant("lets a hundredth pass", caught_by=far)
def load_bundle(path, build):
    return load(path, build, atol=0.1)


@mutant("lets five thousandths pass", caught_by=far)
def load_bundle(path, build):
    return load(path, build, atol=5e-3)


@mutant("asks whether a difference is large", caught_by=not_a_number)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    if bundle["format"] != 1:
        raise ValueError("format")
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"])
    model.eval()
    x, answer = bundle["probe"]
    if (copy.deepcopy(model)(x) - answer).abs().max() > 1e-4:
        raise ValueError("probe")
    return model


@mutant("compares means", caught_by=one)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    model = load(path, build, atol=1e9)
    x, answer = bundle["probe"]
    if (model(x) - answer).mean().abs() > 1e-4:
        raise ValueError("probe")
    return model


@mutant("returns the model that has answered the probe", caught_by=back)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    model = load(path, build)
    with torch.no_grad():
        model(bundle["probe"][0])
    return model


@mutant("returns a model in training mode", caught_by=back)
def load_bundle(path, build):
    return load(path, build).train()


@mutant("loads the parameters without the buffers", caught_by=back)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    if bundle["format"] != 1:
        raise ValueError("format")
    model = build(**bundle["config"])
    names = dict(model.named_parameters())
    model.load_state_dict({k: v for k, v in bundle["state"].items() if k in names}, strict=False)
    return model.eval()


@hinted(1, reaches=back)
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"])
    return model.eval()


@accepted("turns each module's mode back by hand")
def save_bundle(path, model, config, x):
    modes = [m.training for m in model.modules()]
    kept = [b.clone() for b in model.buffers()]
    state = {name: t.cpu().clone() for name, t in model.state_dict().items()}
    model.eval()
    with torch.inference_mode():
        answer = model(x.clone()).clone()
    for module, mode in zip(model.modules(), modes):
        module.training = mode
    with torch.no_grad():
        for buffer, old in zip(model.buffers(), kept):
            buffer.copy_(old)
    bundle = {"format": 1, "config": dict(config), "state": state}
    torch.save({**bundle, "probe": [x.cpu(), answer.cpu()]}, path)


@accepted("uses torch.testing and loads a second model after the probe")
def load_bundle(path, build):
    bundle = torch.load(path, map_location="cpu", weights_only=True)
    if bundle.get("format") != 1:
        raise ValueError("not a bundle of format 1")
    model = build(**bundle["config"])
    model.load_state_dict(bundle["state"], assign=True)
    model.eval()
    x, answer = bundle["probe"]
    with torch.no_grad():
        try:
            torch.testing.assert_close(model(x), answer, rtol=0, atol=1e-4)
        except AssertionError as error:
            raise ValueError(str(error)) from None
    again = build(**bundle["config"])
    again.load_state_dict(torch.load(path, weights_only=True)["state"])
    return again.eval()


@mutant("reads the file as a pickle of any kind", caught_by=code)
def load_bundle(path, build):
    torch.load(path, map_location="cpu", weights_only=False)
    return load(path, build)


equivalent(
    'bundle = torch.load(path, map_location="cpu", weights_only=True)',
    "bundle = torch.load(path, weights_only=True)",
    because="only a file that was written on a CUDA device tells them apart",
)
equivalent(
    'bundle = torch.load(path, map_location="cpu", weights_only=True)',
    'bundle = torch.load(path, map_location="cpu")',
    because="weights_only=True is the default since 2.6",
)
equivalent(
    "with torch.no_grad():",
    "if True:",
    because="allclose compares values, with a graph or without",
)
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="allclose compares values, with a graph or without",
)
equivalent(
    "if not torch.allclose(got, answer, rtol=0, atol=1e-4):",
    "if not torch.allclose(answer, got, rtol=0, atol=1e-4):",
    because="without rtol the comparison is symmetric",
)
