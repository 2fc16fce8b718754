"""A program prints and exits as it does under plain `python file.py`.

The programs are in `programs/`, plain_python.py runs them. What is compared is standard output,
byte for byte, and the exit status. Standard error is not: tracebacks there are shortened to the
learner's own frames.
"""

import pytest

from tensortutor.protocol.events import Event, Finished, Output, Raised
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.runner import Runner
from tests.hostile import corpus
from tests.runner.plain_python import FILE, PROGRAMS, PlainPython, Ran, case


def runner_run(runner: Runner, name: str) -> Ran:
    about, source = case(name)
    limits = Limits(**{"wall_s": 40.0, **about.limits})
    job = Job(source, FILE, about.arguments, scratch=f"faithful.{name}", limits=limits)
    events = list(runner.start(job))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.dropped == 0, finished
    return Ran(text_of(events, "stdout").encode("utf-8", "surrogateescape"), finished.code,
               text_of(events, "stderr"))  # fmt: skip


def text_of(events: list[Event], stream: str) -> str:
    """All that was written to a stream; a traceback belongs to stderr."""
    return "".join(
        event.text
        for event in events
        if (isinstance(event, Output) and event.stream == stream)
        or (isinstance(event, Raised) and stream == "stderr")
    )


def pairs() -> list[tuple[str, str]]:
    """Every layer with every program that can work in it; plain Python runs once for both."""
    return [(layer, name) for name in corpus.names(PROGRAMS) for layer in case(name)[0].layers]


@pytest.mark.parametrize(("layer", "name"), pairs(), indirect=["layer"])
def test_a_program_does_what_plain_python_does(
    name: str, layer: str, runner: Runner, plain_python: PlainPython
) -> None:
    about, _ = case(name)
    plain = plain_python.runs(name)
    ours = tuple(runner_run(runner, name) for _ in range(about.runs))
    why = f"stderr of the Runner: {ours[-1].stderr}\nstderr of python: {plain[-1].stderr}"
    if about.same:
        assert [ran.stdout for ran in ours] == [ran.stdout for ran in plain], why
    else:
        assert len({ran.stdout for ran in (*ours, *plain)}) == len(ours) + 1, why
        plain *= len(ours)
    assert [ran.code for ran in ours] == [ran.code for ran in plain], why
    for words in about.stderr:
        assert words in ours[-1].stderr
