"""What a learner's program says and how it ends, through a real process in a real sandbox."""

import sys
import threading

import pytest

from tensortutor.protocol.events import Finished, Notice, Output, Probed, Raised, Started
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.runner import Runner, Settings


@pytest.fixture
def runner(runner_anywhere):
    return runner_anywhere


def run(runner, source, **more):
    """All events of a run."""
    return list(runner.start(Job(source, **more)))


def text(events, stream="stdout"):
    return "".join(e.text for e in events if isinstance(e, Output) and e.stream == stream)


def only(events, kind):
    (found,) = (e for e in events if isinstance(e, kind))
    return found


def test_a_run_begins_with_started_and_ends_with_finished(runner):
    events = run(runner, "print(6 * 7)")
    assert isinstance(events[0], Started)
    assert events[0].device == "cpu"
    assert text(events) == "42\n"
    assert isinstance(events[-1], Finished)
    assert (events[-1].outcome, events[-1].code) == ("done", 0)


def test_stdout_and_stderr_keep_their_order(runner):
    source = "import sys\nfor i in range(50):\n    print(i)\n    print(-i, file=sys.stderr)\n"
    events = [e for e in run(runner, source) if isinstance(e, Output)]
    assert [e.stream for e in events] == ["stdout", "stderr"] * 50


def test_output_arrives_while_the_program_runs(runner):
    source = "import time\nprint('early')\nwhile True: time.sleep(1)\n"
    run = runner.start(Job(source))
    seen = []
    for event in run:
        seen.append(event)
        if isinstance(event, Output):
            run.stop()
    assert text(seen) == "early\n"
    assert seen[-1].outcome == "stopped"


def test_what_bypasses_python_is_seen_too(runner):
    events = run(runner, "import os\nos.write(1, b'raw\\n')\nos.system('echo child >&2')")
    assert text(events) == "raw\n"
    assert text(events, "stderr") == "child\n"


def test_bytes_that_are_not_text_come_back_as_they_were(runner):
    events = run(runner, "import sys\nsys.stdout.buffer.write(bytes(range(256)))")
    assert text(events).encode("utf-8", "surrogateescape") == bytes(range(256))


def test_a_traceback_shows_the_learners_frames_alone(runner):
    source = (
        "import torch\n\ndef pair(x):\n    return x.view(2)\n\n"
        "print('before')\npair(torch.zeros(3))\n"
    )
    events = run(runner, source, filename="pairs.py")
    raised = only(events, Raised)
    assert raised.type == "RuntimeError"
    assert [(f.function, f.line) for f in raised.frames] == [("<module>", 7), ("pair", 4)]
    assert raised.frames[-1].code == "return x.view(2)"
    assert 'File "pairs.py", line 4, in pair' in raised.text
    assert "site-packages" not in raised.text
    assert "tensortutor" not in raised.text
    assert raised.text.endswith("shape '[2]' is invalid for input of size 3\n")
    assert events[-1].outcome == "raised"
    assert events[-1].code == 1
    assert "line 4" in events[-1].sentence
    assert text(events) == "before\n"


def test_a_library_in_between_does_not_hide_the_learners_line(runner):
    source = "import torch\nnet = torch.nn.Linear(3, 2)\nnet(torch.zeros(1, 4))\n"
    raised = only(run(runner, source), Raised)
    assert [f.line for f in raised.frames] == [3]
    assert "linear.py" not in raised.text


def test_causes_and_contexts_are_kept(runner):
    source = (
        "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n"
        "    raise ValueError('why') from error\n"
    )
    raised = only(run(runner, source), Raised)
    assert "ZeroDivisionError" in raised.text
    assert "direct cause" in raised.text


def test_a_syntax_error_names_line_and_column(runner):
    raised = only(run(runner, "x = 1\ny = (2 +\n", filename="draft.py"), Raised)
    assert raised.type == "SyntaxError"
    assert raised.frames[0].line == 2
    assert 'File "draft.py"' in raised.text


@pytest.mark.parametrize(
    ("source", "outcome", "code", "words"),
    [
        ("import sys; sys.exit(3)", "exited", 3, "status 3"),
        ("import sys; sys.exit('no')", "exited", 1, "status 1"),
        ("import os; os._exit(7)", "exited", 7, "status 7"),
        ("import ctypes; ctypes.string_at(0)", "killed", 139, "segmentation fault"),
        ("import os; os.abort()", "killed", 134, "abort"),
        ("import os; os.kill(os.getpid(), 15)", "killed", 143, "SIGTERM"),
        ("raise KeyError('x')", "raised", 1, "KeyError in line 1"),
        ("bytes(10**12)", "memory", 1, "Out of memory"),
        ("import torch; torch.empty(10**12)", "memory", 1, "Out of memory"),
    ],
)
def test_every_end_has_its_sentence(runner, source, outcome, code, words):
    finished = run(runner, source)[-1]
    assert (finished.outcome, finished.code) == (outcome, code)
    assert words in finished.sentence


def test_time_runs_out(runner):
    events = run(runner, "while True: pass", limits=Limits(wall_s=0.3))
    assert events[-1].outcome == "time"
    assert "0.3 s" in events[-1].sentence


def test_stop_raises_keyboard_interrupt_where_the_program_is(runner):
    run = runner.start(Job("def wait():\n    print('go')\n    while True: pass\n\nwait()\n"))
    events = []
    for event in run:
        events.append(event)
        if isinstance(event, Output):
            run.stop()
    assert only(events, Raised).type == "KeyboardInterrupt"
    assert only(events, Raised).frames[-1].function == "wait"
    assert (events[-1].outcome, events[-1].code) == ("stopped", 130)


def test_a_stop_at_once_is_heard(runner):
    # The order to allow and the order to stop may arrive together: the second counts as well.
    for _ in range(30):
        run = runner.start(Job("import time\ntime.sleep(1000)\n"))
        for event in run:
            if isinstance(event, Started):
                run.stop()
        assert (event.outcome, event.code) == ("stopped", 130)


def test_stop_kills_what_does_not_listen(runner):
    source = (
        "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "print('go')\nwhile True: pass\n"
    )
    run = runner.start(Job(source))
    events = []
    for event in run:
        events.append(event)
        if isinstance(event, Output):
            run.stop()
    assert events[-1].outcome == "stopped"
    assert "killed" in events[-1].sentence


def test_stop_before_the_beginning(runner):
    run = runner.start(Job("print('never')"))
    run.stop()
    events = list(run)
    assert text(events) == ""
    assert events[-1].outcome == "stopped"
    run.stop()  # and after the end: nothing


def test_kept_output_is_bounded_and_the_rest_counted(runner):
    limits = Limits(output_bytes=1000)
    events = run(runner, "print('x' * 4999)", limits=limits)
    assert len(text(events)) == 1000
    assert events[-1].dropped == 4000
    assert events[-2] == Notice(
        "The program has printed 0.001 MB, the limit of a run; the rest is counted, not kept."
    )


def test_that_output_is_no_longer_kept_is_said_while_the_program_goes_on(runner):
    source = "print('x' * 2000)\nwhile True:\n    print('more')\n"
    run = runner.start(Job(source, limits=Limits(output_bytes=1000)))
    notices = []
    for event in run:
        if isinstance(event, Notice):
            notices.append(event)
            run.stop()
    assert len(notices) == 1


def test_every_run_starts_clean(runner):
    assert run(runner, "import torch; torch.mine = 1; mine = 2")[-1].code == 0
    events = run(runner, "import torch; print(hasattr(torch, 'mine'), 'mine' in globals())")
    assert text(events) == "False False\n"


def test_random_streams_differ_from_run_to_run(runner):
    source = (
        "import random, numpy, torch\n"
        "print(random.random(), numpy.random.rand(), torch.rand(1).item())"
    )
    first, second = (text(run(runner, source)).split() for _ in range(2))
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_files_in_scratch_last_from_run_to_run_of_one_lesson(runner):
    save = "import torch; torch.save(torch.arange(3), 'x.pt')"
    load = "import torch; print(torch.load('x.pt').tolist())"
    assert run(runner, save, scratch="one")[-1].code == 0
    assert text(run(runner, load, scratch="one")) == "[0, 1, 2]\n"
    assert run(runner, load, scratch="other")[-1].outcome == "raised"


def test_the_compilers_cache_lasts_from_run_to_run_of_one_lesson(runner):
    where = "import os\nfrom torch._inductor.runtime.cache_dir_utils import cache_dir\n"
    keep = where + "os.makedirs(cache_dir(), exist_ok=True)\nopen(cache_dir() + '/kernel', 'w')"
    assert run(runner, keep, scratch="compiled")[-1].code == 0
    found = text(run(runner, where + "print(os.listdir(cache_dir()))", scratch="compiled"))
    assert found == "['kernel']\n"


def test_a_module_left_in_scratch_is_not_imported(runner):
    run(runner, "open('random.py', 'w').write('print(1 / 0)')", scratch="trap")
    assert run(runner, "import random, statistics", scratch="trap")[-1].code == 0


def test_device_is_there(runner):
    assert text(run(runner, "print(repr(device))")) == "device(type='cpu')\n"


def test_arguments(runner):
    events = run(runner, "import sys; print(sys.argv[1:])", arguments=("a", "b c"))
    assert text(events) == "['a', 'b c']\n"


def test_probes_are_values_of_the_programs_names(runner):
    source = "import torch\nx = torch.tensor([[1., 2.]])\n"
    probes = ("x.shape", "x", "y = x.sum()\ny.item()", "x.dtype", "nothing")
    found = [e for e in run(runner, source, probes=probes) if isinstance(e, Probed)]
    assert [p.value for p in found[:4]] == [[1, 2], [[1.0, 2.0]], 3.0, "torch.float32"]
    assert "NameError" in found[4].error


def test_input_explains_itself(runner):
    raised = only(run(runner, "input('name? ')"), Raised)
    assert raised.type == "EOFError"
    assert "no keyboard" in raised.text


def test_two_runs_at_once(runner):
    results = {}

    def one(name):
        results[name] = text(run(runner, f"import time; time.sleep(.2); print({name!r})"))

    threads = [threading.Thread(target=one, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": "a\n", "b": "b\n"}


def test_a_job_for_a_device_that_is_not_there_is_refused(runner):
    absent = "mps" if sys.platform == "linux" else "cuda"
    finished = only(run(runner, "print(device)", device=absent), Finished)
    assert finished.outcome == "lost"
    assert finished.sentence.startswith(f"There is no device '{absent}' here.")
    assert text(run(runner, "print(device)", device="cpu")) == "cpu\n"


def test_a_stack_inside_a_warning_shows_the_programs_lines_alone(runner):
    source = (
        "import torch\n"
        "def root(x):\n    return x.sqrt()\n"
        "with torch.autograd.detect_anomaly():\n"
        "    y = torch.zeros(2, requires_grad=True)\n"
        "    (root(y) * 0).sum().backward()\n"
    )
    warned = text(run(runner, source, filename="norms.py"), "stderr")
    assert "Error detected in SqrtBackward0" in warned
    assert '  File "norms.py", line 6, in <module>\n' in warned
    assert '  File "norms.py", line 3, in root\n    return x.sqrt()\n' in warned
    assert "tensortutor" not in warned


def test_a_run_that_comes_before_torch_says_so(tmp_path):
    with Runner(Settings(scratch=tmp_path, device="cpu")) as runner:
        events = run(runner, "print('there')")
    assert "being loaded" in only(events, Notice).text
    assert text(events) == "there\n"


def test_nothing_of_the_zygote_is_left_in_a_programs_process(runner):
    source = (
        "import gc, sys\ngc.unfreeze()\n"
        "from tensortutor.worker.message_socket import MessageSocket\n"
        "print(sum(type(o) is MessageSocket for o in gc.get_objects()))\n"
        "frame, names = sys._getframe(), []\nwhile frame:\n"
        "    names.append(frame.f_code.co_filename.rpartition('/')[2])\n    frame = frame.f_back\n"
        "print(names.count('zygote.py'))\n"
    )
    assert text(run(runner, source)) == "1\n1\n"


def test_what_compilers_keep_lies_in_the_programs_own_folder(runner):
    """Triton looks for the home folder when it is imported, before a program has its own."""
    source = """
import os
folders = [os.path.dirname(os.environ["TORCHINDUCTOR_CACHE_DIR"]), os.environ["TRITON_HOME"]]
print(folders == [os.getcwd()] * 2)
open(os.path.join(folders[1], "kept"), "w").close()
"""
    events = run(runner, source)
    assert (text(events), only(events, Finished).outcome) == ("True\n", "done")
