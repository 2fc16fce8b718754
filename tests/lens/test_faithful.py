"""Under the lens, too, a program prints and ends as under plain `python file.py`.

A choice of the programs of tests/runner: those that a tracer, a listener to backward passes or a
look at every object could disturb.
"""

import sys
from dataclasses import replace

import pytest

from tensortutor.protocol.events import Finished
from tensortutor.protocol.jobs import Job, Limits, Look
from tests.runner.plain_python import FILE, Ran, case
from tests.runner.test_faithful import text_of

PROGRAMS = (
    "arguments", "asyncio_program", "autograd_and_optimizer", "compile_eager", "context_variables",
    "dataclasses_and_enums", "exit_handlers", "exit_status", "file_never_closed",
    "fork_with_queue", "forked_child_raises", "frames_and_recursion", "garbage_and_finalizers",
    "module_destructors", "own_excepthook", "pickle_by_name", "raises", "random_seeded",
    "signals_as_usual", "source_of_a_function", "threads", "warnings_once",
)  # fmt: skip


DEEPEST = "frames_and_recursion"
ONE_LEVEL = "Below 3.11 a tracer's call is what goes too deep first: the error ends in other words."


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_does_what_plain_python_does(runner_on_cpu, plain_python, name, request):
    if name == DEEPEST and sys.version_info < (3, 11):
        request.applymarker(pytest.mark.xfail(reason=ONE_LEVEL, strict=True))
    about, source = case(name)
    ours = []
    for plain in plain_python.runs(name):
        limits = Limits(**{"wall_s": 60.0, **about.limits})
        job = Job(source, FILE, about.arguments, scratch=f"lens.{name}", limits=limits)
        events = list(runner_on_cpu.start(replace(job, look=Look(trace=True, names=True))))
        finished = events[-1]
        assert isinstance(finished, Finished)
        out = text_of(events, "stdout").encode("utf-8", "surrogateescape")
        ours.append((Ran(out, finished.code), Ran(plain.stdout, plain.code)))
    assert all(mine == theirs for mine, theirs in ours), ours
