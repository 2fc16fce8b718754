"""Runs a learner's program as `__main__`, then its proofs and checks."""

import atexit
import builtins
import gc
import linecache
import os
import sys
import threading
from dataclasses import replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import torch

from tensortutor.lab.display import DISPLAY
from tensortutor.lab.matplotlib_backend import draw_left_open
from tensortutor.protocol.assist import Types
from tensortutor.protocol.events import Probed, Started
from tensortutor.protocol.jobs import Job, Judge
from tensortutor.protocol.setup import (
    SLOW_MODULES,
    Ended,
    Setup,
    message_to_json,
)
from tensortutor.worker.capture import Channel, Streams, install_interrupt
from tensortutor.worker.integrity import Snapshot
from tensortutor.worker.irreversible import refuse_irreversible
from tensortutor.worker.judge import Compiled, Judging, Signer, seen
from tensortutor.worker.probe_values import evaluate, json_value
from tensortutor.worker.tracebacks import raised, text_of
from tensortutor.worker.typenames import TypeNames
from tensortutor.worker.warning_reports import report_warnings, show_plain_warnings

if TYPE_CHECKING:
    from tensortutor.worker.lens.lens import Lens


EXCEPT_HOOK = sys.excepthook
"""What shows an exception unless the program says otherwise."""


class Program:
    """One run of one job."""

    def __init__(self, job: Job, setup: Setup, channel: Channel, folder: str) -> None:
        self._job = job
        self._setup = setup
        self._channel = channel
        # A folder of its own, apart from the scratch folder: what an earlier run left there
        # cannot shadow a module of this one.
        self._folder = job.folder or os.path.join(folder, "program")
        self._path = os.path.join(self._folder, os.path.basename(job.filename))
        self._owner = os.getpid()
        self._device = torch.device(setup.device)
        self._judging: Judging | None = None
        self._lens: Lens | None = None
        self._types = TypeNames() if job.types else None

    def expect_judging(
        self, judge: Judge, signer: Signer, snapshot: Snapshot, compiled: Compiled | None = None
    ) -> None:
        """Checks are to be put to the program. For the arguments see Judging."""
        refuse_irreversible()
        snapshot.replace(torch.autograd, "backward", seen(torch.autograd.backward))
        snapshot.add(sys.modules[__name__])
        self._judging = Judging(judge, signer, self._channel, self._device, snapshot, compiled)

    def run(self) -> int:
        """Run the program, then probes and checks. Returns the exit status."""
        self._write_file()
        self._streams = Streams(self._channel)
        install_interrupt(self._channel)
        DISPLAY.connect(self._channel.send)
        show_plain_warnings(self._path, self._job.filename)
        report_warnings(self._path, self._channel)
        main = self._become_main()
        if any(vars(self._job.look).values()):
            # Imported here: most runs do without it.
            from tensortutor.worker.lens.lens import Lens

            self._lens = Lens(self._job.look, self._job.source, self._path)
        self._channel.send(Started(self._setup.device, self._setup.layer))
        printed = self._streams.record() if self._judging is not None else []
        # Held here: the program can replace every method, this one's code runs already.
        put_back = self._judging.after_program if self._judging is not None else None
        try:
            code = self._execute(main)
            if put_back is not None:
                put_back()
            if code == 0:
                self._examine(vars(main), printed)
        except KeyboardInterrupt as error:
            code = self._report(error)
        if self._types is not None:
            self._types.take(vars(main))
            self._channel.send(Types(self._types.all()))
        return code

    def _write_file(self) -> None:
        if self._job.folder:
            # It lies there already, as far as it could be saved; this is what is run.
            lines = self._job.source.splitlines(keepends=True)
            linecache.cache[self._path] = (len(self._job.source), None, lines, self._path)
            return
        os.makedirs(self._folder, exist_ok=True)
        with open(self._path, "w", encoding="utf-8") as file:
            file.write(self._job.source)

    def _become_main(self) -> ModuleType:
        main = ModuleType("__main__")
        main.__file__ = self._path
        vars(main)["__builtins__"] = builtins
        vars(main)["device"] = self._device
        sys.modules["__main__"] = self._main = main
        sys.argv = [self._path, *self._job.arguments]
        sys.path.insert(0, self._folder)
        return main

    def _execute(self, main: ModuleType) -> int:
        """Run the source. Returns the exit status; what it raised has been reported."""
        try:
            code = compile(self._job.source, self._path, "exec", dont_inherit=True)
            if self._lens is None:
                exec(code, vars(main))
            else:
                self._lens.run(code, vars(main))
        except SystemExit as stop:
            self._look(main, stop)
            return exit_code(stop)
        except BaseException as error:
            status = self._report(error)
            if self._types is not None:
                self._types.take_frames(error, self._path)
            self._look(main, error)
            return status
        finally:
            self._streams.flush()
        self._look(main, None)
        return 0

    def _look(self, main: ModuleType, error: BaseException | None) -> None:
        """Report what the lens sees, while the program's objects are still there."""
        if self._lens is None:
            return
        self._streams.flush()
        for event in self._lens.report(vars(main), error):
            self._channel.send(event)
        self._lens = None  # it may hold what the program has let go of

    def _report(self, error: BaseException) -> int:
        self._streams.flush()
        linecache.checkcache(self._path)
        report = raised(error, self._path, self._job.filename, self._job.folder)
        if self._is_shown_by_program(error):
            report = replace(report, text="")
            self._streams.flush()
        elif os.getpid() != self._owner:
            print(report.text, file=sys.stderr, end="", flush=True)
        self._channel.send(report)
        return 130 if isinstance(error, KeyboardInterrupt) else 1

    def _is_shown_by_program(self, error: BaseException) -> bool:
        """Whether the program has a hook of its own for exceptions, which has worked."""
        hook = getattr(sys, "excepthook", EXCEPT_HOOK)
        if hook is EXCEPT_HOOK:
            return False
        try:
            hook(type(error), error, error.__traceback__)
        except KeyboardInterrupt:
            raise
        except BaseException:
            return False
        return True

    def _examine(self, namespace: dict[str, Any], printed: list[str]) -> None:
        for index, proof in enumerate(self._job.probes):
            self._channel.send(probe(index, proof, namespace))
        if self._judging is not None:
            text = "".join(printed)
            self._judging.put_to(namespace, self._job.source, self._path, text, self._types)

    def leave(self, code: int) -> None:
        """End as an interpreter does: wait for threads, run exit handlers, flush. No return."""
        try:
            threading._shutdown()  # type: ignore[attr-defined]
            draw_left_open()  # before matplotlib's own exit handler closes them
            atexit._run_exitfuncs()
            self._take_apart()
            self._streams.finish()
            self._channel.send_json(message_to_json(Ended(code, modules=imported())))
        except KeyboardInterrupt:
            code = 130
        except OSError:
            code = code or 1  # the channel is closed; the keeper reports the status
        os._exit(code)

    def _take_apart(self) -> None:
        """Let go of the program's names, as an interpreter does: files close, `__del__` runs."""
        vars(self._main).clear()
        gc.collect()


def probe(index: int, proof: str, namespace: dict[str, Any]) -> Probed:
    """The value of a proof, or why there is none."""
    try:
        return Probed(index, json_value(evaluate(proof, namespace)))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return Probed(index, None, f"{type(error).__name__}: {text_of(error)}"[:1000])


def imported() -> tuple[str, ...]:
    """Those of SLOW_MODULES that are there."""
    return tuple(name for name in SLOW_MODULES if name in sys.modules)


def exit_code(stop: SystemExit) -> int:
    """The status that an interpreter would exit with."""
    try:
        code: Any = stop.code
        if code is None:
            return 0
        if issubclass(type(code), int):  # isinstance() would believe a __class__ that lies
            return int.__and__(code, 0xFF)
        print(code, file=sys.stderr)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return 1  # its class, the code's or the stream is the program's own, and broken
    return 1
