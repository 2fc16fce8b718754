"""Whole sessions over a line that splits, delays, throttles, pauses or breaks.

The events are those of a good line, or the last one says that the run is lost; no run hangs.
"""

import io
import json
import os
import re
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tensortutor.options import Place
from tensortutor.protocol.events import Finished, Output, Verdict
from tensortutor.protocol.jobs import Job, Judge
from tensortutor.runner import Runner, Settings, zygote
from tensortutor.transport import near
from tensortutor.transport.bootstrap import MAGIC, Archive, script
from tensortutor.transport.dial_back import STDIO
from tensortutor.transport.mux import CREDIT, DATA, HEAD, MESSAGE, OPEN

LONGEST_S = 120.0
"""A run that takes longer hangs."""
TALKS = Job(
    "import os, sys\n"
    "print('é' * 300)\n"
    "print('said to stderr', file=sys.stderr)\n"
    "os.write(1, b'past Python\\n' * 50)\n"
    "sys.exit(3)\n"
)
JUDGED = Job(
    "def double(x):\n    return 2 * x\n",
    judge=Judge(
        "from tensortutor.checking import check, expect_true\n"
        "@check('doubles')\n"
        "def doubles(answer, rng, device):\n    expect_true(answer.double(2) == 4, 'no')\n",
        "checks/double.py",
        checks=("doubles",),
    ),
)
ENDLESS = Job("print('begun', flush=True)\nwhile True: pass")
TIME = re.compile(r"[\d.]+ m?s\b")
BAD_LINE = (sys.executable, str(Path(__file__).with_name("bad_line.py")))


def events_of(runner, job):
    """All events of a run, or a failure if it hangs."""
    found = []
    thread = threading.Thread(target=lambda: found.extend(runner.start(job)), daemon=True)
    thread.start()
    thread.join(LONGEST_S)
    assert not thread.is_alive(), f"the run hangs after {found}"
    return found


def compared(events):
    """The events without times, and the text of each stream: how it was cut does not matter."""
    texts = {"stdout": "", "stderr": ""}
    others = []
    for event in events:
        if isinstance(event, Output):
            texts[event.stream] += event.text
        elif isinstance(event, Finished):
            others.append(replace(event, ms=0.0, sentence=TIME.sub("T", event.sentence)))
        elif isinstance(event, Verdict):
            others.append(replace(event, ms=0.0))
        else:
            others.append(event)
    return texts, others


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    """Where what is sent is kept."""
    return f"XDG_CACHE_HOME={tmp_path_factory.mktemp('cache')}"


@pytest.fixture(scope="module")
def good(tmp_path_factory, cache):
    """The events of both jobs over a good line, and all that came over it in a run of the first."""
    record = tmp_path_factory.mktemp("record") / "came"
    # Without tee's own buffer: it writes what it reads.
    words = f'"$@" | tee {record}'
    place = Place("a place", ("sh", "-c", words, "sh", "env", cache), python=sys.executable)
    scratch = tmp_path_factory.mktemp("scratch")
    settings = Settings(scratch=scratch, device="cpu", spares=0, place=place)
    with Runner(settings) as runner:
        talks = compared(events_of(runner, TALKS))
    came = record.read_bytes()  # only now: tee passes on first, and writes to its file then
    with Runner(settings) as runner:
        assert compared(events_of(runner, TALKS)) == talks
        judged = compared(events_of(runner, JUDGED))
    assert talks[0]["stdout"] == "é" * 300 + "\n" + "past Python\n" * 50
    assert talks[1][-1].code == 3
    assert [e.passed for e in judged[1] if isinstance(e, Verdict)] == [True]
    return SimpleNamespace(talks=talks, judged=judged, came=came)


@pytest.mark.parametrize(
    "options",
    [
        ("--most", "1"),
        ("--delay", "0.044"),
        ("--rate", "10000", "--most", "300"),
        ("--pause", "777,0.1", "--most", "500"),
    ],
    ids=["byte by byte", "44 ms later", "10 KB a second", "with pauses"],
)
def test_over_a_bad_line_the_events_are_those_of_a_good_one(tmp_path, cache, good, options):
    place = Place("a place", (*BAD_LINE, *options, "env", cache), python=sys.executable)
    with Runner(Settings(scratch=tmp_path, device="cpu", spares=0, place=place)) as runner:
        assert compared(events_of(runner, TALKS)) == good.talks
        assert compared(events_of(runner, JUDGED)) == good.judged
        run = runner.start(ENDLESS)
        last = None
        for last in run:
            if isinstance(last, Output):
                run.stop()
        assert isinstance(last, Finished)
        assert last.outcome == "stopped"


def test_what_is_sent_arrives_byte_by_byte(tmp_path, good):
    """All of the worker's code, into an empty cache."""
    launch = (*BAD_LINE, "--most", "1", "env", f"XDG_CACHE_HOME={tmp_path}/cache")
    settings = Settings(
        scratch=tmp_path, device="cpu", place=Place("p", launch, python=sys.executable), spares=0
    )
    with Runner(settings) as runner:
        assert compared(events_of(runner, TALKS)) == good.talks


# --- a recorded session, cut ---


class NearInThread:
    """What host code takes for the process of the near end: many are to be started."""

    def __init__(self, command, *, pass_fds, **_):
        self._control = socket.socket(fileno=os.dup(pass_fds[0]))
        words = json.loads(command[-2])
        self._place = Place(**{**words, "launch": tuple(words["launch"])})
        self.stderr = io.BytesIO()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        with self._control:
            near.Near(self._place, self._control).run()

    def wait(self, timeout=None):
        self._thread.join(timeout)
        if self._thread.is_alive():
            raise subprocess.TimeoutExpired("near", timeout)
        return 0

    def kill(self):
        raise AssertionError("the near end hangs")


class Replay:
    """What the near end takes for the launch command: says again what came, up to a byte.

    A process waits only once it has been asked for, and speaks only once it has its job.
    """

    def __init__(self, came, size, *, stays=False):
        lines = came[: came.index(MAGIC + b"stdio\n") + len(MAGIC) + 6]
        frames = came[len(lines) :]
        # The archive is taken for there.
        self._pieces = [(0, 0, lines.replace(MAGIC + b"send\n", b""))]
        messages = jobs = 0
        while len(frames) >= HEAD.size:
            kind, _, length = HEAD.unpack_from(frames)
            end = HEAD.size + (0 if kind == CREDIT else length)
            messages = max(messages, 2 if kind == OPEN else 0)
            jobs = max(jobs, 1 if kind == DATA else 0)
            self._pieces.append((messages, jobs, frames[:end]))
            frames = frames[end:]
        self.starts = []
        total = 0
        for *_, piece in self._pieces:
            self.starts.append(total)
            total += len(piece)
        self.total = total
        self._left = min(size, total)
        self._stays = stays
        self._skipped = len(script(sys.executable, "")) + len(NOTHING.header) + len(STDIO)

    def __call__(self, *_, **__):
        (read, stdin), (stdout, write) = os.pipe(), os.pipe()
        process = SimpleNamespace(
            stdin=os.fdopen(stdin, "wb", buffering=0),
            stdout=os.fdopen(stdout, "rb", buffering=0),
            stderr=io.BytesIO(),
        )
        thread = threading.Thread(target=self._say, args=(read, write))
        thread.start()
        process.wait = thread.join
        return process

    def _say(self, source, sink):
        heard, left = bytearray(), self._left
        with open(source, "rb", buffering=0) as file, open(sink, "wb", buffering=0) as target:
            for messages, jobs, piece in self._pieces:
                while left and not self._has_heard(heard, messages, jobs):
                    data = file.read(1 << 16)
                    if not data:
                        return
                    heard += data
                try:
                    target.write(piece[:left])
                except BrokenPipeError:
                    return
                left -= len(piece[:left])
            while self._stays and file.read(1 << 16):
                pass

    def _has_heard(self, heard, messages, jobs):
        """So many messages of the host, and orders for processes, have come."""
        kinds, at = [], self._skipped
        while at + HEAD.size <= len(heard):
            kind, _, length = HEAD.unpack_from(heard, at)
            at += HEAD.size + (0 if kind == CREDIT else length)
            kinds += [kind] if at <= len(heard) else []
        # An order to the keeper, and then the job.
        return kinds.count(MESSAGE) >= messages and kinds.count(DATA) >= 2 * jobs


NOTHING = Archive(b"", "0" * 64)


def replayed(monkeypatch, tmp_path, replay):
    """The events of the recorded run where that is what comes."""
    fake = {"DEVNULL": None, "PIPE": None, "TimeoutExpired": subprocess.TimeoutExpired}
    monkeypatch.setattr(zygote, "subprocess", SimpleNamespace(Popen=NearInThread, **fake))
    monkeypatch.setattr(near, "subprocess", SimpleNamespace(Popen=replay, **fake))
    monkeypatch.setattr(near, "pack", lambda: NOTHING)
    place = Place("a place", ("replay",), python=sys.executable)
    with Runner(Settings(scratch=tmp_path, device="cpu", spares=0, place=place)) as runner:
        return compared(events_of(runner, TALKS))


def test_a_recorded_session_gives_its_events_again(monkeypatch, tmp_path, good):
    size = len(good.came)
    assert replayed(monkeypatch, tmp_path, Replay(good.came, size, stays=True)) == good.talks


def test_a_session_cut_anywhere_is_whole_or_told_as_lost(monkeypatch, tmp_path, good):
    """At every byte of the first frame and of heads, and elsewhere at every seventh."""
    whole = Replay(good.came, 1 << 30)
    starts = whole.starts
    cuts = {
        *range(starts[0], starts[0] + 40),
        *(start + i for start in starts[1:] for i in range(HEAD.size + 1)),
        *range(0, whole.total, 7),
        whole.total,
    }
    lost = 0
    for cut in sorted(cuts):
        texts, others = replayed(monkeypatch, tmp_path, Replay(good.came, cut))
        if (texts, others) == good.talks:
            continue
        lost += 1
        for stream, text in texts.items():
            assert good.talks[0][stream].startswith(text), cut
        ends = [event for event in others if isinstance(event, Finished)]
        assert ends == others[-1:], cut
        assert ends[0].outcome == "lost", cut
        assert ends[0].sentence, cut
    assert lost > len(cuts) // 2
