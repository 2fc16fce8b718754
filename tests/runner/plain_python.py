"""The programs of `programs/`, and what they do in plain Python: `python FILE`.

Importing torch takes seconds. For programs whose header says so, a process that has imported it,
and has done nothing else, forks; what is forked runs the file as `__main__` and ends as any
interpreter does.
"""

import json
import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile import corpus

PROGRAMS = Path(__file__).with_name("programs")
FILE = "lesson_code.py"

SERVER = """\
import json, os, sys
import torch

def attend():
    # Returns in a forked process, with what it is to run.
    for line in sys.stdin:
        file, arguments, cwd, out, err = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.chdir(cwd)
            for path, target in ((os.devnull, 0), (out, 1), (err, 2)):
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
                os.dup2(descriptor, target)
                os.close(descriptor)
            return file, arguments
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
    sys.exit()

file, arguments = attend()
sys.stdin = open(0, closefd=False)
sys.argv = [file, *arguments]
sys.path[0] = os.path.dirname(file)
main = type(sys)("__main__")
main.__file__, main.__builtins__ = file, __builtins__
sys.modules["__main__"] = main
torch.seed()  # a fork repeats its parent's random numbers
with open(file, encoding="utf-8") as opened:
    code = compile(opened.read(), file, "exec", dont_inherit=True)
del opened
exec(code, vars(main))
"""


@dataclass(frozen=True)
class Case:
    """What a program's header says.

    says: what is faithful. layers: where it can work. runs: so many runs of one folder, one after
    the other. same: the two ways print the same; else each of our runs prints something new, and
    one in plain Python. arguments: after the file. stderr: words that the Runner's standard error
    must hold. torch_before: plain Python may have imported torch before the program begins, which
    says nothing about that.
    """

    says: str
    layers: tuple[str, ...] = ("full", "landlock")
    runs: int = 1
    same: bool = True
    torch_before: bool = False
    arguments: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """What one run printed and how it ended."""

    stdout: bytes
    code: int
    stderr: str = ""


@cache
def case(name: str) -> tuple[Case, str]:
    """The case and the source of a program."""
    ((header, source),) = corpus.read(PROGRAMS, name)
    lists = {key: tuple(value) for key, value in header.items() if isinstance(value, list)}
    return Case(**{**header, **lists}), source


def plain_run(file: Path, arguments: tuple[str, ...], cwd: Path) -> Ran:
    """`python FILE ARGUMENTS`, in a process of its own."""
    done = subprocess.run(
        [sys.executable, str(file), *arguments],
        cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    return ran(done.stdout, done.returncode, done.stderr)


def ran(stdout: bytes, returncode: int, stderr: bytes) -> Ran:
    """returncode: negative after a signal, as `subprocess` has it."""
    code = returncode if returncode >= 0 else 128 - returncode
    return Ran(stdout, code, stderr.decode(errors="replace"))


class TorchServer:
    """Plain Python that has imported torch."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", SERVER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, file: Path, arguments: tuple[str, ...], cwd: Path) -> Ran:
        """As `plain_run`."""
        streams = [file.with_suffix(f".{name}") for name in ("out", "err")]
        for stream in streams:
            stream.write_bytes(b"")
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = (str(file), arguments, str(cwd), *map(str, streams))
        print(json.dumps(order), file=self._process.stdin, flush=True)
        returncode = int(self._process.stdout.readline())
        out, err = (stream.read_bytes() for stream in streams)
        return ran(out, returncode, err)

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()


class PlainPython:
    """What plain Python does with the programs. Each is run when it is first asked for."""

    def __init__(self, folder: Path) -> None:
        """folder: where each program gets a folder for its file and one to work in."""
        self._folder = folder
        self._runs: dict[str, tuple[Ran, ...]] = {}
        self._server: TorchServer | None = None

    def runs(self, name: str) -> tuple[Ran, ...]:
        """As many as the program's case says; one where each run prints something new."""
        if name not in self._runs:
            self._runs[name] = self._run(name)
        return self._runs[name]

    def _run(self, name: str) -> tuple[Ran, ...]:
        about, source = case(name)
        code, work = self._folder / name / "code", self._folder / name / "work"
        code.mkdir(parents=True)
        work.mkdir()
        file = code / FILE
        file.write_text(source, encoding="utf-8")
        run = plain_run
        if about.torch_before:
            self._server = self._server or TorchServer()
            run = self._server.run
        return tuple(
            run(file, about.arguments, work) for _ in range(about.runs if about.same else 1)
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
