"""What the host and a zygote say to each other, before and between runs."""

from dataclasses import dataclass
from typing import Any

from tensortutor.protocol.assist import Completions, Documentation, Question
from tensortutor.protocol.framing import ProtocolError
from tensortutor.protocol.wire import from_wire, to_wire

SLOW_MODULES = (
    "tensortutor.worker.lens.lens", "torch.fx.experimental.symbolic_shapes", "torch._dynamo",
)  # fmt: skip
"""What is imported for all programs once one has needed it.

The lens takes 5 MiB and 0.1 s; what it computes shapes with, 35 MiB and 0.3 s; the compiler, which
an optimizer imports when it is made, 35 MiB and 0.6 s more.
"""


@dataclass(frozen=True)
class Setup:
    """The first message to a zygote: where it is and how its runs are confined.

    layer: one of protocol.layers.LAYERS. scratch: the folder that holds one folder per lesson.
    readable: files and folders that a program may read (the landlock layer; elsewhere the mounts
    decide). writable: those of them that it may write as well. device: as torch names it; the
    zygote itself uses none, each spare the one that it was made for. preload: import SLOW_MODULES
    at once, and not when one is asked for. data: the folder of the learner's own files, or "".
    """

    layer: str
    scratch: str
    readable: tuple[str, ...] = ()
    device: str = "cpu"
    preload: bool = False
    data: str = ""
    writable: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeviceInfo:
    """One device. total and free in bytes; 0 when not known.

    trouble: why it cannot be used at the moment, or "".
    """

    name: str
    label: str
    total: int = 0
    free: int = 0
    trouble: str = ""


@dataclass(frozen=True)
class PlaceInfo:
    """What the far end of a transport found out about the place where it is.

    host: the machine's name. interpreter: the path of the one that has torch. layer, why: as in
    `runner.sandbox.Layer`. libraries: folders for `Assist`. load_s: how long torch took to import.
    job: the id of the Slurm job that it runs in, or "". left_s: until that ends, 0 if no end is
    known. partition: Slurm's queue that it came from, or "".
    """

    host: str
    interpreter: str
    layer: str
    why: str
    libraries: tuple[str, ...]
    load_s: float
    job: str = ""
    left_s: float = 0.0
    partition: str = ""


@dataclass(frozen=True)
class Ready:
    """The zygote has imported torch. why_no_card: of a build with CUDA that sees no card, or "".

    place: None on this machine. why_no_cgroup: why the memory of a run is measured from /proc, or
    "" where the kernel counts it in a cgroup.
    """

    torch: str
    python: str
    devices: tuple[DeviceInfo, ...]
    why_no_card: str = ""
    place: PlaceInfo | None = None
    why_no_cgroup: str = ""


@dataclass(frozen=True)
class Waiting:
    """From the near end of a transport: what has to happen before the zygote can be started."""

    reason: str


@dataclass(frozen=True)
class NotAnswering:
    """From the near end of a transport: the place does not answer, or "" if it answers again."""

    sentence: str


@dataclass(frozen=True)
class Failed:
    """The zygote cannot serve; the sentence says why.

    needs_consent: nothing confines a program there, and the learner has not allowed that yet.
    """

    sentence: str
    needs_consent: bool = False


@dataclass(frozen=True)
class SpareMade:
    """A process waits for a job. Its descriptors travel with this message:

    channel (jobs in, events out), status (orders in, the exit status out), stdout, stderr.
    """

    pid: int


@dataclass(frozen=True)
class MakeSpare:
    """Ask for one more waiting process, with this device awake in it."""

    device: str


@dataclass(frozen=True)
class Load:
    """To a zygote: import one of SLOW_MODULES, for the processes forked from then on."""

    module: str

    def __post_init__(self) -> None:
        if self.module not in SLOW_MODULES:
            raise ProtocolError(f"a zygote loads no {self.module[:40]!r}")


@dataclass(frozen=True)
class Allow:
    """To a keeper: how many processes the program may have, and how many bytes of files and memory.

    scratch: the job's own folder, as in the job.
    """

    processes: int
    file_bytes: int
    memory_bytes: int
    scratch: str = ""


@dataclass(frozen=True)
class Interrupt:
    """To a keeper: raise KeyboardInterrupt in the program."""


@dataclass(frozen=True)
class Kill:
    """To a keeper: end the program and everything that it started."""


@dataclass(frozen=True)
class Assignment:
    """To a spare: the job, and the key that verdicts are signed with (hex)."""

    job: Any
    key: str = ""


@dataclass(frozen=True)
class Foresee:
    """To a spare, before its job: the check file that the job will bring, if it is as the last."""

    filename: str
    source: str


@dataclass(frozen=True)
class Assist:
    """To a spare, in the place of a job: answer questions until nobody is there to ask any.

    libraries: folders of packages that it may import beside what its interpreter has.
    """

    libraries: tuple[str, ...]


@dataclass(frozen=True)
class Ended:
    """From the program's process: it has run to its end, with this exit status.

    sentence: how, where the status alone does not say it. modules: which of SLOW_MODULES it has
    imported.
    """

    code: int
    sentence: str = ""
    modules: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exited:
    """From the keeper: the program's process is gone.

    signal: the signal that ended it, or 0. reason: "" or the limit that the keeper enforced
    ("processes", "files", "memory"). sentence: how the line to the keeper was lost, if this comes
    from a transport and nobody knows how the program ended.
    """

    code: int
    signal: int = 0
    reason: str = ""
    sentence: str = ""


KINDS = {
    kind.__name__.lower(): kind
    for kind in (
        Setup, Ready, Failed, SpareMade, MakeSpare, Load, Allow, Interrupt, Kill, Assignment, Ended,
        Exited, Foresee, Assist, Waiting, NotAnswering, Question, Completions, Documentation,
    )
}  # fmt: skip


def message_to_json(message: Any) -> dict[str, Any]:
    """A JSON object with the message's name under "say"."""
    return {"say": type(message).__name__.lower(), **to_wire(message)}


def message_from_json(data: dict[str, Any]) -> Any:
    """The message of a JSON object. Raises ProtocolError if it is none."""
    fields = dict(data)
    name = fields.pop("say", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolError(f"there is no message {name!r}")
    return from_wire(kind, fields)
