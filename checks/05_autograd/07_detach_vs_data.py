"""Judges lessons/05_autograd/07_detach_vs_data.md."""

import copy

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_copy,
    expect_equal,
    expect_shape,
    expect_true,
    hinted,
    mutant,
)

background("Two pieces of an agent that learns by Q-learning.")

FOLLOWS = (
    "It looks at the parameters' own memory, and an optimizer writes there. Which call makes a "
    "copy of the numbers?"
)


def leaf(values):
    """The values as a leaf that requires grad."""
    return values.detach().clone().requires_grad_()


def problem(rng, device, n=0, dtype=torch.float32):
    """q, next_q and reward of shape (n,), and gamma. Targets are 1 or more away from q."""
    n = n or rng.randrange(2, 9)
    q, next_q, reward = (torch.randn(n, device=device, dtype=dtype) for _ in range(3))
    gamma = rng.uniform(0.5, 0.99)
    q = reward + gamma * next_q + torch.where(q < 0, q - 1, q + 1)
    return leaf(q), leaf(next_q), reward, gamma


def wanted(q, next_q, reward, gamma):
    """The loss and its gradient for q, by the formula, in float64."""
    off = (q.double() - reward.double() - gamma * next_q.double()).detach()
    return (off * off).sum() / len(off), 2 * off / len(off)


def go_back(loss):
    """backward() of the loss, if it has a graph."""
    expect_shape(loss, (), name="the loss")
    expect_true(
        loss.requires_grad,
        "the loss has no graph: backward() has nowhere to go",
        hint="q must keep its history. The target alone is a constant.",
    )
    loss.backward()


@check(
    "the loss is the mean squared distance to the target",
    holds=[
        "`td_loss` is the loss from above for a batch.",
        "Mean squared distance of q to reward + gamma * next_q.",
        "B is 1 or more",
        "gamma: float from 0 to 1",
    ],
    both_sides=True,
)
def value(answer, rng, device):
    for n, dtype in ((0, torch.float32), (1, torch.float32), (0, torch.float64)):
        q, next_q, reward, gamma = problem(rng, device, n, dtype)
        for g in (gamma, 0.0, 1.0):
            right, _ = wanted(q, next_q, reward, g)
            expect_close(
                answer.td_loss(q, next_q, reward, g),
                right,
                dtype=dtype,
                name="the loss",
                hint="The mean over the batch of (q - target) ** 2, with the target "
                "reward + gamma * next_q. Cutting changes no value.",
            )


@check("the gradient moves q towards the target", holds="its backward reaches q only")
def gradient(answer, rng, device):
    for n in (0, 1):
        q, next_q, reward, gamma = problem(rng, device, n)
        _, right = wanted(q, next_q, reward, gamma)
        go_back(answer.td_loss(q, next_q, reward, gamma))
        expect_true(
            q.grad is not None,
            "q.grad is None after backward()",
            hint="The wrong side is constant: q should move, the target should stand.",
        )
        expect_close(q.grad, right, dtype=q.dtype, name="q.grad")


@check("no gradient flows into next_q", holds="The whole target is a constant.")
def target_stands(answer, rng, device):
    q, next_q, reward, gamma = problem(rng, device)
    go_back(answer.td_loss(q, next_q, reward, gamma))
    expect_true(
        next_q.grad is None,
        "next_q.grad is not None after backward()",
        hint="The gradient leaks into the target, and would pull it towards q. Cut the target.",
    )


@check(
    "no gradient flows into a learned reward",
    holds=["The reward may come from a network of its own", "may require grad too"],
)
def reward_stands(answer, rng, device):
    q, next_q, reward, gamma = problem(rng, device)
    reward = leaf(reward)
    go_back(answer.td_loss(q, next_q, reward, gamma))
    expect_true(
        reward.grad is None,
        "reward.grad is not None after backward()",
        hint="The target is constant as a whole. Cutting next_q leaves the reward attached.",
    )


@check(
    "when one network gives q and next_q, q's side alone counts",
    holds="its backward reaches q only",
)
def one_network(answer, rng, device):
    n, d = rng.randrange(2, 7), rng.randrange(2, 5)
    w = leaf(torch.randn(d, device=device))
    here, there = torch.randn(2, n, d, device=device)
    reward = torch.randn(n, device=device)
    q, next_q = (here * w).sum(1), (there * w).sum(1)
    _, share = wanted(q, next_q, reward, 0.9)
    right = (here.double() * share[:, None]).sum(0)
    go_back(answer.td_loss(q, next_q, reward, 0.9))
    expect_close(
        w.grad,
        right,
        dtype=w.dtype,
        name="w.grad",
        hint="Both sides hang on the same w here. Its gradient is the one through q.",
    )


@check(
    "td_loss leaves the caller's tensors and the grad mode as they were",
    holds="do not change their values, flags or history, nor the grad mode",
    both_sides=True,
)
def left_alone(answer, rng, device):
    q, next_q, reward, gamma = problem(rng, device)
    reward = leaf(reward)
    given = {"q": q, "next_q": next_q, "reward": reward}
    given |= {f"{name} with history": tensor * 1 for name, tensor in list(given.items())}
    before = {name: (t.requires_grad, t.grad_fn, t._version) for name, t in given.items()}
    answer.td_loss(*list(given.values())[:3], gamma)
    answer.td_loss(*list(given.values())[3:], gamma)
    for name, t in given.items():
        flag, node, version = before[name]
        expect_true(
            t.requires_grad == flag and t.grad_fn is node,
            f"{name} no longer has the flag or the history that it came with",
            hint="requires_grad_() and detach_() change the caller's tensor. Make a new one.",
        )
        expect_true(t._version == version, f"{name} was written into", hint="Make a new tensor.")
    for on in (True, False):
        word = "on" if on else "off"
        with torch.set_grad_enabled(on):
            answer.td_loss(q, next_q, reward, gamma)
            after = torch.is_grad_enabled()
        message = f"recording was {word} before td_loss, and is not {word} after it"
        expect_true(after == on, message, hint="`with` puts the mode back, whatever it was.")


def parameters(rng, device):
    """Leaves that require grad, one that does not, one with history, odd shapes and dtypes."""
    n = rng.randrange(2, 6)
    made = [
        torch.randn(n, n + 1, device=device),
        torch.randn(n, device=device, dtype=torch.float64),
        torch.randn((), device=device),
        torch.randn(0, n, device=device),
        torch.randn(n, 3, device=device).to(torch.bfloat16).T,
    ]
    frozen = torch.randn(2, n, device=device)
    return [leaf(p) for p in made] + [frozen, leaf(made[0]) * 2]


def taken(answer, params):
    got = answer.snapshot(params)
    expect_true(isinstance(got, list), "the snapshot is not a list", hint="One tensor for each.")
    expect_true(
        len(got) == len(params), f"{len(params)} parameters went in, {len(got)} tensors came out"
    )
    return got


@check(
    "a snapshot has the parameters' values, shapes and dtypes",
    holds=[
        "`snapshot` keeps the values of a network's parameters",
        "list of tensors of any shape and floating dtype",
        "list of as many constants: same shapes, dtypes, values",
    ],
)
def snapshot_values(answer, rng, device):
    params = parameters(rng, device)
    right = [p.detach().clone() for p in params]
    expect_equal(
        taken(answer, params),
        right,
        name="snapshot",
        dtype_hint="Every bit, in the dtype that came in.",
    )
    expect_equal(taken(answer, []), [], name="the snapshot of no parameters")
    tied = [params[0], params[1], params[0]]
    expect_equal(
        taken(answer, tied),
        [right[0], right[1], right[0]],
        name="the snapshot of a list that holds one tensor twice",
    )


@check("a snapshot holds constants", holds="no grad, no history")
def snapshot_constant(answer, rng, device):
    for number, p in enumerate(taken(answer, parameters(rng, device))):
        expect_true(
            not p.requires_grad and p.grad_fn is None,
            f"tensor {number} of the snapshot still requires grad",
            hint="A clone() is recorded like any operation, and a deep copy keeps the flag. Cut "
            "the history as well.",
        )


@check("a later graph may save a snapshot", holds="normal tensors, which a later graph may save")
def snapshot_enters(answer, rng, device):
    w = leaf(torch.randn(rng.randrange(2, 6), device=device))
    (old,) = taken(answer, [w])
    hint = "What inference_mode makes can never be saved for a backward. no_grad makes constants "
    hint += "that can."
    cut = "detach_() and requires_grad_() change the parameter itself, which goes on training."
    expect_true(w.requires_grad, "the parameter requires grad no longer", hint=cut)
    with advising(RuntimeError, saying="nference", hint=hint):
        (w * old).sum().backward()
    expect_close(w.grad, w.detach(), name="the gradient of w * snapshot")


@check(
    "a snapshot does not follow when the parameters move",
    holds=["the snapshot must not follow", "no memory shared"],
)
def snapshot_stays(answer, rng, device):
    params = parameters(rng, device)
    right = [p.detach().clone() for p in params]
    got = taken(answer, params)
    with torch.no_grad():
        for p in params:
            p.add_(1)
    for number, (old, now) in enumerate(zip(right, got, strict=True)):
        expect_equal(now, old, name=f"after an update, snapshot[{number}]", hint=FOLLOWS)
        if old.numel():
            expect_copy(now, params[number], name=f"snapshot[{number}]", hint=FOLLOWS)


@check(
    "taking a snapshot changes nothing about the parameters",
    holds="Taking it changes nothing about them.",
)
def snapshot_harmless(answer, rng, device):
    params = parameters(rng, device)
    before = [(p.requires_grad, p.grad_fn, p._version) for p in params]
    taken(answer, params)
    expect_true(
        [(p.requires_grad, p.grad_fn, p._version) for p in params] == before,
        "a parameter lost its flag or its history, or was written into",
        hint="The parameters go on training. requires_grad_() and detach_() work on the tensor "
        "itself.",
    )


@mutant("cuts nothing", caught_by=target_stands)
def td_loss(q, next_q, reward, gamma):
    return ((q - (reward + gamma * next_q)) ** 2).mean()


@mutant("cuts nothing, and one network gives both", caught_by=one_network)
def td_loss(q, next_q, reward, gamma):
    return torch.nn.functional.mse_loss(q, reward + gamma * next_q)


@mutant("cuts next_q and leaves the reward", caught_by=reward_stands)
def td_loss(q, next_q, reward, gamma):
    return ((q - (reward + gamma * next_q.detach())) ** 2).mean()


@mutant("freezes the caller's next_q", caught_by=left_alone)
def td_loss(q, next_q, reward, gamma):
    if next_q.is_leaf:
        next_q.requires_grad_(False)
    target = (reward + gamma * next_q).detach()
    return ((q - target) ** 2).mean()


@mutant("cuts in place", caught_by=left_alone)
def td_loss(q, next_q, reward, gamma):
    target = reward.detach() + gamma * next_q.detach_()
    return ((q - target) ** 2).mean()


@mutant("discounts in place", caught_by=left_alone)
def td_loss(q, next_q, reward, gamma):
    target = next_q.detach().mul_(gamma).add_(reward.detach())
    return ((q - target) ** 2).mean()


@mutant("does all of it under no_grad", caught_by=gradient)
def td_loss(q, next_q, reward, gamma):
    with torch.no_grad():
        return ((q - (reward + gamma * next_q)) ** 2).mean()


@mutant("cuts the prediction", caught_by=gradient)
def td_loss(q, next_q, reward, gamma):
    return ((q.detach() - (reward + gamma * next_q)) ** 2).mean()


@mutant("adds up instead of taking the mean", caught_by=value)
def td_loss(q, next_q, reward, gamma):
    return ((q - (reward + gamma * next_q).detach()) ** 2).sum()


@mutant("discounts the reward", caught_by=value)
def td_loss(q, next_q, reward, gamma):
    return ((q - (gamma * (reward + next_q)).detach()) ** 2).mean()


@mutant("leaves gradients switched off", caught_by=left_alone)
def td_loss(q, next_q, reward, gamma):
    torch.set_grad_enabled(False)
    target = reward + gamma * next_q
    torch.set_grad_enabled(True)
    loss = ((q - target) ** 2).mean()
    torch.set_grad_enabled(False)
    return loss


@mutant("turns gradients on at the end, whatever they were", caught_by=left_alone)
def td_loss(q, next_q, reward, gamma):
    torch.set_grad_enabled(False)
    target = reward + gamma * next_q
    torch.set_grad_enabled(True)
    return ((q - target) ** 2).mean()


@mutant("copies each tensor once, however often it is listed", caught_by=snapshot_values)
def snapshot(params):
    return list({id(p): p.detach().clone() for p in params}.values())


@mutant("cuts the parameters in place", caught_by=snapshot_harmless)
def snapshot(params):
    return [(p.detach_() if p.grad_fn else p.detach()).clone() for p in params]


@mutant("takes .data", caught_by=snapshot_stays)
def snapshot(params):
    return [p.data for p in params]


@mutant("detaches and shares the memory", caught_by=snapshot_stays)
def snapshot(params):
    return [p.detach() for p in params]


@mutant("asks for contiguous memory", caught_by=snapshot_stays)
def snapshot(params):
    return [p.detach().contiguous() for p in params]


@mutant("clones with the history", caught_by=snapshot_constant)
def snapshot(params):
    return [p.clone() for p in params]


@mutant("copies in inference mode", caught_by=snapshot_enters)
def snapshot(params):
    with torch.inference_mode():
        return [p.clone() for p in params]


@mutant("copies deeply", caught_by=snapshot_constant)
def snapshot(params):
    return [copy.deepcopy(p) if p.is_leaf else p.detach().clone() for p in params]


@mutant("goes through lists", caught_by=snapshot_values)
def snapshot(params):
    return [torch.tensor(p.tolist(), device=p.device) for p in params]


@mutant("freezes the parameters", caught_by=snapshot_harmless)
def snapshot(params):
    return [(p.requires_grad_(False) if p.is_leaf else p.detach()).clone() for p in params]


@hinted(1, reaches=left_alone)
def td_loss(q, next_q, reward, gamma):
    target = (reward + gamma * next_q).detach()
    return ((q - target) ** 2).mean()


@accepted("computes the target under no_grad")
def td_loss(q, next_q, reward, gamma):
    with torch.no_grad():
        target = reward + gamma * next_q
    return torch.nn.functional.mse_loss(q, target)


@accepted("cuts each part on its own")
def td_loss(q, next_q, reward, gamma):
    off = next_q.detach().mul(gamma).add(reward.detach()).sub(q)
    return off.pow(2).mean()


@accepted("cuts its own sum in place")
def td_loss(q, next_q, reward, gamma):
    target = reward + gamma * next_q
    target.detach_()
    return (target - q).square().sum() / len(q)


@accepted("clones first and cuts then")
def snapshot(params):
    return [p.clone().detach() for p in params]


@accepted("copies under no_grad into fresh memory")
@torch.no_grad()
def snapshot(params):
    return [torch.empty_like(p, requires_grad=False).copy_(p) for p in params]
