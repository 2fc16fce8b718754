"""One run: gives the job to a waiting process and turns what comes back into events."""

import contextlib
import hashlib
import hmac
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tensortutor.protocol.assist import Types
from tensortutor.protocol.drawings import DRAWINGS
from tensortutor.protocol.events import (
    CheckStarted,
    Event,
    Finished,
    Judged,
    Notice,
    Output,
    Probed,
    Raised,
    Started,
    Verdict,
    Warned,
    event_from_json,
)
from tensortutor.protocol.framing import ProtocolError, encode
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.lens import (
    LENS,
    Broadcasts,
    Graph,
    Modules,
    Optimizers,
    Profile,
    Tensors,
    Trace,
)
from tensortutor.protocol.setup import (
    Allow,
    Assignment,
    Ended,
    Exited,
    Interrupt,
    Kill,
    message_from_json,
    message_to_json,
)
from tensortutor.protocol.wire import to_wire
from tensortutor.runner.drawings import Drawings
from tensortutor.runner.errors import RunnerError
from tensortutor.runner.sentences import after_ended, after_exited, after_time
from tensortutor.runner.watch import Watch
from tensortutor.runner.zygote import Spare

PATIENCE_S = 1.0
"""Between asking a program to stop and killing it."""
TRIES = 3
"""Waiting processes to try: where a sandbox was killed, they end one after another."""
LOOK_S = 1.0
"""Whether the place still answers is looked at so often."""
FROM_PROGRAM = (
    Started, Output, *DRAWINGS, Raised, Warned, CheckStarted, Verdict, Probed, *LENS,
    Types,
)  # fmt: skip
"""What a program's process may say. Everything else is the host's to say."""
MOST_WARNINGS = 100
"""Warnings of one run that are passed on, those of several ranks together."""
ASKED_FOR = {
    **dict.fromkeys((Trace, Broadcasts), "trace"),
    **dict.fromkeys((Tensors, Modules, Optimizers, Graph), "names"),
    Profile: "profile",
}
"""Which field of `Look` asks for which event."""
TOO_MUCH = "The program has printed {:g} MB, the limit of a run; the rest is counted, not kept."
FORGED = "Something other than the checks reported a result; it does not count."


NEXT_RUN = "The next run asks for it again."
VANISHED = "The program's process was ended from outside."


class NeverBegan(Exception):
    """The waiting process was gone before the program could begin."""


class Run:
    """One run under way. Iterate over it, in one thread, for its events; the last is Finished."""

    def __init__(
        self,
        job: Job,
        take: Callable[[Callable[[], bool], bool], Iterator[Notice | Spare]],
        done: Callable[[tuple[str, ...]], None],
    ) -> None:
        """take: gives a waiting process; asks what it is given whether the run is stopped. Told
        True, it forks one now: what waited has died.

        done: called when all is over, with those of SLOW_MODULES that the
        program has imported.
        """
        self._job = job
        self._take = take
        self._done = done
        self._key = secrets.token_hex(32) if job.judge is not None else ""
        self._stop_asked = threading.Event()
        self._wake, self._wake_end = os.pipe()
        self._lock = threading.Lock()
        self._awake = True
        self._begun = time.monotonic()
        self._kept = 0
        self._dropped = 0
        self._warned = 0
        self._has_started = False
        self._is_forged = False
        self._silence = ""
        self._modules: tuple[str, ...] = ()
        self._said: set[tuple[type, object]] = set()
        self._error: Raised | None = None
        self._verdicts: dict[str, bool] = {}
        self._drawings = Drawings()

    def stop(self) -> None:
        """Stop the program: KeyboardInterrupt first, a kill when that does not help."""
        self._stop_asked.set()
        with self._lock:
            if self._awake:
                os.write(self._wake_end, b"!")

    def __iter__(self) -> Iterator[Event]:
        try:
            yield from self._events()
        finally:
            with self._lock:
                self._awake = False
                os.close(self._wake)
                os.close(self._wake_end)
            self._done(self._modules)

    def _events(self) -> Iterator[Event]:
        # What waited may have died just now. As long as nothing has begun, another may serve.
        for attempt in range(TRIES):
            try:
                yield from self._try(is_first=attempt == 0, is_last=attempt == TRIES - 1)
                return
            except NeverBegan:
                continue

    def _try(self, *, is_first: bool, is_last: bool) -> Iterator[Event]:
        spare: Spare | None = None
        try:
            for item in self._take(self._stop_asked.is_set, not is_first):
                if isinstance(item, Spare):
                    spare = item
                else:
                    yield item
        except RunnerError as error:
            if self._stop_asked.is_set():
                yield Finished("stopped", 130, "Stopped before it began.", self._ms())
            else:
                yield Finished("lost", 70, str(error), self._ms())
            return
        assert spare is not None
        try:
            yield from self._attend(spare, is_last=is_last)
        finally:
            # Only now: ending a process keeps a processor busy while the learner waits.
            send(spare.status, Kill())
            spare.close()

    def _attend(self, spare: Spare, *, is_last: bool) -> Iterator[Event]:
        if self._stop_asked.is_set():
            yield Finished("stopped", 130, "Stopped before it began.", self._ms())
            return
        assignment = Assignment(to_wire(self._job), self._key)
        self._begun = time.monotonic()
        finished: Finished | None = None
        try:
            limits = self._job.limits
            send(
                spare.status,
                Allow(limits.processes, limits.file_bytes, limits.memory_bytes, self._job.scratch),
            )
            spare.channel.sendall(encode(message_to_json(assignment)))
        except (OSError, ProtocolError) as error:
            finished = Finished("lost", 70, f"The job could not be handed over: {error}", 0.0)
        watch = Watch(spare, self._wake)
        while finished is None:
            for source, data in watch.read(self._timeout(watch)):
                for event in self._understand(source, data, watch):
                    if isinstance(event, Finished):
                        finished = finished or event
                    else:
                        yield event
            if finished is None and self._silence != (silence := spare.silence()):
                self._silence = silence
                yield Notice(silence or "It answers again.")
            finished = finished or self._deadline(spare, watch)
            if finished is None and not watch.listens_to("status"):
                finished = Finished("lost", 70, VANISHED, 0.0)
        if finished.outcome in ("lost", "killed") and not self._has_started and not is_last:
            watch.close()
            raise NeverBegan
        if finished.outcome in ("time", "stopped"):
            send(spare.status, Kill())
        for source, data in watch.drain():
            for event in self._understand(source, data, watch):
                if not isinstance(event, Finished):
                    yield event
        for output in watch.rest():
            yield from self._output(output)
        yield from self._drawings.rest()
        watch.close()
        if self._job.judge is not None:
            yield self._judged(self._job.judge.checks, is_done=finished.outcome == "done")
        yield Finished(
            finished.outcome, finished.code, finished.sentence, self._ms(), self._dropped
        )

    # --- time ---

    def _ms(self) -> float:
        return (time.monotonic() - self._begun) * 1000

    def _timeout(self, watch: Watch) -> float:
        now = time.monotonic()
        ends = [self._begun + self._job.limits.wall_s, watch.patience, now + LOOK_S]
        return max(0.0, min(ends) - now)

    def _deadline(self, spare: Spare, watch: Watch) -> Finished | None:
        """Ask to stop, then kill, when it is time."""
        now = time.monotonic()
        if self._stop_asked.is_set() and watch.patience == float("inf"):
            watch.patience = now + PATIENCE_S
            send(spare.status, Interrupt())
        if now >= watch.patience:
            if self._silence:
                return Finished("stopped", 137, f"Stopped. {self._silence}", 0.0)
            return Finished("stopped", 137, "Stopped: it did not react, so it was killed.", 0.0)
        if now >= self._begun + self._job.limits.wall_s:
            if self._silence:
                return Finished("lost", 70, f"{self._silence} {NEXT_RUN}", 0.0)
            return after_time(self._job.limits, self._ms())
        return None

    # --- what comes in ---

    def _understand(self, source: str, data: bytes, watch: Watch) -> Iterator[Event]:
        if source in ("stdout", "stderr"):
            text = watch.decode(source, data)
            yield from self._output(Output(source, text))
            return
        try:
            messages = watch.messages(source, data)
            if source == "status":
                for message in messages:
                    yield from self._from_keeper(message)
            else:
                for message in joined(messages):
                    yield from self._from_program(message)
        except ProtocolError as error:
            watch.forget(source)
            yield Notice(f"The program broke its line to tensortutor: {error}.")

    def _from_keeper(self, message: dict[str, Any]) -> Iterator[Event]:
        exited = message_from_json(message)
        if isinstance(exited, Exited):
            if self._stop_asked.is_set():
                yield Finished("stopped", 130, "Stopped.", 0.0)
            elif self._error is not None and self._error.type == "tensortutor":
                yield Finished("lost", 70, self._error.message, 0.0)
            else:
                yield after_exited(exited, self._job.limits, self._ms())

    def _from_program(self, message: dict[str, Any]) -> Iterator[Event]:
        if message.get("say") == "ended":
            ended = message_from_json(message)
            if isinstance(ended, Ended):
                self._modules = ended.modules
                yield after_ended(ended, self._error, self._job.limits, self._ms())
            return
        mac = message.pop("mac", "")
        event = event_from_json(message)
        if not isinstance(event, FROM_PROGRAM):
            raise ProtocolError(f"a program may not say {message.get('event')!r}")
        if isinstance(event, Output):
            yield from self._output(event)
        elif isinstance(event, DRAWINGS):
            yield from self._drawings.take(event)
        elif isinstance(event, Verdict) and not self._is_genuine(message, mac):
            if not self._is_forged:
                self._is_forged = True
                yield Notice(FORGED)
        elif self._is_new(event):
            self._note(event)
            yield event

    def _is_new(self, event: Event) -> bool:
        """Everything but output is said once. A program that floods its line fills nothing."""
        job, judge = self._job, self._job.judge
        if isinstance(event, Warned):
            self._warned += 1
            return self._warned <= MOST_WARNINGS
        if type(event) in ASKED_FOR and not getattr(job.look, ASKED_FOR[type(event)]):
            return False
        if isinstance(event, Types) and not job.types:
            return False
        if isinstance(event, Probed) and not 0 <= event.index < len(job.probes):
            return False
        if isinstance(event, CheckStarted) and (judge is None or event.check not in judge.checks):
            return judge is not None and not judge.checks
        what = event.index if isinstance(event, Probed) else getattr(event, "check", "")
        if (type(event), what) in self._said:
            # A second verdict, rightly signed: somebody has got hold of the key.
            self._is_forged = self._is_forged or isinstance(event, Verdict)
            return False
        self._said.add((type(event), what))
        return True

    def _note(self, event: Event) -> None:
        if isinstance(event, Verdict):
            self._verdicts[event.check] = event.passed
        elif isinstance(event, Started):
            self._has_started = True
        elif isinstance(event, Raised):
            self._error = event

    def _is_genuine(self, message: dict[str, Any], mac: Any) -> bool:
        if not self._key or not isinstance(mac, str):
            return False
        sign = hashlib.blake2b(
            json.dumps(message, sort_keys=True).encode(), key=bytes.fromhex(self._key)
        )
        return hmac.compare_digest(sign.hexdigest(), mac.encode("ascii", "replace").decode())

    def _output(self, output: Output) -> Iterator[Event]:
        """Keep what the limit allows, count the rest, and say so when that begins."""
        limit = self._job.limits.output_bytes
        room = limit - self._kept
        text = output.text[:room] if room > 0 else ""
        is_first = len(text) < len(output.text) and not self._dropped
        self._kept += len(text)
        self._dropped += len(output.text) - len(text)
        if text:
            yield Output(output.stream, text)
        if is_first:
            yield Notice(TOO_MUCH.format(limit / 1e6))

    def _judged(self, checks: tuple[str, ...], *, is_done: bool) -> Judged:
        """The sum. Nothing has passed if a result was forged or the program did not end well."""
        names = checks or tuple(self._verdicts)
        sound = is_done and not self._is_forged
        passed = tuple(n for n in names if self._verdicts.get(n) is True)
        return Judged(
            passed=passed if sound else (),
            failed=tuple(n for n in names if self._verdicts.get(n) is False),
            missing=tuple(
                n for n in names if n not in self._verdicts or (n in passed and not sound)
            ),
        )


def joined(messages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The same messages, with neighbouring output of one stream as one message.

    A program that prints line by line sends a message a line; a million of them are worth not
    being looked at one by one.
    """
    texts: list[str] = []
    last: dict[str, Any] = {}
    for message in messages:
        text = message.get("text") if message.get("event") == "output" else None
        if isinstance(text, str) and "stream" in message and len(message) == 3:
            if texts and message["stream"] != last["stream"]:
                yield {**last, "text": "".join(texts)}
                texts.clear()
            last = message
            texts.append(text)
            continue
        if texts:
            yield {**last, "text": "".join(texts)}
            texts.clear()
        yield message
    if texts:
        yield {**last, "text": "".join(texts)}


def send(sock: socket.socket, message: Any) -> None:
    """Send an order, if there is still somebody to take it."""
    with contextlib.suppress(OSError):
        sock.sendall(encode(message_to_json(message)))
