"""Judges lessons/18_capstones/03_ship_it.md."""

import contextlib
import http.client
import json
import os
import queue
import tempfile
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)
from tensortutor.lab import data

background("Write `train`, `ship` and `work`.", "The check has a client")

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


def watched(answer, x, y, epochs):
    """The state that train returns, and the numbers of the rows that the net saw in training."""
    seen = []

    def note(module, args):
        if isinstance(module, nn.Linear) and module.in_features == 64 and module.training:
            first = args[0].detach().reshape(-1, 64)
            if first.shape[0] and torch.is_grad_enabled() and module.out_features == 64:
                seen.extend(torch.cdist(first, x / 16).argmin(1).tolist())

    handle = register_module_forward_pre_hook(note)
    try:
        state = attempt(lambda: answer.train(x, y, epochs))
    finally:
        handle.remove()
    return state, seen


@check("the state fits net()", holds="`net()` can load it")
def names(answer, rng, device):
    x, y, *_ = digits(rng, 2 * rng.randint(10, 20))
    state = attempt(lambda: answer.train(x, y, 1))
    wanted = sorted(answer.net().state_dict())
    expect_equal(sorted(state), wanted, name="the names of the state", hint=NAMES)


@check(
    "together the ranks read all rows, each a half",
    holds=[
        "is called on all ranks with the same rows",
        "In every epoch the ranks together read all rows, and each rank reads one half.",
    ],
    both_sides=True,
)
def shares(answer, rng, device):
    count, epochs = 2 * rng.randint(15, 30), 2
    x, y, *_ = digits(rng, count)
    _, seen = watched(answer, x, y, epochs)
    every = everywhere(seen)
    half = count // 2
    for rank, numbers in enumerate(every):
        what = f"rows that rank {rank} read in {epochs} epochs of {count} rows"
        expect_equal(len(numbers), epochs * half, name=what, hint=SHARES)
    for epoch in range(epochs):
        numbers = [n for of in every for n in of[epoch * half : (epoch + 1) * half]]
        what = f"different rows that were read in epoch {epoch}, of {count}"
        expect_equal(len(set(numbers)), count, name=what, hint=SHARES)


@check("each epoch has an order of its own", holds="The order is another one in each epoch.",
       both_sides=True)  # fmt: skip
def orders(answer, rng, device):
    count = 2 * rng.randint(15, 30)
    x, y, *_ = digits(rng, count)
    _, seen = watched(answer, x, y, 3)
    half = count // 2
    parts = [tuple(seen[at : at + half]) for at in range(0, 3 * half, half)]
    different = min(len(set(of)) for of in everywhere(parts))
    expect_equal(different, 3, name="different orders in three epochs", hint=ORDER)


@check("all ranks have one state", holds="All ranks return the same state")
def replicas(answer, rng, device):
    x, y, *_ = digits(rng, 2 * rng.randint(20, 40))
    torch.manual_seed(rng.randrange(1000) + dist.get_rank())
    state = attempt(lambda: answer.train(x, y, 2))
    every = everywhere({name: t.detach().clone() for name, t in state.items()})
    for name in every[0]:
        apart = (every[0][name] - every[1][name]).abs().max().item()
        message = f"{name} differs by {apart:.3g} between the ranks"
        expect_true(apart < 1e-6, message, hint=APART)


def good_state(answer, rng):
    """Of a Net, as a rank would have trained it."""
    torch.manual_seed(rng.randrange(1000))
    return {name: t.detach().clone() * 2 for name, t in answer.net().state_dict().items()}


@contextlib.contextmanager
def place(name):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)


@check(
    "the file takes raw pixels and answers in eval mode",
    holds=[
        "takes raw pixels, from 0 to 16",
        "It gives the scores that `net()` has in eval mode for pixels / 16.",
    ],
)
def raw(answer, rng, device):
    state = good_state(answer, rng)
    x = torch.rand(2, 64) * 16
    with place("a.pt2") as path:
        answer.ship(state, path)
        program = torch.export.load(path).module()
    with torch.no_grad():
        one, two = program(x), program(x)
    same = torch.equal(one, two)
    expect_true(same, "two calls of the program with the same rows differ", hint=EVAL)
    expect_close(one, scores(state, x), atol=1e-4, name="the program's scores", hint=SCALE)


@check("the file takes any number of rows", holds="It takes any number of rows, from one.",
       both_sides=True)  # fmt: skip
def dynamic(answer, rng, device):
    state = good_state(answer, rng)
    with place("a.pt2") as path:
        answer.ship(state, path)
        program = torch.export.load(path).module()
    for count in (1, 2, rng.randint(3, 9), 40):
        x = torch.rand(count, 64) * 16
        try:
            with torch.no_grad():
                got = program(x)
        except AssertionError as error:
            fail(f"the program refuses {count} rows: {str(error)[:80]}", hint=ROWS)
        expect_close(got, scores(state, x), atol=1e-4, name=f"scores of {count} rows", hint=SCALE)


class Counts(nn.Module):
    """Says how many rows its call had, up to 9: the score of that label is the highest."""

    def forward(self, x):
        here = -(torch.arange(10) - x.shape[0]).abs().float()
        return here.expand(x.shape[0], 10)


class Echo(nn.Module):
    """Each row's label is the place of the largest among its first ten numbers."""

    def forward(self, x):
        return x[:, :10] * 1.0


@contextlib.contextmanager
def serving(answer, module, max_batch, wait, path=None):
    """The port of a server that hands requests to the learner's work, in a thread of its own.

    module: what is exported and served; path: a file that is served in its place.
    """
    with place("b.pt2") as made:
        if path is None:
            rows = ({0: Dim.DYNAMIC},)
            program = export(module, (torch.zeros(2, 64),), dynamic_shapes=rows)
            torch.export.save(program, made)
        program = torch.export.load(path or made).module()
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


def labelled(rng, label):
    """Pixels to which Echo answers label."""
    pixels = [round(rng.random() * 8, 3) for _ in range(64)]
    pixels[label] = 16.0
    return pixels


@check(
    "each client gets the label of its own pixels",
    holds="The result of a request is its label, an int.",
)
def own(answer, rng, device):
    labels = [rng.randrange(10) for _ in range(12)]
    with serving(answer, Echo(), 4, 0.01) as port:
        got = ask_all(port, [labelled(rng, label) for label in labels])
        after = ask(port, labelled(rng, 3))
    expect_equal(got, [(200, label) for label in labels], name="status and label of 12 clients")
    expect_equal(after, (200, 3), name="a later request")


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
    with serving(answer, Counts(), most, 6 * LONG) as port:
        got = ask_all(port, [[0.5] * 64 for _ in range(2 * most)])
    sizes = [label for _, label in got]
    what = f"rows in the calls of {2 * most} clients, where max_batch is {most}"
    expect_equal(sizes, [most] * (2 * most), name=what, hint=BATCH)
    with serving(answer, Counts(), 8, 0.02) as port:
        got = ask(port, [0.5] * 64)
    expect_equal(got, (200, 1), name="the answer to a client that stayed alone", hint=BATCH)


@check(
    "a bad request is answered, and harms nobody",
    holds=[
        "A request that is not a list of 64 numbers gets a ValueError",
        "no other request is harmed by it",
        "Nothing ends `work`.",
    ],
    both_sides=True,
)
def bad(answer, rng, device):
    kinds = ["seven", None, {"pixels": 3}, 5, [[1.0] * 64]]
    for wrong in (rng.choice(kinds), [1.0] * rng.choice([0, 1, 63, 65]), ["a"] * 64):
        labels = [rng.randrange(10) for _ in range(3)]
        bodies = [labelled(rng, label) for label in labels]
        bodies.insert(rng.randrange(4), wrong)
        with serving(answer, Echo(), 4, 6 * LONG) as port:
            got = ask_all(port, bodies)
            first = next(got[n][0] for n, body in enumerate(bodies) if body is wrong)
            others = [of for of, body in zip(got, bodies, strict=True) if body is not wrong]
            what = f"status of the request {str(wrong)[:20]!r}"
            expect_equal(first, 400, name=what, hint=ALONE)
            what = "status and label of the three in the same call"
            expect_equal(others, [(200, label) for label in labels], name=what, hint=ALONE)
            again = ask_all(port, bodies)
    expect_equal([s for s, _ in again].count(200), 3, name="later good requests", hint=ALONE)


@check(
    "digits: from the ranks through the file to a client",
    holds="writes an exported program",
)
def chain(answer, rng, device):
    x, y, new, wanted = digits(rng, 1400)
    state = attempt(lambda: answer.train(x, y, 3))
    with place("digits.pt2") as path:
        answer.ship(state, path)
        with serving(answer, None, 8, 0.01, path) as port:
            got = ask_all(port, new[:40].tolist())
    labels = [label if status == 200 else -1 for status, label in got]
    right = scores(state, new[:40]).argmax(1).tolist()
    differ = sum(a != b for a, b in zip(labels, right, strict=True))
    expect_equal(differ, 0, name="served labels that are not those of the state", hint=SCALE)
    part = (torch.tensor(labels) == wanted[:40]).float().mean().item()
    expect_true(part > 0.75, f"the accuracy behind the server is {part:.2f}", hint=APART)


def plain():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))


class Scaled(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.net = plain()
        self.net.load_state_dict(state)

    def forward(self, x):
        return self.net(x / 16)


def fitted(x, y, epochs, share="sampler", orders=True, average=True, module=True, seed=True):
    """train, with parts left out."""
    if seed:
        torch.manual_seed(0)
    net = plain()
    ddp = DistributedDataParallel(net) if average else net
    opt = torch.optim.AdamW(ddp.parameters(), lr=5e-3)
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


@mutant("forgets set_epoch", caught_by=orders)
def train(x, y, epochs):
    return fitted(x, y, epochs, orders=False)


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


@mutant("takes what is there, and waits for nobody", caught_by=together)
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
