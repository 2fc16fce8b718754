"""Judges lessons/17_deployment/05_inference_server.md."""

import copy
import queue
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import nullcontext
from functools import partial
from pathlib import Path

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
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

background("Calls that may help")

BEATS = 100
"""How often a check looks for what must come, 10 ms apart, before it says that it never will.

Each look needs a turn of the check's thread. So a busy machine, on which the worker waits for its
turn, makes the time longer; and what comes is noticed at once.
"""
MOMENT = 0.03
"""Seconds in which a wrong answer does what is too early. A right answer passes with any."""
ALIVE = "Catch exceptions inside the worker's loop, and give them to the futures of that call."
STUCK = (
    "When `wait` seconds have passed, call the model with what is there; and let no exception end "
    "the worker's loop."
)
ORDER = "This is the row of another request: row i of the answer belongs to request i of the batch."
LOST = (
    "submit looked at `closed`, and then close ran: one lock holds the look and the put together."
)
MODE = "Call model.eval(): in training mode dropout draws, and neighbours change an answer."


class Gated(nn.Module):
    """Takes down what it is called with. As long as `gate` is closed, a call does not end.

    change: called with the number of the call, from 1, and its rows, for other rows to return.
    """

    def __init__(self, features=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3)
        )
        self.gate, self.begun = threading.Event(), threading.Event()
        self.gate.set()
        self.sizes, self.grads, self.threads, self.inputs = [], [], [], []
        self.change = lambda number, rows: rows
        self.client = threading.current_thread()

    def forward(self, x):
        self.sizes.append(len(x))
        self.inputs.append(x.detach().clone())
        number = len(self.sizes)
        self.grads.append(torch.is_grad_enabled())
        self.threads.append(threading.current_thread())
        self.begun.set()
        if threading.current_thread() is not self.client:
            self.gate.wait()
        if x.shape[1:] != (self.body[0].in_features,):
            raise ValueError(f"shape {tuple(x.shape[1:])}")
        return self.change(number, self.body(x))


def came(event, beats=BEATS):
    """Whether an event is set, waited for in so many looks."""
    return any(event.wait(0.01) for _ in range(beats))


def problem(rng, device, gated=False):
    """A model in training mode with statistics of its own, and how to answer right."""
    model = Gated(rng.randint(3, 6)).to(device)
    for _ in range(4):
        model.body(torch.randn(16, model.body[0].in_features, device=device) * 2 + 1)
    plain = copy.deepcopy(model.body).eval()
    if gated:
        model.gate.clear()
    return model, lambda x: plain(x[None])[0].detach()


def asked(model, device, shift=0):
    return torch.randn(model.body[0].in_features + shift, device=device)


def result(future, what, model=None):
    """What a future holds, waited for as long as the worker lives."""
    if not isinstance(future, Future):
        fail(f"submit returned {type(future).__name__}, not a Future")
    done = threading.Event()
    future.add_done_callback(lambda _: done.set())
    for _ in range(BEATS):
        if done.wait(0.01) or (model and model.threads and not model.threads[-1].is_alive()):
            break
    if not future.done():
        dead = model and model.threads and not model.threads[-1].is_alive()
        fail(f"{what} never came", hint=ALIVE if dead else STUCK)
    return future.result()


def ended(thread):
    """Whether a thread comes to its end."""
    for _ in range(BEATS):
        thread.join(0.01)
        if not thread.is_alive():
            return True
    return False


def close(batcher):
    """Close it, in a thread that can be given up."""
    closing = threading.Thread(target=batcher.close, daemon=True)
    closing.start()
    hint = "Wake the worker: put something into the queue that is no request."
    expect_true(ended(closing), "close never returned", hint=hint)


@check(
    "each client gets its own row",
    holds=["Its result is the model's row for x", "as the model answers in eval mode"],
)
def rows(answer, rng, device):
    model, right = problem(rng, device, gated=True)
    batcher = answer.Batcher(model, rng.choice([4, 8]), 0.0)
    inputs = [asked(model, device) for _ in range(rng.randint(6, 20))]
    futures = [batcher.submit(x) for x in inputs]
    model.gate.set()
    for number, (x, future) in enumerate(zip(inputs, futures, strict=True)):
        got = result(future, f"the answer to request {number}", model)
        others = [right(other) for other in inputs if other is not x]
        mixed = isinstance(got, torch.Tensor) and any(
            got.shape == other.shape and torch.allclose(got, other, atol=1e-4) for other in others
        )
        hint = ORDER if mixed else MODE
        expect_close(got.clone(), right(x), atol=1e-4, name=f"the row {number}", hint=hint)


@check("answers have no gradient", holds="it does not require grad")
def gradients(answer, rng, device):
    model, _ = problem(rng, device)
    batcher = answer.Batcher(model, 4, 0.0)
    got = result(batcher.submit(asked(model, device)), "the answer", model)
    hint = "Grad modes belong to a thread: enter inference_mode in the worker."
    expect_true(not got.requires_grad, "the answer requires grad", hint=hint)
    expect_equal(model.grads, [False], name="gradients on in the model's call", hint=hint)


@check(
    "submit returns at once, and one thread calls the model",
    holds=["`submit(x)` returns a Future at once.", "whose one thread calls the model"],
)
def threads(answer, rng, device):
    model, _ = problem(rng, device, gated=True)
    batcher = answer.Batcher(model, 2, 0.0)
    futures = [batcher.submit(asked(model, device)) for _ in range(5)]
    early = any(future.done() for future in futures if isinstance(future, Future))
    model.gate.set()
    expect_true(not early, "a future was done before the model had answered")
    for future in futures:
        result(future, "an answer", model)
    who = set(model.threads)
    expect_true(threading.current_thread() not in who, "the client's thread called the model")
    expect_equal(len(who), 1, name="threads that called the model")


@check(
    "a call takes what waits, up to max_batch",
    holds=[
        "A call has the requests that wait, in the order in which they came",
        "at most `max_batch` of them",
    ],
    both_sides=True,
)
def piled_up(answer, rng, device):
    model, right = problem(rng, device, gated=True)
    most = rng.randint(2, 8)
    batcher = answer.Batcher(model, most, 0.0)
    inputs = [asked(model, device) for _ in range(1 + 2 * most + 1)]
    futures = [batcher.submit(inputs[0])]
    expect_true(came(model.begun), "the model was never called")
    futures += [batcher.submit(x) for x in inputs[1:]]
    model.gate.set()
    for x, future in zip(inputs, futures, strict=True):
        expect_close(result(future, "an answer", model).clone(), right(x), atol=1e-4, hint=MODE)
    hint = f"One request was being served, {2 * most + 1} waited, and max_batch is {most}."
    expect_equal(model.sizes, [1, most, most, 1], name="the rows of each call", hint=hint)
    hint = "Stack the requests in the order in which the queue gave them."
    given = torch.cat(model.inputs)
    expect_close(given, torch.stack(inputs), name="the rows of all calls, in order", hint=hint)


@check(
    "the first request waits for others, and no longer than it has to",
    holds=[
        "The thread waits for more until `max_batch` are there",
        "until `wait` seconds have passed since it took the first",
    ],
    both_sides=True,
)
def waits(answer, rng, device):
    model, _ = problem(rng, device)
    batcher = answer.Batcher(model, 3, 60.0)
    futures = [batcher.submit(asked(model, device))]
    hint = "wait is 60 seconds and max_batch 3: one request alone waits for others."
    expect_true(not model.begun.wait(MOMENT), "the model was called with one request", hint=hint)
    futures += [batcher.submit(asked(model, device)) for _ in range(2)]
    hint = "Three are there, and max_batch is 3: nothing more is to be waited for."
    expect_true(came(model.begun), "the model was not called with a full batch", hint=hint)
    for future in futures:
        result(future, "an answer")
    expect_equal(model.sizes, [3], name="the rows of each call")
    model, _ = problem(rng, device)
    batcher = answer.Batcher(model, 3, 0.02)
    result(batcher.submit(asked(model, device)), "the answer to a request that stayed alone")


@check(
    "the time runs from the first request",
    holds="until `wait` seconds have passed since it took the first",
)
def from_first(answer, rng, device):
    """Others come one after another. A try in which they came too slowly says nothing."""
    for wait in (0.15, 1.0):
        model, _ = problem(rng, device)
        batcher = answer.Batcher(model, 1000, wait)
        first = batcher.submit(asked(model, device))
        start = last = time.monotonic()
        longest = 0.0
        while not first.done() and last < start + 5 * wait:
            time.sleep(wait / 5)
            batcher.submit(asked(model, device))
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        if first.done() and longest < wait:
            return
    text = f"wait is {wait:g} s, and the first waited for {5 * wait:g} s while others came"
    hint = "Note the time when the first is taken; a later get waits for what is left of it."
    expect_true(first.done(), text, hint=hint)


@check(
    "a bad request fails alone",
    holds=[
        "Requests of different shapes are never put into one call.",
        "If a call raises, its requests get that exception, and the thread lives on.",
    ],
    both_sides=True,
)
def bad(answer, rng, device):
    model, right = problem(rng, device, gated=True)
    batcher = answer.Batcher(model, 8, 0.0)
    first = asked(model, device)
    futures = [batcher.submit(first)]
    expect_true(came(model.begun), "the model was never called")
    shapes = [0, 1, 0, 2, 0]
    rng.shuffle(shapes)
    shapes += [2, 0]  # neighbours with as many numbers
    kinds = {0: asked, 1: partial(asked, shift=1), 2: lambda *at: asked(*at)[:, None]}
    inputs = [kinds[kind](model, device) for kind in shapes]
    futures += [batcher.submit(x) for x in inputs]
    model.gate.set()
    for x, shift, future in zip([first, *inputs], [0, *shapes], futures, strict=True):
        try:
            got = result(future, "the answer beside a bad request", model)
        except Exception as error:
            hint = "One had a number too many, one was a column. Sort a batch by x.shape."
            expect_true(shift > 0, f"a good request got {type(error).__name__}", hint=hint)
            name = type(error).__name__
            hint = "set_exception hands over the model's own error."
            expect_equal(name, "ValueError", name="what the bad request got", hint=hint)
        else:
            expect_true(shift == 0, "a bad request got an answer")
            expect_close(got.clone(), right(x), atol=1e-4, hint=MODE)
    again = batcher.submit(first)
    expect_close(
        result(again, "an answer after a bad request", model).clone(), right(first), atol=1e-4
    )


@check(
    "too few rows, and too many",
    holds=(
        "If a call returns another number of rows than it was given, all of its requests get an "
        "exception."
    ),
    both_sides=True,
)
def count(answer, rng, device):
    most = rng.randint(2, 5)
    for what, change in (
        ("one row too few", lambda rows: rows[:-1]),
        ("one row too many", lambda rows: torch.cat([rows, rows[:1]])),
    ):
        model, right = problem(rng, device, gated=True)
        model.change = lambda number, rows, change=change: change(rows) if number == 2 else rows
        batcher = answer.Batcher(model, most, 0.0)
        first = batcher.submit(asked(model, device))
        expect_true(came(model.begun), "the model was never called")
        futures = [batcher.submit(asked(model, device)) for _ in range(most)]
        x = asked(model, device)
        last = batcher.submit(x)  # in the third call: when it is answered, all others must be
        model.gate.set()
        result(first, "an answer", model)
        got = result(last, f"an answer after a call with {what}", model)
        expect_close(got.clone(), right(x), atol=1e-4, hint=MODE)
        hint = f"The model returned {what}. Compare len(rows) before you hand out the first."
        waits = sum(not future.done() for future in futures)
        expect_equal(waits, 0, name="clients that wait for ever", hint=hint)
        served = sum(future.exception() is None for future in futures)
        expect_equal(served, 0, name="requests of that call that got a row", hint=hint)


@check(
    "a cancelled request is left out",
    holds=[
        "A client may cancel its Future.",
        "A request that is cancelled before its call is left out of the call",
        "the others are answered",
        "Once the call has begun, `cancel` returns False.",
    ],
)
def cancelled(answer, rng, device):
    model, right = problem(rng, device, gated=True)
    batcher = answer.Batcher(model, 8, 0.0)
    inputs = [asked(model, device) for _ in range(rng.randint(4, 7))]
    futures = [batcher.submit(inputs[0])]
    expect_true(came(model.begun), "the model was never called")
    futures += [batcher.submit(x) for x in inputs[1:]]
    hint = "Call set_running_or_notify_cancel() of each Future before the call."
    expect_true(not futures[0].cancel(), "a request in the model's call was cancelled", hint=hint)
    gone = rng.sample(futures[1:], rng.randint(1, len(futures) - 2))
    expect_true(all(future.cancel() for future in gone), "a waiting request kept its client")
    model.gate.set()
    for x, future in zip(inputs, futures, strict=True):
        if future not in gone:
            got = result(future, "the answer beside a cancelled request", model)
            expect_close(got.clone(), right(x), atol=1e-4, hint=MODE)
    rows = sum(model.sizes)
    expect_equal(rows, len(inputs) - len(gone), name="rows that were computed", hint=hint)


@check(
    "a request that was taken, and waits for others, can be cancelled",
    holds="A request that is cancelled before its call is left out of the call",
)
def cancelled_while_waiting(answer, rng, device):
    model, right = problem(rng, device)
    batcher = answer.Batcher(model, 3, 60.0)
    first = batcher.submit(asked(model, device))
    for _ in range(15):
        if first.running():
            break
        time.sleep(0.01)
    hint = "Call set_running_or_notify_cancel() when the batch is complete, right before the call."
    text = "a request that waited for others could not be cancelled"
    expect_true(first.cancel(), text, hint=hint)
    inputs = [asked(model, device) for _ in range(3)]
    futures = [batcher.submit(x) for x in inputs]
    got = result(futures[0], "the answer beside a cancelled request", model)
    expect_close(got.clone(), right(inputs[0]), atol=1e-4, hint=MODE)


@check(
    "a call of cancelled requests alone",
    holds="A request that is cancelled before its call is left out of the call",
)
def nobody(answer, rng, device):
    model, right = problem(rng, device, gated=True)
    most = rng.randint(1, 4)
    batcher = answer.Batcher(model, most, 0.0)
    x = asked(model, device)
    futures = [batcher.submit(x)]
    expect_true(came(model.begun), "the model was never called")
    gone = [batcher.submit(x) for _ in range(most)]
    futures.append(batcher.submit(x))
    for future in gone:
        future.cancel()
    model.gate.set()
    for future in futures:
        got = result(future, "an answer after a batch of cancelled requests", model)
        expect_close(got.clone(), right(x), atol=1e-4, hint=MODE)
    hint = "Nobody is left in that batch: nothing is to be computed."
    expect_equal(model.sizes, [1, 1], name="the rows of each call", hint=hint)


@check(
    "close answers all, ends the thread and refuses",
    holds=[
        "returns when all that was submitted is answered and the thread has ended",
        "After it, `submit` raises RuntimeError.",
    ],
)
def closes(answer, rng, device):
    model, _ = problem(rng, device, gated=True)
    batcher = answer.Batcher(model, 2, rng.choice([0.0, 0.05]))
    futures = [batcher.submit(asked(model, device)) for _ in range(5)]
    closing = threading.Thread(target=batcher.close, daemon=True)
    closing.start()
    closing.join(MOMENT)
    early = not closing.is_alive()
    model.gate.set()
    hint = "Join the worker's thread: five requests were not answered yet."
    expect_true(not early, "close returned while the model was at work", hint=hint)
    hint = "Wake the worker: put something into the queue that is no request."
    expect_true(ended(closing), "close never returned", hint=hint)
    left = sum(not future.done() for future in futures)
    expect_equal(left, 0, name="requests without an answer after close")
    (worker,) = set(model.threads)
    expect_true(not worker.is_alive(), "the worker's thread lives on after close")
    says = "submit after close raised nothing"
    with expect_raises(RuntimeError, says, hint="Nobody would ever answer it."):
        batcher.submit(asked(model, device))
    idle = answer.Batcher(model, 2, 0.0)
    close(idle)


class Paused:
    """Calls `function` in a thread that stops in front of its line `number`, and calls `meanwhile`.

    Lines of one file count, from 0. reached: there is such a line. got: the function's result, or
    the exception that it raised.
    """

    def __init__(self, function, number, meanwhile, file):
        self.left, self.meanwhile, self.file = number, meanwhile, file
        self.reached, self.got = False, None
        self.thread = threading.Thread(target=self.run, args=(function,), daemon=True)
        self.thread.start()

    def run(self, function):
        sys.settrace(self.called)
        try:
            self.got = function()
        except Exception as error:
            self.got = error
        finally:
            sys.settrace(None)

    def called(self, frame, event, arg):
        return self.line if frame.f_code.co_filename == self.file else None

    def line(self, frame, event, arg):
        if event == "line" and not self.reached:
            self.reached = self.left == 0
            self.left -= 1
            if self.reached:
                self.meanwhile()
        return self.line


def holds_lock(batcher):
    """Whether the calling thread holds a lock of the batcher's."""
    plain, owned = type(threading.Lock()), (type(threading.RLock()), threading.Condition)
    values = vars(batcher).values()
    return any(
        (isinstance(value, plain) and value.locked())
        or (isinstance(value, owned) and value._is_owned())
        for value in values
    )


def is_asleep(thread):
    """Whether it waits for something other than a processor; True where the system does not say."""
    try:
        status = Path(f"/proc/self/task/{thread.native_id}/stat").read_text()
    except OSError:
        return True
    return status.rpartition(")")[2].split()[0] == "S"


def meet(batcher, first, second, number):
    """Stop `first` in front of its line `number`, and call `second` there.

    What both gave, or None if `first` has no such line.
    """
    other = []

    def meanwhile():
        """To the end of `second`, unless it has to wait for the lock that `first` holds."""
        other.append(Paused(second, -1, None, ""))
        thread, asleep = other[0].thread, 0
        for _ in range(30):
            thread.join(0.01)
            asleep = asleep + 1 if holds_lock(batcher) and is_asleep(thread) else 0
            if not thread.is_alive() or asleep == 2:
                break

    calls = [Paused(first, number, meanwhile, type(batcher).submit.__code__.co_filename)]
    expect_true(ended(calls[0].thread), "submit or close never returned", hint=LOST)
    calls += other
    expect_true(ended(calls[-1].thread), "submit or close never returned", hint=LOST)
    return [call.got for call in calls] if other else None


def expect_answer(future, wanted):
    """What submit gave while close ran: an answer, which is there, or RuntimeError."""
    if isinstance(future, RuntimeError):
        return
    if not isinstance(future, Future):
        fail(f"submit gave {type(future).__name__} while close ran")
    expect_true(future.done(), "submit and close met, and the client waits for ever", hint=LOST)
    expect_close(future.result().clone(), wanted, atol=1e-4, hint=MODE)


LINES = 20
"""How many lines of submit and of close are tried at most."""


@check(
    "close runs within submit",
    holds="A `submit` in another thread, while `close` runs, is answered or raises RuntimeError.",
    side="close within submit",
)
def closed_within(answer, rng, device):
    model, right = problem(rng, device)
    x = asked(model, device)
    for number in range(LINES):
        batcher = answer.Batcher(model, 4, 0.0)
        got = meet(batcher, partial(batcher.submit, x), batcher.close, number)
        if got is None:
            close(batcher)
            return
        expect_answer(got[0], right(x))


@check(
    "submit runs within close",
    holds="A `submit` in another thread, while `close` runs, is answered or raises RuntimeError.",
    side="submit within close",
)
def submitted_within(answer, rng, device):
    model, right = problem(rng, device)
    x = asked(model, device)
    for number in range(LINES):
        batcher = answer.Batcher(model, 4, 0.0)
        got = meet(batcher, batcher.close, partial(batcher.submit, x), number)
        if got is None:
            return
        expect_answer(got[1], right(x))


class Base:
    """A right batcher, from which wrong ones differ in a method."""

    def __init__(self, model, max_batch, wait):
        self.model, self.max_batch, self.wait = model.eval(), max_batch, wait
        self.requests, self.closed, self.lock = queue.Queue(), False, threading.Lock()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def submit(self, x):
        answer = Future()
        with self.lock:
            if self.closed:
                raise RuntimeError("closed")
            self.requests.put((x, answer))
        return answer

    def take(self):
        batch = [self.requests.get()]
        end = time.monotonic() + self.wait
        while batch[-1] is not None and len(batch) < self.max_batch:
            try:
                batch.append(self.requests.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                break
        return batch

    def work(self):
        batch = []
        while None not in batch:
            batch = self.take()
            self.serve([one for one in batch if one is not None])

    def serve(self, batch):
        groups = {}
        for x, answer in batch:
            groups.setdefault(tuple(x.shape), []).append((x, answer))
        for group in groups.values():
            self.call(group)

    def call(self, group):
        group = self.begin(group)
        if not group:
            return
        try:
            rows = self.rows(torch.stack([x for x, _ in group]))
            if len(rows) != len(group):
                raise RuntimeError("another number of rows")
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)
        else:
            self.hand_out(group, rows)

    def begin(self, group):
        return [(x, answer) for x, answer in group if answer.set_running_or_notify_cancel()]

    def rows(self, x):
        with torch.inference_mode():
            return self.model(x)

    def hand_out(self, group, rows):
        for (_, answer), row in zip(group, rows, strict=True):
            answer.set_result(row)

    def close(self):
        with self.lock:
            self.closed = True
            self.requests.put(None)
        self.thread.join()


@mutant("hands the rows out in reverse", caught_by=rows)
class Batcher(Base):
    def hand_out(self, group, rows):
        super().hand_out(group, rows.flip(0))


@mutant("leaves the model in training mode", caught_by=rows)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        super().__init__(model, max_batch, wait)
        model.train()


@mutant("keeps the batch dimension", caught_by=rows)
class Batcher(Base):
    def hand_out(self, group, rows):
        super().hand_out(group, rows[:, None])


@mutant("answers with gradients", caught_by=gradients)
class Batcher(Base):
    def rows(self, x):
        return self.model(x)


@mutant("detaches, and computes the graph all the same", caught_by=gradients)
class Batcher(Base):
    def rows(self, x):
        return self.model(x).detach()


@mutant("enters inference_mode where the thread is started", caught_by=gradients)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        with torch.inference_mode():
            super().__init__(model, max_batch, wait)

    def rows(self, x):
        return self.model(x)


@mutant("calls the model in submit", caught_by=threads)
class Batcher(Base):
    def submit(self, x):
        if self.closed:
            raise RuntimeError("closed")
        answer = Future()
        self.call([(x, answer)])
        return answer


@mutant("starts a thread for each batch", caught_by=threads)
class Batcher(Base):
    def serve(self, batch):
        if batch:
            threading.Thread(target=super().serve, args=(batch,), daemon=True).start()


@mutant("one call for each request", caught_by=piled_up)
class Batcher(Base):
    def take(self):
        return [self.requests.get()]


@mutant("takes all that waits", caught_by=piled_up)
class Batcher(Base):
    def take(self):
        batch = super().take()
        while batch[-1] is not None and not self.requests.empty():
            batch.append(self.requests.get())
        return batch


@mutant("never waits", caught_by=waits)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        super().__init__(model, max_batch, 0.0)


@mutant("waits for a full batch for ever", caught_by=waits)
class Batcher(Base):
    def take(self):
        batch = [self.requests.get()]
        while batch[-1] is not None and len(batch) < self.max_batch:
            if self.wait == 0 and self.requests.empty():
                break
            batch.append(self.requests.get())
        return batch


@mutant("sleeps for wait, and then looks", caught_by=waits)
class Batcher(Base):
    def take(self):
        batch = [self.requests.get()]
        time.sleep(self.wait)
        while batch[-1] is not None and len(batch) < self.max_batch:
            if self.requests.empty():
                break
            batch.append(self.requests.get())
        return batch


@mutant("stacks a batch from the last request to the first", caught_by=piled_up)
class Batcher(Base):
    def take(self):
        batch = super().take()
        return batch if batch[-1] is None else batch[::-1]


@mutant("waits anew after each request", caught_by=from_first)
class Batcher(Base):
    def take(self):
        batch = [self.requests.get()]
        while batch[-1] is not None and len(batch) < self.max_batch:
            try:
                batch.append(self.requests.get(timeout=self.wait))
            except queue.Empty:
                break
        return batch


@mutant("tells shapes apart by how many numbers they have", caught_by=bad)
class Batcher(Base):
    def serve(self, batch):
        groups = {}
        for x, answer in batch:
            groups.setdefault(x.numel(), []).append((x, answer))
        for group in groups.values():
            self.call(group)


@mutant("locks a request against cancel when it is taken", caught_by=cancelled_while_waiting)
class Batcher(Base):
    def take(self):
        batch = [self.requests.get()]
        end = time.monotonic() + self.wait
        while True:
            if batch[-1] is not None and not batch[-1][1].set_running_or_notify_cancel():
                batch[-1] = (batch[-1][0], None)
            if batch[-1] is None or len(batch) == self.max_batch:
                break
            try:
                batch.append(self.requests.get(timeout=max(0, end - time.monotonic())))
            except queue.Empty:
                break
        return [one for one in batch if one is None or one[1] is not None]

    def begin(self, group):
        return group


@mutant("stacks strangers: one bad request fails all", caught_by=bad)
class Batcher(Base):
    def serve(self, batch):
        if batch:
            self.call(batch)


@mutant("dies of the first error", caught_by=bad)
class Batcher(Base):
    def call(self, group):
        group = self.begin(group)
        self.hand_out(group, self.rows(torch.stack([x for x, _ in group])))


@mutant("gives None where the model raises", caught_by=bad)
class Batcher(Base):
    def rows(self, x):
        try:
            return super().rows(x)
        except Exception:
            return [None] * len(x)


@mutant("hands out as many rows as there are", caught_by=count)
class Batcher(Base):
    def call(self, group):
        group = self.begin(group)
        try:
            for (_, answer), row in zip(group, self.rows(torch.stack([x for x, _ in group]))):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)


@mutant("notices missing rows when some are handed out", caught_by=count)
class Batcher(Base):
    def call(self, group):
        group = self.begin(group)
        try:
            self.hand_out(group, self.rows(torch.stack([x for x, _ in group])))
        except Exception as error:
            for _, answer in group:
                if not answer.done():
                    answer.set_exception(error)


@mutant("cuts off the rows that are too many", caught_by=count)
class Batcher(Base):
    def call(self, group):
        self.length = len(group)
        super().call(group)

    def rows(self, x):
        return super().rows(x)[: self.length]


@mutant("a cancelled Future kills the worker", caught_by=cancelled)
class Batcher(Base):
    def begin(self, group):
        return group


@mutant("sorts out who is cancelled, and lets them cancel later", caught_by=cancelled)
class Batcher(Base):
    def begin(self, group):
        return [(x, answer) for x, answer in group if not answer.cancelled()]


@mutant("computes the rows of the cancelled", caught_by=cancelled)
class Batcher(Base):
    def begin(self, group):
        self.alive = [answer.set_running_or_notify_cancel() for _, answer in group]
        return group

    def hand_out(self, group, rows):
        for (_, answer), row, alive in zip(group, rows, self.alive, strict=True):
            if alive:
                answer.set_result(row)


@mutant("ends when nobody is left in a batch", caught_by=nobody)
class Batcher(Base):
    def serve(self, batch):
        super().serve(batch)
        if batch and all(answer.cancelled() for _, answer in batch):
            raise SystemExit


@mutant("close does not wait", caught_by=closes)
class Batcher(Base):
    def close(self):
        with self.lock:
            self.closed = True
            self.requests.put(None)


@mutant("close only sets a flag: the worker sleeps on", caught_by=closes)
class Batcher(Base):
    def work(self):
        while not self.closed:
            self.serve(self.take())


@mutant("drops what waits when it closes", caught_by=closes)
class Batcher(Base):
    def work(self):
        batch = []
        while None not in batch and not self.closed:
            batch = self.take()
            self.serve([one for one in batch if one is not None])


@mutant("takes requests after close", caught_by=closes)
class Batcher(Base):
    def submit(self, x):
        answer = Future()
        self.requests.put((x, answer))
        return answer


@mutant("no lock", caught_by=closed_within)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        super().__init__(model, max_batch, wait)
        self.lock = nullcontext()


@mutant("locks the look, and not the put", caught_by=closed_within)
class Batcher(Base):
    def submit(self, x):
        with self.lock:
            if self.closed:
                raise RuntimeError("closed")
        answer = Future()
        self.requests.put((x, answer))
        return answer


@mutant("close does not lock", caught_by=closed_within)
class Batcher(Base):
    def close(self):
        self.closed = True
        self.requests.put(None)
        self.thread.join()


@mutant("says that it is closed when the thread has ended", caught_by=submitted_within)
class Batcher(Base):
    def close(self):
        with self.lock:
            self.requests.put(None)
        self.thread.join()
        self.closed = True


@accepted("a list and a condition")
class Batcher:
    def __init__(self, model, max_batch, wait):
        self.model, self.most, self.wait = model.eval(), max_batch, wait
        self.queue, self.news, self.open = [], threading.Condition(), True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def submit(self, x):
        answer = Future()
        with self.news:
            if not self.open:
                raise RuntimeError("closed")
            self.queue.append((x, answer))
            self.news.notify()
        return answer

    def run(self):
        while True:
            with self.news:
                self.news.wait_for(lambda: self.queue or not self.open)
                if not self.queue:
                    return
                self.news.wait_for(lambda: len(self.queue) >= self.most or not self.open, self.wait)
                batch, self.queue = self.queue[: self.most], self.queue[self.most :]
            for shape in {one[0].shape for one in batch}:
                self.call([one for one in batch if one[0].shape == shape])

    @torch.no_grad()
    def call(self, group):
        group = [one for one in group if one[1].set_running_or_notify_cancel()]
        if group:
            try:
                x = torch.stack([x for x, _ in group])
                found = list(zip(group, self.model(x).unbind(), strict=True))
            except Exception as error:
                for _, answer in group:
                    answer.set_exception(error)
            else:
                for (_, answer), row in found:
                    answer.set_result(row)

    def close(self):
        with self.news:
            self.open = False
            self.news.notify()
        self.thread.join()


@accepted("rows that are cloned, cut off at the first request of another shape")
class Batcher(Base):
    def serve(self, batch):
        while batch:
            shape = batch[0][0].shape
            same = [one for one in batch if one[0].shape == shape]
            batch = [one for one in batch if one[0].shape != shape]
            self.call(same)


@hinted(1, reaches=piled_up)
class Batcher(Base):
    def take(self):
        batch = [self.requests.get()]
        while batch[-1] is not None and len(batch) < self.max_batch and self.requests.qsize():
            batch.append(self.requests.get())
        return batch
