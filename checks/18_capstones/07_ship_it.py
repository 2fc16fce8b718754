"""Judges lessons/18_capstones/07_ship_it.md."""

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
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)
from tensortutor.lab import data

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

NO_ANSWER = "no answer"
PAUSE = 0.02
"""Seconds between requests that come one after the other."""
LONG = 10.0
"""Seconds after which an answer will not come any more."""

APART = "Wrap the net in DistributedDataParallel, and call the wrapper."
SCALE = "The division by 16 belongs into the exported module's forward."
AS_SENT = "work hands on the pixels as they were sent: the exported program divides by 16."
BATCH = "Collect requests until max_batch are there or wait seconds have passed, then call once."
OWN = (
    "Each of these requests is a list of 64 numbers, ints or floats of any size. Make float32 of "
    "them, and give each Future the place of the largest score in its own row."
)
ALONE = "Look at each request by itself before you stack, and set the exception of its Future."


def on_rank_0(test):
    """Decorate a check: rank 0 alone ships and serves, and tries what it wrote."""

    @functools.wraps(test)
    def done(answer, rng, device):
        if dist.get_rank() == 0:
            test(answer, rng, device)

    return done


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
    """Decorate work(...): what it made of an answer is kept for other checks and seeds."""
    results = {}

    @functools.wraps(work)
    def done(*told):
        key = tuple(inspect.unwrap(of) if callable(of) else of for of in told)
        if key not in results:
            results[key] = work(*told)
        return results[key]

    return done


@contextlib.contextmanager
def place(name):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)


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
            hint = BATCH if said == NO_ANSWER else hint
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
                end = min(end, time.monotonic() + LONG / 10)
                self.line.stuck = False
            wait_for([future], 0.02)
        if not future.done():
            self.patient = False  # the others are not waited for as well
            return Trouble(NO_ANSWER if self.thread.is_alive() else self.ended)
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
        pixels[(label - 1) % 10], pixels[label] = 8.25, 8.75  # of whole numbers both are 8
    return pixels


@check(
    "each client gets the label of its own pixels",
    holds="The result of a request is its label, an int.",
    both_sides=True,
)
@on_rank_0
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
@on_rank_0
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
@on_rank_0
def later(answer, rng, device):
    wait, worker = 6 * LONG, Worker(answer, 3, 6 * LONG)
    line = worker.line
    line.asked.wait(LONG)
    time.sleep(PAUSE)  # none of it counts: wait begins with the first request
    futures = [worker.ask([0.5] * 64)]
    for _ in range(2):
        worker.taken()
        time.sleep(PAUSE)
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
        message = (
            f"after {PAUSE} seconds a get was to wait {waited:.3f} seconds, and wait is {wait}"
        )
        expect_true(waited <= wait - 0.8 * PAUSE, message, hint=hint)


@check(
    "a bad request is answered, and harms nobody",
    holds=[
        "A request that is not a list of 64 numbers gets a ValueError",
        "no other request is harmed by it",
        "`True` and `False` are no numbers here.",
        "Whatever a request holds as pixels, `work` goes on.",
    ],
    both_sides=True,
)
@on_rank_0
def bad(answer, rng, device):
    kinds = ["seven", None, {"pixels": 3}, 5, [[1.0] * 64], [[1.0]] * 64, [], [1.0], [1.0] * 63]
    kinds += [[1.0] * 65, ["a"] * 64, [1.0] * 63 + [None], [1.0] * 63 + ["16"]]
    kinds += [[True] * 64, [1.0] * 63 + [False], (1.0,) * 64]
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
    worker = Worker(answer, 2, 6 * LONG, [[10**400] * 64, labelled(rng, 5)])
    expect_labels([worker.said(worker.asked[1])], [5], "a client beside numbers of 1e400", ALONE)
    got = str(worker.said(worker.asked[0]))
    expect_true(got != NO_ANSWER, "a client with numbers of 1e400 gets no answer", hint=ALONE)


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
def trained(train):
    """A state of the learner's train, and digits that it did not see."""
    x, y, *new = digits(random.Random(0), 1400)
    return attempt(lambda: train(x, y, 3)), *new


@once
def served(train, ship):
    """The program that ship makes of that state, the digits, their labels by it, its accuracy."""
    state, new, wanted = trained(train)
    with place("digits.pt2") as path:
        ship(state, path)
        program = torch.export.load(path).module()
    right = scores(state, new).argmax(1)
    with torch.no_grad():
        labels = program(new).argmax(1)
    same = (labels == right).float().mean().item()
    expect_true(same > 0.99, f"the file agrees with the net on {same:.0%} of rows", hint=SCALE)
    return program, new, right, (right == wanted).float().mean().item()


@check(
    "digits: from the ranks through the file to a client",
    holds=["A check trains and ships with your program", "and calls it"],
)
def chain(answer, rng, device):
    trained(answer.train)  # by both ranks
    if dist.get_rank() != 0:
        return
    program, new, right, accuracy = served(answer.train, answer.ship)
    expect_true(accuracy > 0.8, f"the accuracy on new digits is {accuracy:.2f}", hint=APART)
    some = rng.sample(range(len(new)), 10)
    with serving(answer, program, 5, 0.01) as port:
        got = ask_all(port, new[some].tolist())
    wanted = [(200, label) for label in right[some].tolist()]
    expect_equal(got, wanted, name="status and label of ten clients", hint=AS_SENT)


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
    if not isinstance(pixels, list) or row.shape != (64,) or bool in map(type, pixels):
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


@mutant("cuts the pixels to whole numbers", caught_by=own)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, max_batch, wait)):
            answered(program, [(row.trunc(), answer) for row, answer in good])


@mutant("divides by 16 once more", caught_by=chain)
def work(program, requests, max_batch, wait):
    while True:
        if good := checked(taken(requests, max_batch, wait)):
            answered(program, [(row / 16, answer) for row, answer in good])


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


@mutant("takes a tuple for a list", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        batch = taken(requests, max_batch, wait)
        if good := checked([(list(pixels) if type(pixels) is tuple else pixels, answer)
                            for pixels, answer in batch]):  # fmt: skip
            answered(program, good)


@mutant("ends at a number that is too large", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        good = []
        for pixels, answer in taken(requests, max_batch, wait):
            numbers = isinstance(pixels, list) and len(pixels) == 64
            if numbers and all(type(number) in (int, float) for number in pixels):
                good.append((torch.tensor([float(n) for n in pixels]), answer))
            else:
                answer.set_exception(ValueError("not 64 numbers"))
        if good:
            answered(program, good)


@mutant("takes True for a number", caught_by=bad)
def work(program, requests, max_batch, wait):
    while True:
        good = []
        for pixels, answer in taken(requests, max_batch, wait):
            try:
                row = torch.tensor(pixels).float()
                good.append((row.reshape(64) if row.dim() == 1 else 1 / 0, answer))
            except Exception as error:
                answer.set_exception(ValueError(str(error)))
        if good:
            answered(program, good)


@accepted("checks by hand")
def work(program, requests, max_batch, wait):
    while True:
        good = []
        for pixels, answer in taken(requests, max_batch, wait):
            if (
                isinstance(pixels, list)
                and len(pixels) == 64
                and all(type(number) in (int, float) for number in pixels)
                and max(map(abs, pixels)) < 2**100
            ):
                good.append((torch.tensor([float(n) for n in pixels]), answer))
            else:
                answer.set_exception(ValueError("64 numbers are wanted"))
        if good:
            with torch.no_grad():
                table = program(torch.stack([row for row, _ in good]))
            for at, (_, answer) in enumerate(good):
                answer.set_result(int(table[at].argmax()))


@accepted("looks at a request before it waits for the next")
def work(program, requests, max_batch, wait):
    def looked_at(pixels, answer):
        try:
            return [(pixels_of(pixels), answer)]
        except Exception:
            answer.set_exception(ValueError("64 numbers, please"))
            return []

    while True:
        pixels, answer = requests.get()
        count, end = 1, time.monotonic() + wait
        good = looked_at(pixels, answer)
        while count < max_batch:
            try:
                request = requests.get(timeout=max(0, end - time.monotonic()))
            except queue.Empty:
                break
            count += 1
            good += looked_at(*request)
        if good:
            answered(program, good)


@hinted(1, reaches=later)
def work(program, requests, max_batch, wait):
    while True:
        batch = taken(requests, max_batch, wait)
        answered(program, [(torch.tensor(pixels).float(), answer) for pixels, answer in batch])
