"""Judges lessons/17_deployment/05_inference_server.md."""

import copy
import queue
import threading
import time
from concurrent.futures import Future, wait

import torch
from torch import nn

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

background("Calls that may help")

LONG = 10.0
"""Seconds after which an answer will not come any more."""
ALIVE = "Catch exceptions inside the worker's loop, and give them to the futures of that call."
MODE = "Call model.eval(): in training mode dropout draws, and neighbours change an answer."


class Gated(nn.Module):
    """Takes down what it is called with. As long as `gate` is closed, a call does not end."""

    def __init__(self, features=4):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, 6), nn.BatchNorm1d(6), nn.Dropout(0.5), nn.Linear(6, 3)
        )
        self.gate, self.begun = threading.Event(), threading.Event()
        self.gate.set()
        self.sizes, self.grads, self.threads = [], [], []
        self.client = threading.current_thread()

    def forward(self, x):
        self.sizes.append(len(x))
        self.grads.append(torch.is_grad_enabled())
        self.threads.append(threading.current_thread())
        self.begun.set()
        if threading.current_thread() is not self.client:
            self.gate.wait(LONG)
        if x.shape[1] != self.body[0].in_features:
            raise ValueError(f"{x.shape[1]} numbers")
        return self.body(x)


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
    end = time.monotonic() + LONG
    while not future.done() and time.monotonic() < end:
        wait([future], 0.1)
        if model is not None and model.threads and not model.threads[-1].is_alive():
            wait([future], 0.1)
            break
    if not future.done():
        fail(f"{what} never came", hint=ALIVE)
    return future.result()


def close(batcher):
    """Close it, in a thread that can be given up."""
    closing = threading.Thread(target=batcher.close, daemon=True)
    closing.start()
    closing.join(LONG)
    hint = "Wake the worker: put something into the queue that is no request."
    expect_true(not closing.is_alive(), "close never returned", hint=hint)


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
        expect_close(got.clone(), right(x), atol=1e-4, name=f"the row {number}", hint=MODE)


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
    expect_true(model.begun.wait(LONG), "the model was never called")
    futures += [batcher.submit(x) for x in inputs[1:]]
    model.gate.set()
    for x, future in zip(inputs, futures, strict=True):
        expect_close(result(future, "an answer", model).clone(), right(x), atol=1e-4, hint=MODE)
    hint = f"One request was being served, {2 * most + 1} waited, and max_batch is {most}."
    expect_equal(model.sizes, [1, most, most, 1], name="the rows of each call", hint=hint)


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
    batcher = answer.Batcher(model, 3, 6 * LONG)
    futures = [batcher.submit(asked(model, device))]
    hint = "wait is 60 seconds and max_batch 3: one request alone waits for others."
    expect_true(not model.begun.wait(0.2), "the model was called with one request", hint=hint)
    futures += [batcher.submit(asked(model, device)) for _ in range(2)]
    hint = "Three are there, and max_batch is 3: nothing more is to be waited for."
    expect_true(model.begun.wait(LONG), "the model was not called with a full batch", hint=hint)
    for future in futures:
        result(future, "an answer")
    expect_equal(model.sizes, [3], name="the rows of each call")
    model, _ = problem(rng, device)
    batcher = answer.Batcher(model, 3, 0.05)
    result(batcher.submit(asked(model, device)), "the answer to a request that stayed alone")


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
    expect_true(model.begun.wait(LONG), "the model was never called")
    shapes = [0, 1, 0, 1, 0]
    rng.shuffle(shapes)
    inputs = [asked(model, device, shift) for shift in shapes]
    futures += [batcher.submit(x) for x in inputs]
    model.gate.set()
    for x, shift, future in zip([first, *inputs], [0, *shapes], futures, strict=True):
        try:
            got = result(future, "the answer beside a bad request", model)
        except Exception as error:
            hint = "One request had a number too many. Sort a batch by shape."
            expect_true(shift == 1, f"a good request got {type(error).__name__}", hint=hint)
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
    closing.join(0.2)
    early = not closing.is_alive()
    model.gate.set()
    hint = "Join the worker's thread: five requests were not answered yet."
    expect_true(not early, "close returned while the model was at work", hint=hint)
    closing.join(LONG)
    hint = "Wake the worker: put something into the queue that is no request."
    expect_true(not closing.is_alive(), "close never returned", hint=hint)
    left = sum(not future.done() for future in futures)
    expect_equal(left, 0, name="requests without an answer after close")
    (worker,) = set(model.threads)
    expect_true(not worker.is_alive(), "the worker's thread lives on after close")
    try:
        batcher.submit(asked(model, device))
    except RuntimeError:
        pass
    else:
        fail("submit after close raised nothing", hint="Nobody would ever answer it.")
    idle = answer.Batcher(model, 2, 0.0)
    close(idle)


class Base:
    """A right batcher, from which wrong ones differ in a method."""

    def __init__(self, model, max_batch, wait):
        self.model, self.max_batch, self.wait = model.eval(), max_batch, wait
        self.requests, self.closed = queue.Queue(), False
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def submit(self, x):
        if self.closed:
            raise RuntimeError("closed")
        answer = Future()
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
        try:
            with torch.inference_mode():
                rows = self.model(torch.stack([x for x, _ in group]))
            for (_, answer), row in zip(group, rows, strict=True):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)

    def close(self):
        self.closed = True
        self.requests.put(None)
        self.thread.join()


@mutant("hands the rows out in reverse", caught_by=rows)
class Batcher(Base):
    def call(self, group):
        super().call([*group])
        answers = [answer for _, answer in group]
        if len(group) > 1 and all(a.exception() is None for a in answers):
            first, last = answers[0].result(), answers[-1].result()
            answers[0]._result, answers[-1]._result = last, first


@mutant("leaves the model in training mode", caught_by=rows)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        super().__init__(model, max_batch, wait)
        model.train()


@mutant("keeps the batch dimension", caught_by=rows)
class Batcher(Base):
    def call(self, group):
        try:
            with torch.inference_mode():
                found = self.model(torch.stack([x for x, _ in group]))
            for n, (_, answer) in enumerate(group):
                answer.set_result(found[n : n + 1])
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)


@mutant("answers with gradients", caught_by=gradients)
class Batcher(Base):
    def call(self, group):
        try:
            found = self.model(torch.stack([x for x, _ in group]))
            for (_, answer), row in zip(group, found, strict=True):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)


@mutant("detaches, and computes the graph all the same", caught_by=gradients)
class Batcher(Base):
    def call(self, group):
        try:
            found = self.model(torch.stack([x for x, _ in group])).detach()
            for (_, answer), row in zip(group, found, strict=True):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)


@mutant("enters inference_mode where the thread is started", caught_by=gradients)
class Batcher(Base):
    def __init__(self, model, max_batch, wait):
        with torch.inference_mode():
            super().__init__(model, max_batch, wait)

    def call(self, group):
        try:
            found = self.model(torch.stack([x for x, _ in group]))
            for (_, answer), row in zip(group, found, strict=True):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)


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


@mutant("stacks strangers: one bad request fails all", caught_by=bad)
class Batcher(Base):
    def serve(self, batch):
        if batch:
            self.call(batch)


@mutant("dies of the first error", caught_by=bad)
class Batcher(Base):
    def call(self, group):
        with torch.inference_mode():
            found = self.model(torch.stack([x for x, _ in group]))
        for (_, answer), row in zip(group, found, strict=True):
            answer.set_result(row)


@mutant("gives None where the model raises", caught_by=bad)
class Batcher(Base):
    def call(self, group):
        try:
            with torch.inference_mode():
                found = self.model(torch.stack([x for x, _ in group]))
        except Exception:
            found = [None] * len(group)
        for (_, answer), row in zip(group, found, strict=True):
            answer.set_result(row)


@mutant("close does not wait", caught_by=closes)
class Batcher(Base):
    def close(self):
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
        try:
            for (_, answer), row in zip(
                group, self.model(torch.stack([x for x, _ in group])).unbind(), strict=True
            ):
                answer.set_result(row)
        except Exception as error:
            for _, answer in group:
                answer.set_exception(error)

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
