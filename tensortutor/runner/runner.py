"""`Runner`: keeps a zygote and spares ready, and starts runs."""

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace

from tensortutor.protocol.assist import Answer, Question
from tensortutor.protocol.events import Notice
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.layers import LIMITS
from tensortutor.protocol.setup import SLOW_MODULES, Foresee, PlaceInfo, Setup
from tensortutor.runner.assistant import Assistant
from tensortutor.runner.devices import Device, choose, devices_of
from tensortutor.runner.environment import environment
from tensortutor.runner.errors import NoSandbox, RunnerError
from tensortutor.runner.launch import plan
from tensortutor.runner.run import Run
from tensortutor.runner.sandbox import PACKAGE, Layer, library_packages
from tensortutor.runner.settings import Settings
from tensortutor.runner.versions import caution
from tensortutor.runner.zygote import Spare, Zygote

LOADING = "PyTorch is being loaded; your program starts as soon as it is there."
LOOK_S = 0.1


@dataclass(frozen=True)
class Status:
    """What a face shows. state: "cold", "loading", "ready" or "failed".

    why: why the layer is no stronger one; when failed, the sentence. needs_consent: it failed
    because nothing confines a program here; `allow_limits` is the way on. caution: what to know of
    this torch, or "". why_no_card: why a PyTorch with CUDA sees no card, or "". place: where
    programs run, or None for this machine. waiting_for: what has to happen before it can be loaded
    there, or "". ends_in_s: until the job there ends, None if no end is known. why_no_cgroup: as in
    `protocol.setup.Ready`.
    """

    state: str
    layer: str = ""
    why: str = ""
    needs_consent: bool = False
    device: Device | None = None
    devices: tuple[Device, ...] = ()
    torch: str = ""
    python: str = ""
    caution: str = ""
    why_no_card: str = ""
    place: PlaceInfo | None = None
    waiting_for: str = ""
    ends_in_s: float | None = None
    why_no_cgroup: str = ""


class Runner:
    """Runs programs. All methods may be called from any thread."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.RLock()
        self._starting = threading.Lock()
        self._zygote: Zygote | None = None
        self._layer: Layer | None = None
        self._device: Device | None = None
        self._failure = ""
        self._needs_consent = False
        self._running = 0
        self._needed: set[str] = set()
        self._idle: threading.Timer | None = None
        self._used = 0.0
        self._closed = False
        self._assistant: Assistant | None = None
        self._attended: Zygote | None = None

    @property
    def status(self) -> Status:
        """A snapshot."""
        with self._lock:
            layer = self._layer or Layer("")
            zygote = self._zygote
            if self._failure:
                return Status("failed", layer.name, self._failure, self._needs_consent)
            if zygote is None or zygote.failure:
                return Status("cold", layer.name, layer.why)
            if zygote.ready is None or self._device is None:
                return Status("loading", layer.name, layer.why, waiting_for=zygote.waiting_for)
            return Status(
                "ready", layer.name, layer.why, device=self._device,
                devices=devices_of(zygote.ready.devices), torch=zygote.ready.torch,
                python=zygote.ready.python, caution=caution(zygote.ready.torch),
                why_no_card=zygote.ready.why_no_card, place=zygote.ready.place,
                ends_in_s=zygote.ends_in_s, why_no_cgroup=zygote.ready.why_no_cgroup,
            )  # fmt: skip

    @property
    def device(self) -> str:
        """The name of the device that programs get. Only once it is prepared."""
        with self._lock:
            assert self._device is not None
            return self._device.name

    def warm(self) -> None:
        """Start PyTorch in the background and return at once. Failures show in `status`.

        Where it is there, it stays as long as after a run.
        """
        with self._lock:
            self._used = time.monotonic()
            if self._zygote is not None or self._closed:
                return
        threading.Thread(target=self._warm_quietly, name="warm", daemon=True).start()

    def prepare(self, told: Callable[[str], None] | None = None) -> None:
        """Block until PyTorch is there. Raises RunnerError.

        told: called with a sentence for what has to happen before it can be loaded in a place.
        """
        if told is not None:
            for notice in self._load(lambda: False):
                if notice.text != LOADING:
                    told(notice.text)
        zygote = self._serving()
        self._keep_spares(zygote)
        with self._lock:
            self._begin_idling()

    def start(self, job: Job) -> Run:
        """A run of this job; nothing happens until it is iterated over."""
        return Run(
            job, lambda stopped, fork_new: self._take(job, stopped, fork_new), self._one_done
        )

    def attend(self) -> None:
        """Have somebody ready to answer questions, in the background, once PyTorch is there."""
        assistant = self._attending()
        if assistant is not None:
            threading.Thread(target=assistant.attend, name="attend", daemon=True).start()

    def ask(self, question: Question) -> Answer | None:
        """What there is to say about a name; None while PyTorch is not there. May take seconds."""
        assistant = self._attending()
        return None if assistant is None else assistant.ask(question)

    def allow_limits(self) -> None:
        """Run programs without a sandbox from now on: the learner has been asked and agreed."""
        with self._lock:
            self._settings = replace(self._settings, sandbox=LIMITS)
            self._failure = ""

    def close(self) -> None:
        """End PyTorch's process and the waiting ones."""
        with self._lock:
            self._closed = True
            zygote, self._zygote = self._zygote, None
            self._cancel_idle()
        self._end(zygote)

    def __enter__(self) -> "Runner":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- the zygote ---

    def _warm_quietly(self) -> None:
        try:
            self.prepare()
        except RunnerError:
            return  # `status` has it, and the next run will say it

    def _serving(self, stopped: Callable[[], bool] = lambda: False) -> Zygote:
        """A zygote that has imported torch; started, or started again after its death.

        stopped: whether nobody wants it any more. Raises RunnerError.
        """
        with self._starting:
            zygote = self._living()
            if zygote is None and stopped():
                raise RunnerError("Stopped.")
            if zygote is None:
                zygote = self._start()
            return zygote

    def _living(self) -> Zygote | None:
        with self._lock:
            zygote = self._zygote
        if zygote is not None and zygote.failure:
            zygote.close()
            with self._lock:
                self._zygote = None
            return None
        return zygote

    def _start(self) -> Zygote:
        zygote: Zygote | None = None
        try:
            if self._closed:
                raise RunnerError("The runner is closed.")
            zygote = self._launch()
            ready = zygote.wait_ready()
            device = choose(self._settings.device, devices_of(ready.devices))
        except RunnerError as error:
            with self._lock:
                failed, self._zygote = self._zygote, None
                given_up = zygote is not None and failed is None
                self._failure = "" if given_up else str(error)
                self._needs_consent = isinstance(error, NoSandbox)
            if failed is not None:
                failed.close()
            raise
        with self._lock:
            self._device, self._failure = device, ""
            if ready.place is not None:
                self._layer = Layer(ready.place.layer, ready.place.why)
        return zygote

    def _launch(self) -> Zygote:
        settings = self._settings
        wanted = Setup(
            layer=settings.sandbox, scratch=str(settings.scratch.absolute()),
            readable=tuple(str(folder.resolve()) for folder in settings.read),
            preload=settings.preload, data=str(settings.data or ""),
            writable=tuple(str(folder.resolve()) for folder in settings.write),
        )  # fmt: skip
        if settings.place is not None and settings.place.socket:
            launch = plan(settings.python or sys.executable, wanted)
            script = os.path.join(PACKAGE, "transport", "join_worker.py")
            join = (sys.executable, script, settings.place.socket, json.dumps(launch.command))
            layer, zygote = launch.layer, Zygote(join, launch.setup, os.environ)
        elif settings.place is not None:
            script = os.path.join(PACKAGE, "transport", "__main__.py")
            near = (sys.executable, script, json.dumps(asdict(settings.place)))
            layer, zygote = None, Zygote(near, wanted, os.environ, longest_start_s=None)
        else:
            launch = plan(settings.python or sys.executable, wanted)
            layer, zygote = (
                launch.layer,
                Zygote(launch.command, launch.setup, environment(many_runs=settings.preload)),
            )
        with self._lock:
            self._layer, self._zygote, self._failure = layer, zygote, ""
        return zygote

    def _load(self, stopped: Callable[[], bool]) -> Iterator[Notice]:
        """Wait for PyTorch, and tell what for, until it is there or the run is stopped."""
        yield Notice(LOADING)
        over = threading.Event()
        errors: list[RunnerError] = []

        def serve() -> None:
            try:
                self._serving(stopped)
            except RunnerError as error:
                errors.append(error)
            finally:
                over.set()

        threading.Thread(target=serve, name="load", daemon=True).start()
        told = ""
        while not over.wait(LOOK_S):
            if stopped():
                self._give_up_place()
                raise RunnerError("Stopped.")
            waiting_for = self.status.waiting_for
            reason = waiting_for.partition("), ")[0].rstrip(
                ")"
            )  # without the minutes, which pass anyway
            if reason and reason != told:
                told = reason
                yield Notice(f"{waiting_for[0].upper()}{waiting_for[1:]}.")
        if errors:
            raise errors[0]

    def _give_up_place(self) -> None:
        """Ask no longer for a place that is not there yet."""
        with self._lock:
            zygote = self._zygote
            if self._settings.place is None or zygote is None or zygote.ready is not None:
                return
            self._zygote = None
        zygote.close()

    def _give_up_silent(self) -> str:
        """Let go of a place that does not answer. What was known of it, "" if it does answer."""
        with self._lock:
            zygote = self._zygote
            silence = zygote.silence if zygote is not None else ""
            if zygote is None or not silence:
                return ""
            self._zygote = None
        zygote.close()
        return silence

    # --- runs ---

    def _device_for(self, job: Job, zygote: Zygote) -> str:
        """The name of the device that a job gets. Raises RunnerError if there is none for it."""
        if not job.device or self.device.partition(":")[0] == job.device:
            return self.device
        assert zygote.ready is not None
        return choose(job.device, devices_of(zygote.ready.devices)).name

    def _take(
        self, job: Job, stopped: Callable[[], bool], fork_new: bool
    ) -> Iterator[Notice | Spare]:
        """fork_new: this run had one already, which died before the program began."""
        if not fork_new:
            with self._lock:
                self._running += 1
                self._cancel_idle()
        for attempt in (1, 2):
            if silence := self._give_up_silent():
                yield Notice(f"{silence} It is asked for again.")
            if self.status.state != "ready":
                yield from self._load(stopped)
            zygote = self._serving(stopped)
            try:
                yield zygote.take(self._device_for(job, zygote), fork_new=fork_new)
                if job.judge is not None:
                    # Who checks is likely to check again.
                    zygote.foresee(Foresee(job.judge.filename, job.judge.source))
                return
            except RunnerError:
                # It died between two runs; once, a new one is worth the wait.
                if attempt == 2:
                    raise

    def _one_done(self, imported: tuple[str, ...]) -> None:
        with self._lock:
            self._running -= 1
            self._needed.update(name for name in SLOW_MODULES if name in imported)
            zygote = self._zygote
            self._begin_idling()
            serving = zygote is not None and zygote.ready and self._device is not None
        if zygote is not None and serving:
            self._keep_spares(zygote)

    def _keep_spares(self, zygote: Zygote) -> None:
        """Have processes wait; with what programs of this session have needed."""
        spares = min(self._settings.spares, 1) if self._is_short() else self._settings.spares
        zygote.ask(spares, self.device)
        if self._needed:
            zygote.load(tuple(self._needed))
            zygote.ask(spares, self.device)

    def _is_short(self) -> bool:
        """Memory is short where PyTorch is; of another place we do not know."""
        return self._settings.place is None and self._settings.memory_is_short()

    def _begin_idling(self) -> None:
        """From now on it counts that nothing runs."""
        if not self._running and not self._closed:
            self._used = time.monotonic()
            self._look_again(min(self._settings.idle_s, self._settings.idle_short_s))

    def _look_again(self, seconds: float) -> None:
        """Let go after so long, if it has not been used by then."""
        self._cancel_idle()
        self._idle = threading.Timer(seconds, self._let_go)
        self._idle.daemon = True
        self._idle.start()

    def _cancel_idle(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    def _let_go(self) -> None:
        with self._lock:
            if self._running or self._closed:
                return
            settings = self._settings
            short = min(settings.idle_s, settings.idle_short_s)
            enough = short if self._is_short() else settings.idle_s
            left = self._used + enough - time.monotonic()
            if left > 0:
                # Memory may become short meanwhile.
                self._look_again(min(left, short))
                return
            zygote, self._zygote = self._zygote, None
        self._end(zygote)

    # --- questions ---

    def _attending(self) -> Assistant | None:
        """The assistant of the zygote that serves now; None if none does."""
        with self._lock:
            zygote = self._zygote
            if self._closed or zygote is None or zygote.ready is None or zygote.failure:
                return None
            if self._assistant is None or self._attended is not zygote:
                there = zygote.ready.place
                libraries = library_packages() if there is None else there.libraries
                self._assistant = Assistant(lambda: self._one_more(zygote), libraries)
                self._attended = zygote
            return self._assistant

    def _one_more(self, zygote: Zygote) -> Spare:
        """A waiting process of its own: a program's run finds another one ready. On the CPU: it
        needs no device, and a device's memory is not for it."""
        spare = zygote.take("cpu")
        self._keep_spares(zygote)
        return spare

    def _end(self, zygote: Zygote | None) -> None:
        with self._lock:
            assistant, self._assistant = self._assistant, None
        if zygote is not None:
            zygote.close()
        if assistant is not None:
            assistant.close()
