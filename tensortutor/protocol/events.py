"""What a run says, in the order in which it happened.

Every face (the app, the command line, `--json`, the tests) consumes this one stream:
`Started`, then any of the others, then exactly one `Finished`.
"""

from dataclasses import dataclass
from typing import Any, get_args

from tensortutor.protocol.assist import Types
from tensortutor.protocol.drawings import AreaMap, BoxGraph, CellGrid, Histogram, Picture, Plot
from tensortutor.protocol.framing import ProtocolError
from tensortutor.protocol.lens import (
    Broadcasts,
    Graph,
    Modules,
    Optimizers,
    Profile,
    Tensors,
    Trace,
)
from tensortutor.protocol.scene import UNKNOWN, Scene
from tensortutor.protocol.wire import from_wire, to_wire

LONGEST_PART = 4_000
"""Characters of a part of a verdict: more than a screen holds."""


def cut(text: str) -> str:
    """The text, its end left out if it is longer than LONGEST_PART, with a word that says so."""
    if len(text) <= LONGEST_PART + 40:  # what has been cut stays as it is
        return text
    return f"{text[:LONGEST_PART]} ({len(text) - LONGEST_PART:,} more characters)"


@dataclass(frozen=True)
class Notice:
    """A sentence from tensortutor itself, not from the program."""

    text: str


@dataclass(frozen=True)
class Started:
    """The program begins now.

    layer: "full", "landlock" or "limits"; "landlock+tcp" when ranks needed TCP.
    """

    device: str
    layer: str


@dataclass(frozen=True)
class Output:
    """Text that the program wrote. stream: "stdout" or "stderr".

    Bytes that are not UTF-8 arrive as lone surrogates (`surrogateescape`), so that
    `text.encode("utf-8", "surrogateescape")` gives back what was written.
    """

    stream: str
    text: str


@dataclass(frozen=True)
class Frame:
    """One line of a traceback in the learner's own file. Lines and columns from 1; 0: unknown."""

    function: str
    line: int
    code: str
    column: int = 0
    end_column: int = 0


@dataclass(frozen=True)
class Raised:
    """The program ended with an exception.

    frames: the learner's own frames, outermost first. text: the whole report as it should be
    printed, ending in the line `type: message`.
    """

    type: str
    message: str
    frames: tuple[Frame, ...]
    text: str
    scene: Scene = UNKNOWN


@dataclass(frozen=True)
class Warned:
    """The program was given a warning. Its text has been printed; `line` is the learner's, or 0."""

    type: str
    message: str
    line: int = 0
    scene: Scene = UNKNOWN


@dataclass(frozen=True)
class Explained:
    """What is known about the error or the warning just before. The host says it, not the program.

    check: the check that the error ended, or "". entry: the atlas's name for the error. error: the
    line that is explained, `Type: message`. here: what happened in this case, with the values that
    were in play, or "". means, way_out: short texts, where lines indented by four are code. lesson:
    the id of the lesson about it, "" if the course has none.
    """

    check: str
    entry: str
    error: str
    title: str
    here: str
    means: str
    way_out: str
    lesson: str


@dataclass(frozen=True)
class CheckStarted:
    """A check begins."""

    check: str


@dataclass(frozen=True)
class Verdict:
    """What one check found.

    message: what is wrong, one sentence. called: the learner's call, with shapes, as
    `split_heads(f32[2, 3, 20], 4)`. got, expected, where, cause: the parts of a comparison that
    failed, empty when they do not apply. hint: the author's advice. seed replays the inputs.
    Each of these texts is cut at LONGEST_PART characters.
    scene: where the program's code raised, if it did. input: the values of the small tensors of
    `called`, one on a line, as `keep = [True, False]`.
    """

    check: str
    passed: bool
    seed: int
    ms: float
    message: str = ""
    called: str = ""
    got: str = ""
    expected: str = ""
    where: str = ""
    cause: str = ""
    hint: str = ""
    scene: Scene = UNKNOWN
    input: str = ""

    def __post_init__(self) -> None:
        for name in ("message", "called", "got", "expected", "where", "cause", "hint", "input"):
            object.__setattr__(self, name, cut(getattr(self, name)))

    @property
    def failure(self) -> tuple[str, ...]:
        """What is wrong, whichever check says so: equal for failures that a face may fold."""
        return self.message, self.got, self.expected, self.where, self.cause, self.hint


@dataclass(frozen=True)
class Probed:
    """The value of a quiz's proof: `value` is JSON, or `error` says why there is none."""

    index: int
    value: Any = None
    error: str = ""


@dataclass(frozen=True)
class Judged:
    """The sum of a check run, counted by the host. missing: checks that never reported."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    missing: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Every check passed, and there was at least one."""
        return bool(self.passed) and not self.failed and not self.missing


@dataclass(frozen=True)
class Finished:
    """The program is over, and whatever it has left running is being ended.

    outcome: "done" (exit status 0), "raised" (an exception), "exited" (another status),
    "stopped" (by the learner), "time", "memory", "processes", "files", "killed" (by a signal),
    "lost" (the runner itself failed). code: as a shell reports it (128 + N for signal N). sentence:
    for the learner to read. dropped: characters of output beyond the limit, counted and not kept.
    """

    outcome: str
    code: int
    sentence: str
    ms: float
    dropped: int = 0


Lens = Trace | Broadcasts | Tensors | Modules | Optimizers | Graph | Profile
Event = (
    Notice
    | Started
    | Output
    | Plot
    | Picture
    | Histogram
    | AreaMap
    | CellGrid
    | BoxGraph
    | Raised
    | Warned
    | Explained
    | CheckStarted
    | Verdict
    | Probed
    | Lens
    | Types
    | Judged
    | Finished
)

KINDS: dict[str, type] = {kind.__name__.lower(): kind for kind in get_args(Event)}


def event_to_json(event: Event) -> dict[str, Any]:
    """A JSON object with the event's name under "event" and its fields beside it."""
    return {"event": type(event).__name__.lower(), **to_wire(event)}


def event_from_json(data: dict[str, Any]) -> Event:
    """The event of a JSON object. Raises ProtocolError if it is none."""
    fields = dict(data)
    name = fields.pop("event", None)
    kind = KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ProtocolError(f"there is no event {name!r}")
    event: Event = from_wire(kind, fields)
    return event
