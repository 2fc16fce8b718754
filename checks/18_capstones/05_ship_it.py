"""Judges lessons/18_capstones/05_ship_it.md."""

import contextlib
import functools
import http.client
import inspect
import json
import os
import queue
import random
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils.data import DistributedSampler

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)
from tensortutor.lab import data

background("Write `train`, `ship` and `work`.", "The check has a client")

equivalent(
    "two, rows = torch.zeros(2, 64), {0: torch.export.Dim.DYNAMIC}",
    "two, rows = torch.ones(2, 64), {0: torch.export.Dim.DYNAMIC}",
    because="an export looks at the example's shape and dtype, not at its numbers",
)
equivalent(
    "two, rows = torch.zeros(2, 64), {0: torch.export.Dim.DYNAMIC}",
    "two, rows = torch.zeros(3, 64), {0: torch.export.Dim.DYNAMIC}",
    because="the first dimension is free, and two rows or more say the same",
)
equivalent(
    "torch.stack([row, torch.zeros(64)])",
    "torch.stack([row, torch.ones(64)])",
    because="what is stacked is thrown away: the shapes alone decide whether it raises",
)
equivalent(
    "answer.set_exception(ValueError(str(error)))",
    "answer.set_exception(ValueError(error))",
    because="its text is the same",
)
equivalent(
    "with torch.inference_mode():",
    "if True:",
    because="the labels are ints either way; the graph is thrown away after each call",
)

LONG = 10.0
"""Seconds after which an answer will not come any more."""

SHARES = "DistributedSampler(range(len(x))) gives each rank its rows of an epoch."
ORDER = "The sampler draws its order from the epoch that set_epoch names."
APART = "Wrap the net in DistributedDataParallel, and call the wrapper."
NAMES = "Return ddp.module.state_dict(): the wrapper's own names begin with `module.`."
SCALE = "The division by 16 belongs into the exported module's forward."
EVAL = "Put the module into eval mode before it is exported: the mode is in the graph."
ROWS = "dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), and an example of two rows."
BATCH = "Collect requests until max_batch are there or wait seconds have passed, then call once."
OWN = (
    "Each of these requests is a list of 64 numbers, ints or floats of any size. Make float32 of "
    "them, and give each Future the place of the largest score in its own row."
)
ALONE = "Look at each request by itself before you stack, and set the exception of its Future."


def everywhere(value):
    """What each rank holds, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


def attempt(call):
    """What call returns, on this rank. Each rank learns how it ended on all before it raises."""
    failed = got = None
    try:
        got = call()
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    if failed is not None:
        raise failed
    expect_true(not any(troubles), f"train failed on another rank: {''.join(troubles)[:200]}")
    return got


def scores(state, x):
    """Of the net in eval mode, for pixels from 0 to 16."""
    hidden = F.linear(x / 16, state["0.weight"], state["0.bias"]).relu()
    return F.linear(hidden, state["3.weight"], state["3.bias"])


def digits(rng, count):
    d = np.load(data("digits.npz"))
    order = list(range(len(d["labels"])))
    rng.shuffle(order)
    x = torch.from_numpy(d["images"]).float().flatten(1)[order]
    y = torch.from_numpy(d["labels"]).long()[order]
    return x[:count], y[:count], x[count:], y[count:]


def once(work):
    """Decorate work(...): what it made of an answer is kept for other checks and seeds.

    The ranks ask for the same things in the same order, so all of them find it, or none.
    """
    results = {}

    @functools.wraps(work)
    def done(*told):
        key = tuple(inspect.unwrap(of) if callable(of) else of for of in told)
        if key not in results:
            results[key] = work(*told)
        return results[key]

    return done


def state_of(returned):
    if not isinstance(returned, dict):
        raise TypeError(f"train returned {type(returned).__name__}: the state of net() is wanted")
    return returned


class Watched:
    """What a run of train did on this rank.

    state: what it returned. seen: the numbers of the rows that the net saw in training. sizes: how
    many at a time. off: how far its input is from pixels / 16. rates: the learning rate at each
    step of the optimizer. kinds: its class, weight decay and betas. lowest: the smallest gradient
    of a bias of the last layer. own: the gradients of these biases that this rank's rows give, step
    by step. taken: those with which the optimizer stepped.
    """

    def __init__(self, train, x, y, epochs):
        self.seen, self.sizes, self.rates, self.off, self.lowest = [], [], [], 0.0, 0.0
        self.kinds, self.own, self.taken = set(), [], []
        self._x = x
        handles = [
            register_module_forward_pre_hook(self._look),
            register_module_forward_hook(self._scored),
            register_optimizer_step_pre_hook(self._step),
        ]
        try:
            self.state = attempt(lambda: state_of(train(x, y, epochs)))
        finally:
            for handle in handles:
                handle.remove()

    def _look(self, module, args):
        first = isinstance(module, nn.Linear) and module.in_features == module.out_features
        if first and module.training and torch.is_grad_enabled():
            rows = args[0].detach().reshape(-1, 64)
            apart = torch.cdist(rows, self._x / 16, compute_mode="donot_use_mm_for_euclid_dist")
            gaps, numbers = apart.min(1)
            self.off = max(self.off, gaps.max().item())
            self.seen.extend(numbers.tolist())
            self.sizes.append(len(rows))

    def _scored(self, module, args, out):
        if isinstance(module, nn.Linear) and module.out_features == 10 and out.requires_grad:
            out.register_hook(lambda grad: self.own.append(grad.sum(0).tolist()))

    def _step(self, opt, *_):
        for group in opt.param_groups:
            self.rates.append(group["lr"])
            self.kinds.add((type(opt).__name__, group.get("weight_decay"), group.get("betas")))
            for p in group["params"]:
                if p.shape == (10,) and p.grad is not None:
                    self.lowest = min(self.lowest, p.grad.min().item())
                    self.taken.append(p.grad.tolist())


EPOCHS = 3


@once
def ran(train, half):
    """What train did on each rank, in EPOCHS of twice half rows. All have one label: see steps."""
    x, *_ = digits(random.Random(half), 2 * half)
    torch.manual_seed(dist.get_rank())
    run = Watched(train, x, torch.full((2 * half,), half % 10), EPOCHS)
    run.state = {name: t.detach().clone() for name, t in run.state.items()}
    names = ("state", "seen", "sizes", "off", "rates", "lowest", "kinds", "own", "taken")
    return everywhere({name: getattr(run, name) for name in names})


def half_of(rng):
    """How many rows a rank gets. Not a multiple of the 16 of a step."""
    return rng.choice([17, 24])


@check("the state fits net()", holds="`net()` can load it")
def names(answer, rng, device):
    wanted = sorted(plain().state_dict())
    for run in ran(answer.train, half_of(rng)):
        expect_equal(sorted(run["state"]), wanted, name="the names of the state", hint=NAMES)


@check(
    "together the ranks read all rows, each a half",
    holds=[
        "is called on all ranks with the same rows",
        "In every epoch the ranks together read all rows, and each rank reads one half.",
        "The order is another one in each epoch.",
    ],
    both_sides=True,
)
def shares(answer, rng, device):
    half = half_of(rng)
    runs = ran(answer.train, half)
    off = max(run["off"] for run in runs)
    message = f"what the net is trained with differs by {off:.3g} from pixels / 16"
    expect_true(off < 1e-4, message, hint="Train with x[rows] / 16, as the starter does.")
    count, every = 2 * half, [run["seen"] for run in runs]
    for rank, numbers in enumerate(every):
        what = f"rows that rank {rank} read in {EPOCHS} epochs of {count} rows"
        expect_equal(len(numbers), EPOCHS * half, name=what, hint=SHARES)
    for epoch in range(EPOCHS):
        numbers = [n for of in every for n in of[epoch * half : (epoch + 1) * half]]
        what = f"different rows that were read in epoch {epoch}, of {count}"
        expect_equal(len(set(numbers)), count, name=what, hint=SHARES)
    for numbers in every:
        orders = {tuple(numbers[at : at + half]) for at in range(0, EPOCHS * half, half)}
        what = f"different orders in {EPOCHS} epochs"
        expect_equal(len(orders), EPOCHS, name=what, hint=ORDER)


@check(
    "steps as before",
    holds="All else stays as it is: `net`, the optimizer, 16 rows a step.",
)
def steps(answer, rng, device):
    expect_equal(str(answer.net()), str(plain()), name="net()")
    half = half_of(rng)
    for run in ran(answer.train, half):
        wanted = [16, half - 16] * EPOCHS
        expect_equal(run["sizes"], wanted, name=f"rows a step, of {half} an epoch", hint=SHARES)
        rates = [5e-3] * (2 * EPOCHS)
        expect_equal(run["rates"], rates, name="the optimizer's learning rates")
        kinds = {("AdamW", 0.01, (0.9, 0.999))}
        expect_equal(run["kinds"], kinds, name="the optimizer, its weight decay and its betas")
        lowest = run["lowest"]
        # With one label in all rows a bias has the gradient p - 1, and a sum of two is below -1.
        hint = "Set the gradients to zero in front of each backward; the ranks average."
        what = f"a gradient is {lowest:.2f}, and the mean over one step's rows is not below -1"
        expect_true(lowest > -1.0001, what, hint=hint)


@check("all ranks have one state", holds="All ranks return the same state")
def replicas(answer, rng, device):
    first, second = (run["state"] for run in ran(answer.train, half_of(rng)))
    for name in first:
        apart = (first[name] - second[name]).abs().max().item()
        message = f"{name} differs by {apart:.3g} between the ranks"
        expect_true(apart < 1e-6, message, hint=APART)


@check(
    "each step follows the mean gradient",
    holds="Each step follows the mean of the ranks' gradients.",
    both_sides=True,
)
def mean(answer, rng, device):
    first, second = ran(answer.train, half_of(rng))
    own = [torch.tensor(run["own"]) for run in (first, second)]
    for run in (first, second):
        taken = torch.tensor(run["taken"])
        expect_equal(taken.shape, own[0].shape, name="steps, and biases of the last layer")
        apart = (taken - (own[0] + own[1]) / 2).abs().max().item()
        message = f"a step's gradient differs by {apart:.3g} from the mean of both ranks"
        expect_true(apart < 1e-4, message, hint=APART)


@contextlib.contextmanager
def place(name):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)


@once
def shipped(ship):
    """A state, and the program that the learner's ship makes of it."""
    torch.manual_seed(0)
    state = {name: t.detach().clone() * 2 for name, t in plain().state_dict().items()}
    with place("a.pt2") as path:
        ship(state, path)
        return state, torch.export.load(path).module()


@check(
    "the file takes raw pixels and answers in eval mode",
    holds=[
        "takes raw pixels, from 0 to 16",
        "It gives the scores that `net()` has in eval mode for pixels / 16.",
    ],
)
def raw(answer, rng, device):
    state, program = shipped(answer.ship)
    x = torch.rand(2, 64) * 16
    with torch.no_grad():
        one, two = program(x), program(x)
    same = torch.equal(one, two)
    expect_true(same, "two calls of the program with the same rows differ", hint=EVAL)
    expect_close(one, scores(state, x), atol=1e-4, name="the program's scores", hint=SCALE)


@check("the file takes any number of rows", holds="It takes any number of rows, from one.",
       both_sides=True)  # fmt: skip
def dynamic(answer, rng, device):
    state, program = shipped(answer.ship)
    for count in (1, rng.randint(3, 40)):
        x = torch.rand(count, 64) * 16
        try:
            with torch.no_grad():
                got = program(x)
        except AssertionError as error:
            fail(f"the program refuses {count} rows: {str(error)[:80]}", hint=ROWS)
        expect_close(got, scores(state, x), atol=1e-4, name=f"scores of {count} rows", hint=SCALE)


class Echo(nn.Module):
    """Each row's label is the place of the largest among its first ten numbers.

    sizes: how many rows each call had.
    """

    def __init__(self):
        super().__init__()
        self.first = torch.eye(64)[:, :10]
        self.sizes = []

    def forward(self, x):
        self.sizes.append(len(x))
        return x @ self.first


class Line(queue.Queue):
    """A queue of requests that notes how it is asked.

    asked: set by the first get. taken_at: when the first request was taken (s). timeouts: how long
    each get was to wait at most, where it said so; asked_at: when it was called. stuck: a get
    without an end found nothing there.
    """

    def __init__(self):
        super().__init__()
        self.asked, self.taken_at = threading.Event(), 0.0
        self.timeouts, self.asked_at, self.stuck = [], [], False

    def get(self, block=True, timeout=None):
        if block and timeout is not None:
            self.timeouts.append(timeout)
            self.asked_at.append(time.monotonic())
        elif block:
            self.stuck = self.empty()
        self.asked.set()
        request = super().get(block, timeout)
        self.taken_at = self.taken_at or time.monotonic()
        return request


class Trouble(str):
    """In the place of an answer: the name of an exception, or what kept the answer from coming."""


def expect_labels(got, wanted, of, hint):
    """Each client of those `of` tells about has its label."""
    for at, (said, label) in enumerate(zip(got, wanted, strict=True)):
        if isinstance(said, Trouble):
            fail(f"{of}: number {at} should get the label {label}, and got: {said}", hint=hint)
    if all(type(said) is int for said in got):
        expect_equal(got, wanted, name=f"the labels of {of}", hint=hint)
    expect_equal(got, wanted, name=f"the labels of {of}")


class Worker:
    """The learner's work in a thread of its own, behind a queue."""

    def __init__(self, answer, max_batch, wait, bodies=()):
        self.line, self.program = Line(), Echo()
        self.asked = [self.ask(body) for body in bodies]
        told = (self.program, self.line, max_batch, wait)
        self.thread = threading.Thread(target=self._work, args=(answer.work, told), daemon=True)
        self.ended, self.patient = "work returned", True
        self.thread.start()

    def _work(self, work, told):
        try:
            work(*told)
        except BaseException as error:
            self.ended = f"work ended with {type(error).__name__}: {str(error)[:60]}"

    def ask(self, body):
        future = Future()
        self.line.put((body, future))
        return future

    def taken(self):
        """Wait until the queue is empty."""
        end = time.monotonic() + LONG
        while not self.line.empty() and self.thread.is_alive() and time.monotonic() < end:
            time.sleep(0.001)

    def said(self, future):
        """What the Future holds, or a Trouble."""
        end = time.monotonic() + LONG * self.patient
        while not future.done() and self.thread.is_alive() and time.monotonic() < end:
            if self.line.stuck:
                end = min(end, time.monotonic() + LONG / 5)
                self.line.stuck = False
            wait_for([future], 0.02)
        if not future.done():
            self.patient = False  # the others are not waited for as well
            return Trouble("no answer" if self.thread.is_alive() else self.ended)
        error = future.exception()
        if error is None:
            return future.result()
        return Trouble("ValueError" if isinstance(error, ValueError) else type(error).__name__)

    def all_said(self):
        return [self.said(future) for future in self.asked]


def labelled(rng, label):
    """Pixels to which Echo answers label; some clients send whole numbers."""
    if rng.random() < 0.5:
        pixels = [rng.randrange(-9, 9) for _ in range(64)]  # any number will do
        pixels[label] = rng.choice([16, 255])
    else:
        pixels = [round(rng.random() * 8, 3) for _ in range(64)]
        pixels[label] = 16.0
    return pixels


@check(
    "each client gets the label of its own pixels",
    holds="The result of a request is its label, an int.",
    both_sides=True,
)
def own(answer, rng, device):
    labels = [rng.randrange(10) for _ in range(rng.randint(5, 12))]
    for bodies in ([labelled(rng, label) for label in labels], [[int(n == 9) for n in range(64)]]):
        worker = Worker(answer, 4, rng.choice([0, 0.01]), bodies)
        wanted = labels if len(bodies) > 1 else [9]
        got = worker.all_said()
        expect_labels(got, wanted, f"{len(bodies)} clients", OWN)
        kinds = {type(label).__name__ for label in got}
        expect_equal(kinds, {"int"}, name="types of results", hint="Call .item().")
        after = worker.said(worker.ask(labelled(rng, 3)))
        expect_labels([after], [3], "a later client", OWN)


@check(
    "requests that wait share a call",
    holds=[
        "`work` puts requests that wait into one call",
        "until `max_batch` are there, or until `wait` seconds have passed since it took the first",
    ],
    both_sides=True,
)
def together(answer, rng, device):
    most = rng.randint(3, 6)
    worker = Worker(answer, most, 6 * LONG, [[0.5] * 64] * (2 * most))
    got = worker.all_said()
    expect_labels(got, [0] * (2 * most), f"{2 * most} clients", BATCH)
    what = f"rows in the calls, where {2 * most} requests waited and max_batch is {most}"
    expect_equal(worker.program.sizes, [most, most], name=what, hint=BATCH)

    worker = Worker(answer, 8, 0.02, [[0.5] * 64])
    got = worker.said(worker.asked[0])
    expect_labels([got], [0], "a client that stayed alone", BATCH)
    longest = max(worker.line.timeouts, default=0)
    message = f"wait is 0.02, and a get was to wait {longest:.3f} seconds"
    expect_true(longest <= 0.021, message, hint=BATCH)


@check(
    "a call waits for requests that come later",
    holds="since it took the first",
    side="until it is over",
)
def later(answer, rng, device):
    wait, worker = 6 * LONG, Worker(answer, 3, 6 * LONG)
    line = worker.line
    line.asked.wait(LONG)
    time.sleep(0.05)  # none of it counts: wait begins with the first request
    futures = [worker.ask([0.5] * 64)]
    for _ in range(2):
        worker.taken()
        time.sleep(0.05)
        futures.append(worker.ask([0.5] * 64))
    got = [worker.said(future) for future in futures]
    expect_labels(got, [0] * 3, "three clients", BATCH)
    what = f"rows in the calls, where two more came soon after the first and wait is {wait:.0f}"
    expect_equal(worker.program.sizes, [3], name=what, hint=BATCH)
    hint = "Take the time when the first request is there. What is left of wait gets less."
    if max(line.timeouts, default=0) < wait / 2:
        return  # it looks again and again
    least = wait - (line.asked_at[0] - line.taken_at) - 0.001
    message = "wait began before the first request was there"
    expect_true(line.timeouts[0] >= least, message, hint=hint)
    for waited in line.timeouts[1:2]:
        message = f"after 0.05 seconds a get was to wait {waited:.2f} seconds, and wait is {wait}"
        expect_true(waited <= wait - 0.04, message, hint=hint)


@check(
    "a bad request is answered, and harms nobody",
    holds=[
        "A request that is not a list of 64 numbers gets a ValueError",
        "no other request is harmed by it",
        "Whatever a request holds as pixels, `work` goes on.",
    ],
    both_sides=True,
)
def bad(answer, rng, device):
    kinds = ["seven", None, {"pixels": 3}, 5, [[1.0] * 64], [[1.0]] * 64, [], [1.0], [1.0] * 63]
    kinds += [[1.0] * 65, ["a"] * 64, [1.0] * 63 + [None], [1.0] * 63 + ["16"]]
    worker = Worker(answer, 4, 6 * LONG)
    for wrong in rng.sample(kinds, len(kinds)):
        labels = [rng.randrange(10) for _ in range(3)]
        bodies = [labelled(rng, label) for label in labels]
        at = rng.randrange(4)
        bodies.insert(at, wrong)
        futures = [worker.ask(body) for body in bodies]
        got = [worker.said(future) for future in futures]
        what = f"what the request {str(wrong)[:20]!r} got, with three others"
        found = got.pop(at)
        found = str(found) if isinstance(found, Trouble) else f"the result {str(found)[:40]}"
        expect_equal(found, "ValueError", name=what, hint=ALONE)
        expect_labels(got, labels, f"the three beside {str(wrong)[:20]!r}", ALONE)
    worker = Worker(answer, 4, 0.01, ["seven"])
    got = worker.said(worker.asked[0])
    expect_equal(str(got), "ValueError", name="what 'seven' got, alone", hint=ALONE)
    got = worker.said(worker.ask(labelled(rng, 7)))
    expect_labels([got], [7], "the request after a bad one", ALONE)


@contextlib.contextmanager
def serving(answer, program, max_batch, wait):
    """The port of a server that hands requests to the learner's work, in a thread of its own."""
    requests = queue.Queue()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            future = Future()
            size = int(self.headers["Content-Length"])
            requests.put((json.loads(self.rfile.read(size)), future))
            try:
                status, said = 200, future.result(LONG)
            except ValueError as error:
                status, said = 400, str(error)
            except Exception as error:
                status, said = 500, f"{type(error).__name__}: {error}"
            self.send_response(status)
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(json.dumps(said, default=str).encode())

        def log_message(self, *words):
            pass

    server = Server(("127.0.0.1", 0), Handler)
    told = (program, requests, max_batch, wait)
    for job, args in ((answer.work, told), (server.serve_forever, ())):
        threading.Thread(target=job, args=args, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


class Server(ThreadingHTTPServer):
    daemon_threads, request_queue_size, block_on_close = True, 64, False


def ask(port, body, limit=LONG + 2):
    """(status, answer) of one request. status 0: no answer came."""
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=limit)
    try:
        link.request("POST", "/", json.dumps(body))
        reply = link.getresponse()
        return reply.status, json.load(reply)
    except (OSError, http.client.HTTPException):
        return 0, None
    finally:
        link.close()


def ask_all(port, bodies):
    with ThreadPoolExecutor(len(bodies)) as clients:
        return list(clients.map(lambda body: ask(port, body), bodies))


@once
def trained(train, ship):
    """A state of the learner's train, its program, and digits that it did not see."""
    rng = random.Random(0)
    x, y, new, wanted = digits(rng, 1400)
    state = attempt(lambda: train(x, y, 3))
    with place("digits.pt2") as path:
        ship(state, path)
        program = torch.export.load(path).module()
    right = scores(state, new).argmax(1)
    accuracy = (right == wanted).float().mean().item()
    return program, new, right, accuracy


@check(
    "digits: from the ranks through the file to a client",
    holds="writes an exported program",
)
def chain(answer, rng, device):
    program, new, right, accuracy = trained(answer.train, answer.ship)
    expect_true(accuracy > 0.8, f"the accuracy on new digits is {accuracy:.2f}", hint=APART)
    some = rng.sample(range(len(new)), 10)
    with serving(answer, program, 5, 0.01) as port:
        got = ask_all(port, new[some].tolist())
    wanted = [(200, label) for label in right[some].tolist()]
    expect_equal(got, wanted, name="status and label of ten clients", hint=SCALE)


def plain():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))


class Scaled(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.net = plain()
        self.net.load_state_dict(state)

    def forward(self, x):
        return self.net(x / 16)


def fitted(x, y, epochs, share="sampler", orders=True, average=True, module=True, seed=True,
           kind=torch.optim.AdamW, late=None):  # fmt: skip
    """train, with parts left out."""
    if seed:
        torch.manual_seed(0)
    net = plain()
    ddp = DistributedDataParallel(net) if average else net
    opt = kind(ddp.parameters(), lr=5e-3)
    world, rank = dist.get_world_size(), dist.get_rank()
    sampler = DistributedSampler(range(len(x)))
    for epoch in range(epochs):
        if orders:
            sampler.set_epoch(epoch)
        rows = torch.tensor(list(sampler))
        if share == "all":
            rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
        elif share == "own":  # each rank draws for itself
            g = torch.Generator().manual_seed(10 * epoch + rank)
            rows = torch.randperm(len(x), generator=g)[: len(x) // world]
        elif share == "same":
            rows = torch.randperm(len(x), generator=torch.Generator().manual_seed(epoch))
            rows = rows[: len(x) // world]
        elif share == "slices":
            g = torch.Generator().manual_seed(epoch)
            rows = torch.randperm(len(x), generator=g)[rank::world]
        for part in rows.split(16):
            opt.zero_grad()
            F.cross_entropy(ddp(x[part] / 16), y[part]).backward()
            opt.step()
    for p in net.parameters() if late else ():
        late(p.data)
        if late is dist.all_reduce:
            p.data /= world
    state = net.state_dict() if module else ddp.state_dict()
    return {name: t.clone() for name, t in state.items()}


@mutant("hands on the wrapper's names", caught_by=names)
def train(x, y, epochs):
    return fitted(x, y, epochs, module=False)


@mutant("every rank reads all rows", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="all")


@mutant("every rank reads the same half", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="same")


@mutant("each rank draws its rows by itself", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, share="own")


@mutant("forgets set_epoch", caught_by=shares)
def train(x, y, epochs):
    return fitted(x, y, epochs, orders=False)


@mutant("averages the weights, and that at the end", caught_by=mean)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False, late=dist.all_reduce)


@mutant("every rank gets the weights of rank 0, at the end", caught_by=mean)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False, late=lambda weight: dist.broadcast(weight, 0))


@mutant("another optimizer", caught_by=steps)
def train(x, y, epochs):
    return fitted(x, y, epochs, kind=torch.optim.Adam)


@mutant("no gradients are averaged", caught_by=replicas)
def train(x, y, epochs):
    return fitted(x, y, epochs, average=False)


def export_to(state, path, module=None, train_mode=False, rows=True):
    module = module or Scaled(state)
    module.train(train_mode)
    shapes = ({0: Dim.DYNAMIC},) if rows else None
    program = export(module, (torch.zeros(2, 64),), dynamic_shapes=shapes)
    torch.export.save(program, path)


@mutant("the scaling stays in the training code", caught_by=raw)
def ship(state, path):
    export_to(state, path, Scaled(state).net)


@mutant("exports in training mode", caught_by=raw)
def ship(state, path):
    export_to(state, path, train_mode=True)


@mutant("forgets to load the state", caught_by=raw)
def ship(state, path):
    export_to(state, path, Scaled(plain().state_dict()))


@mutant("frees no dimension", caught_by=dynamic)
def ship(state, path):
    export_to(state, path, rows=False)


def taken(requests, max_batch, wait, renew=False):
    batch = [requests.get()]
    end = time.monotonic() + wait
    while len(batch) < max_batch:
        with contextlib.suppress(queue.Empty):
            left = wait if renew else max(0, end - time.monotonic())
            batch.append(requests.get(timeout=left))
            continue
        break
    return batch


def pixels_of(pixels):
    row = torch.tensor(pixels, dtype=torch.float32)
    if row.shape != (64,):
        raise ValueError("not 64 numbers")
    return row


def answered(program, good):
    with torch.inference_mode():
        labels = program(torch.stack([row for row, _ in good])).argmax(1)
    for (_, answer), label in zip(good, labels, strict=True):
        answer.set_result(label.item())


def checked(batch):
    good = []
    for pixels, answer in batch:
        try:
            good.append((pixels_of(pixels), answer))
        except Exception as error:
            answer.set_exception(ValueError(str(error)))
    return good


@mutant("one call for each request", caught_by=together)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked([requests.get()]):
            answered(program, good)


@mutant("takes what is there, and waits for nobody", caught_by=later)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, max_batch, 0)):
            answered(program, good)


@mutant("waits for a full batch for ever", caught_by=together)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked([requests.get() for _ in range(max_batch)]):
            answered(program, good)


@mutant("knows no largest batch", caught_by=together)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, 2 * max_batch, min(wait, 0.5))):
            answered(program, good)


@mutant("begins to wait before a request is there", caught_by=later)
def work(program, requests, max_batch, wait):
    while True:
        end, batch = time.monotonic() + wait, [requests.get()]
        with contextlib.suppress(queue.Empty):
            while len(batch) < max_batch:
                batch.append(requests.get(timeout=max(0, end - time.monotonic())))
        if good := checked(batch):
            answered(program, good)


@mutant("waits anew after each request", caught_by=later)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, max_batch, wait, renew=True)):
            answered(program, good)


@mutant("gives a tensor in place of an int", caught_by=own)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, max_batch, wait)):
            labels = program(torch.stack([row for row, _ in good])).argmax(1)
            for (_, answer), label in zip(good, labels, strict=True):
                answer.set_result(label)


@mutant("calls the model where nothing is left to ask", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        answered(program, checked(taken(requests, max_batch, wait)))


@mutant("gives every client the first label", caught_by=own)
def work(program, requests, max_batch, wait):
    while True:
        good = checked(taken(requests, max_batch, wait))
        if good:
            label = program(torch.stack([row for row, _ in good])).argmax(1)[0].item()
            for _, answer in good:
                answer.set_result(label)


@mutant("a bad request fails its whole call", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        batch = taken(requests, max_batch, wait)
        try:
            answered(program, [(pixels_of(pixels), answer) for pixels, answer in batch])
        except Exception as error:
            for _, answer in batch:
                answer.set_exception(ValueError(str(error)))


@mutant("sorts out the wrong lengths alone", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        good = []
        for pixels, answer in taken(requests, max_batch, wait):
            if isinstance(pixels, list) and len(pixels) == 64:
                good.append((torch.tensor(pixels, dtype=torch.float32), answer))
            else:
                answer.set_exception(ValueError("not 64 numbers"))
        if good:
            answered(program, good)


@accepted("shares by slices of one order, and a timer that is asked")
def train(x, y, epochs):
    return fitted(x, y, epochs, share="slices")


@accepted("a Sequential with a module for the scaling")
def ship(state, path):
    class Divide(nn.Module):
        def forward(self, x):
            return x.mul(0.0625)

    net = plain()
    net.load_state_dict(state)
    module = nn.Sequential(Divide(), net).eval()
    rows = {"input": {0: Dim("rows", min=1)}}
    program = export(module, (torch.ones(5, 64),), dynamic_shapes=rows)
    torch.export.save(program, path)


@accepted("checks by hand")
def work(program, requests, max_batch, wait):
    while True:
        good = []
        for pixels, answer in taken(requests, max_batch, wait):
            if (
                isinstance(pixels, list)
                and len(pixels) == 64
                and all(isinstance(number, (int, float)) for number in pixels)
            ):
                good.append((torch.tensor([float(n) for n in pixels]), answer))
            else:
                answer.set_exception(ValueError("64 numbers are wanted"))
        if good:
            with torch.no_grad():
                table = program(torch.stack([row for row, _ in good]))
            for at, (_, answer) in enumerate(good):
                answer.set_result(int(table[at].argmax()))


@hinted(1, reaches=replicas)
def train(x, y, epochs):
    torch.manual_seed(0)
    ddp = DistributedDataParallel(plain())
    sampler = DistributedSampler(range(len(x)))
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-3)
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        for rows in torch.tensor(list(sampler)).split(16):
            opt.zero_grad()
            F.cross_entropy(ddp(x[rows] / 16), y[rows]).backward()
            opt.step()
    return ddp.module.state_dict()
