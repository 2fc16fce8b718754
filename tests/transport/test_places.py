"""What becomes of a run when a place is not there, or goes away: a sentence, and the next run."""

import os
import platform
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest

from tensortutor.learner.places import UnknownPlace, find_place
from tensortutor.learner.settings import read_settings
from tensortutor.options import Place
from tensortutor.protocol.events import Finished, Notice, Output
from tensortutor.protocol.framing import Decoder, encode
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.protocol.setup import Setup, Waiting, message_from_json, message_to_json
from tensortutor.runner import Runner, RunnerError, Settings
from tensortutor.transport import bootstrap, near
from tensortutor.transport.bootstrap import script
from tensortutor.transport.mux import PING_S
from tensortutor.transport.near import Near, launch_command
from tensortutor.transport.slurm import job_name, queue_summary
from tensortutor.worker.processes import children

HANGS = ("sh", "-c", "exec sleep 1000")
SETUP = Setup("auto", "/no/scratch")


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    """Where what is sent is kept: the learner's own is not for tests."""
    return f"XDG_CACHE_HOME={tmp_path_factory.mktemp('cache')}"


def near_of(place: Place, setup: Setup) -> tuple[socket.socket, threading.Thread]:
    """The host's end of a near end that has been told to begin."""
    control, theirs = socket.socketpair()
    control.sendall(encode(message_to_json(setup)))

    def serve() -> None:
        with theirs:
            Near(place, theirs).run()

    thread = threading.Thread(target=serve)
    thread.start()
    return control, thread


def failure(place: Place, setup: Setup = SETUP) -> str:
    """The sentence that a host gets."""
    control, thread = near_of(place, setup)
    with control:
        data = b""
        while more := control.recv(1 << 16):
            data += more
    thread.join()
    first = Decoder().feed(data)[0]  # host code keeps the first as well
    return message_from_json(first).sentence


def shell(text: str) -> tuple[str, ...]:
    return ("sh", "-c", text)


@pytest.mark.parametrize(
    ("launch", "words"),
    [
        (("/no/such",), "/no/such cannot be started: No such file or directory."),
        (shell("echo Welcome; exit 3"), "ended before Python was started there. It said: Welcome."),
        (shell("exit 1"), 'It has to run a shell in that place, as "ssh HOST" does.'),
        (shell("echo 'h: Permission denied (publickey).' >&2"), "A password cannot be asked for"),
        (shell("echo Password: >&2; read word"), "A password cannot be asked for here"),
        (shell("printf 'Password: ' >&2; read word; exec sleep 9"), "A password cannot be asked"),
        (shell("while read word; do :; done"), "let it do so only where somebody types: [ -t 0 ]"),
        (shell("head -c 300 > /dev/null; exec sh"), "only where somebody types: [ -t 0 ] && read"),
        (
            shell("echo 'sh: Syntax error: (' >&2"),
            "(~/.bashrc, ~/.profile) or the setup line reads",
        ),
        (shell("echo 'Host key verification failed.' >&2"), "Connect once by hand, and accept its"),
        (shell("exec env -u PATH sh"), "started there. It said:"),
        (shell("echo tensortutor-stream python 3 8 /opt/py; exec sleep 9"), "is Python 3.8; 3.10"),
        (HANGS, "the place gave no answer for 0.3 s before Python was started there"),
        (shell("exec yes"), "the place gave no answer for 0.3 s"),
    ],
)
def test_a_place_that_cannot_be_reached_is_told_in_a_sentence(launch, words, monkeypatch):
    monkeypatch.setattr(near, "START_S", 5.0 if "3 8" in launch[-1] else 0.3)
    assert words in failure(Place("the place", launch, python="/no/python9"))


def test_a_missing_python_is_told_with_the_way_out():
    said = failure(Place("the place", ("env",), python="python9"))
    assert "python9: not found. Name an interpreter that is there with --python." in said


def test_a_python_without_torch_is_told_with_the_way_out(tmp_path, cache):
    venv.create(tmp_path / "bare", with_pip=False)
    python = str(tmp_path / "bare/bin/python")
    setup = Setup("auto", str(tmp_path))
    said = failure(Place("the place", ("env", cache), python=python), setup)
    assert f"{python} has no torch. Install it there" in said
    folder = Path(cache.partition("=")[2], "tensortutor")
    assert [path.name[:5] for path in folder.iterdir()] == ["sent-"]


def test_who_is_not_spoken_to_any_more_ends(tmp_path, monkeypatch):
    """As when the machine at the other end is gone, and nobody closes the stream."""
    monkeypatch.setattr(bootstrap, "STAGE", bootstrap.STAGE.replace("alarm(120)", "alarm(1)"))
    stage = subprocess.Popen(
        ["env", f"XDG_CACHE_HOME={tmp_path}", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with stage:
        stage.stdin.write(script(sys.executable, ""))
        stage.stdin.flush()
        assert stage.wait(60.0) == -signal.SIGALRM


def test_what_was_sent_long_ago_is_removed(tmp_path):
    kept = tmp_path / "tensortutor"
    for name, days in (("sent-old", 31), ("sent-young", 29), ("other", 99)):
        (kept / name / "inside").mkdir(parents=True)
        then = time.time() - days * 86_400
        os.utime(kept / name, (then, then))
    venv.create(tmp_path / "bare", with_pip=False)
    place = Place("p", ("env", f"XDG_CACHE_HOME={tmp_path}"), python=f"{tmp_path}/bare/bin/python")
    assert "has no torch" in failure(place)
    names = sorted(path.name for path in kept.iterdir())
    assert (names[0], names[-1], len(names)) == ("other", "sent-young", 3)


def test_who_is_left_alone_while_unpacking_leaves_nothing_behind(tmp_path):
    stage = subprocess.Popen(
        ["env", f"XDG_CACHE_HOME={tmp_path}", "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        bufsize=0,
    )  # fmt: skip
    with stage:
        stage.stdin.write(script(sys.executable, ""))
        assert b" python " in stage.stdout.readline()
        stage.stdin.write(b"0" * 64 + b"%012d" % 9 + b"half")
        assert b" send" in stage.stdout.readline()
        (work,) = (tmp_path / "tensortutor").iterdir()
        assert work.name.startswith(f"unpacking-{stage.pid}-{platform.node()}-")
        stage.stdin.close()
        stage.wait()
    assert list((tmp_path / "tensortutor").iterdir()) == []


def test_what_was_left_behind_while_unpacking_is_removed(tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    node, kept = platform.node(), tmp_path / "tensortutor"
    stays = {
        f"unpacking-{os.getpid()}-{node}-abcdefgh": 0.5,  # it may still be at it
        f"unpacking-{ended.pid}-elsewhere-{node}-abcdefgh": 0.5,  # nobody here can tell
    }
    goes = {
        f"unpacking-{ended.pid}-{node}-abcdefgh": 0.0,
        f"unpacking-{os.getpid()}-{node}-stuvwxyz": 1.5,  # another process has that number now
        f"unpacking-{ended.pid}-elsewhere-{node}-stuvwxyz": 1.5,
    }
    for name, days in {**stays, **goes}.items():
        (kept / name / "inside").mkdir(parents=True)
        then = time.time() - days * 86_400
        os.utime(kept / name, (then, then))
    venv.create(tmp_path / "bare", with_pip=False)
    place = Place("p", ("env", f"XDG_CACHE_HOME={tmp_path}"), python=f"{tmp_path}/bare/bin/python")
    assert "has no torch" in failure(place)
    left = {path.name for path in kept.iterdir() if path.name.startswith("unpacking-")}
    assert left == set(stays)


def test_who_leaves_ends_what_has_not_answered(tmp_path):
    log = tmp_path / "pid"
    control, thread = near_of(Place("p", shell(f"echo $$ > {log}; exec sleep 1000")), SETUP)
    while not (log.exists() and log.read_text()):
        thread.join(0.02)
    control.close()
    thread.join()
    with pytest.raises(ProcessLookupError):
        os.kill(int(log.read_text()), 0)


QUEUES = """#!/bin/sh
echo "srun: job 5 queued and waiting for resources" >&2
cat {turn}
echo "srun: job 5 has been allocated resources" >&2
exec sleep 1000
"""


def test_waiting_in_slurms_queue_is_told_and_takes_as_long_as_it_takes(tmp_path, monkeypatch):
    turn = tmp_path / "turn"
    os.mkfifo(turn)
    for name, text in (("srun", QUEUES.format(turn=turn)), ("squeue", "#!/bin/sh\necho Resources")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(near, "START_S", 2.0)
    monkeypatch.setattr(near, "QUEUE_EVERY_S", 0.0)
    control, thread = near_of(Place("srun", ("srun",)), SETUP)
    decoder, said = Decoder(), []
    with control:
        while more := control.recv(1 << 16):
            said += map(message_from_json, decoder.feed(more))
            if len(said) == 6:  # told every half second: longer than an answer may take
                turn.write_text("")
    thread.join()
    assert set(said[:-1]) == {Waiting("waiting for Slurm: Resources (job 5)")}
    assert said[-1].sentence.startswith("srun gave no answer for 2 s before Python was started")


def test_a_command_says_what_it_waits_for(tmp_path, monkeypatch):
    turn = tmp_path / "turn"
    os.mkfifo(turn)
    scripts = {
        "srun": f'echo "srun: job 5 queued and waiting for resources" >&2; cat {turn}; exit 1',
        "squeue": "echo Resources",
    }
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    told = []

    def tell(sentence):
        told.append(sentence)
        turn.write_text("")  # it waits no longer

    with Runner(Settings(scratch=tmp_path / "s", place=Place("srun", ("srun",)))) as runner:
        with pytest.raises(RunnerError, match="srun ended before Python was started there"):
            runner.prepare(tell)
    assert told == ["Waiting for Slurm: Resources (job 5)."]


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Makes commands of Slurm out of scripts."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)

    def make(**scripts):
        for name, text in scripts.items():
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)

    return make


def test_a_killed_srun_has_its_job_given_back(slurm, tmp_path):
    """Slurm does not learn of it if the job has had no step yet."""
    log = tmp_path / "log"
    slurm(srun="kill -9 $$", squeue="true", scancel=f'echo "$@" >> {log}')
    assert "srun ended before Python was started" in failure(Place("srun", ("srun",)))
    assert log.read_text() == f"--name {job_name()}\n"


def test_a_job_is_not_given_back_by_a_step_of_it(slurm, tmp_path, monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    log = tmp_path / "log"
    slurm(srun="kill -9 $$", squeue="true", scancel=f'echo "$@" >> {log}')
    assert "srun ended before Python was started" in failure(Place("srun", ("srun",)))
    assert not log.exists()


def test_jobs_whose_session_was_killed_are_given_back_by_the_next(slurm, tmp_path):
    ended = subprocess.Popen(["true"])
    ended.wait()
    here = job_name().removesuffix(str(os.getpid()))
    gone = f"{here}{ended.pid}"
    others = (job_name(), f"{here}mine", f"tensortutor-elsewhere-1-{ended.pid}", str(ended.pid))
    told = tmp_path / "told"
    os.mkfifo(told)
    slurm(
        srun=f"read line < {told}; echo $line >&2; exit 1", scancel=f'echo "$@" > {told}',
        squeue="\n".join(f"echo {name}" for name in (*others, gone)),
    )  # fmt: skip
    said = failure(Place("srun", ("srun",)))
    assert f"It said: --name {gone}." in said


def test_what_is_started_gets_what_a_stream_of_bytes_needs(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    named = f"--job-name={job_name()}"  # a name that the learner gives comes later, and counts
    assert launch_command(("srun", "-p", "gpu")) == ["srun", "-u", "-n1", named, "-p", "gpu", "sh"]
    assert launch_command(("ssh", "host")) == ["ssh", "-o", "BatchMode=yes", "host", "sh"]
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    assert launch_command(("/bin/srun",)) == ["/bin/srun", "-u", "-n1", "--overlap", "sh"]


def test_the_setup_line_comes_before_the_interpreter():
    done = subprocess.run(
        ["sh"], input=script("$SHELL_PYTHON", "echo set up"), capture_output=True, check=False
    )
    assert done.stdout == b"set up\n"
    assert b"$SHELL_PYTHON" in done.stderr  # a path, not a word for the shell


def test_places_have_names(tmp_path):
    file = tmp_path / "settings.toml"
    file.write_text(
        '[places.gpu]\nlaunch = "srun -p gpu"\nsetup = "module load cuda"\n'
        '[places.bare]\nsetup = "x"\n[places.odd]\nlaunch = "ssh \'h"\nfrom = 1\n'
    )
    settings = read_settings(file)
    assert find_place("", settings.places, None) is None
    found = find_place("gpu", settings.places, "/py")
    assert found == Place("gpu", ("srun", "-p", "gpu"), "module load cuda", "/py")
    said = "\n".join(settings.notices)
    assert 'places.bare needs a command: launch = "ssh HOST".' in said
    assert "there is no places.odd.from; there are: launch, setup, python." in said
    assert "places.odd.launch cannot be read as a command: No closing quotation." in said
    assert find_place("env A=1", (), None) == Place("env A=1", ("env", "A=1"))
    with pytest.raises(UnknownPlace, match=r"no command 'nowhere' .*there: gpu"):
        find_place("nowhere", settings.places, None)
    with pytest.raises(UnknownPlace, match="cannot be read as a command"):
        find_place("env 'a", (), None)


ENDS = "slurmstepd-n7: error: *** STEP 5.0 ON n7 CANCELLED AT 2026-11-25T23:37:01{} ***"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("", "Slurm ended the job: it was cancelled."),
        (" DUE TO TIME LIMIT", "Slurm ended the job: its time is over."),
        (" DUE TO PREEMPTION", "Slurm ended the job: another job comes first and takes its place."),
        (
            " DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS",
            "Slurm ended the job: the node has failed.",
        ),
        (" DUE TO JOB REQUEUE", "Slurm ended the job: job requeue."),
    ],
)
def test_why_slurm_ended_a_job_is_told_in_plain_words(reason, words):
    said = failure(Place("gpu", shell(f"echo '{ENDS.format(reason)}' >&2; echo 'srun: x' >&2")))
    assert said == f"gpu ended before Python was started there. It said: {words}"


def test_a_queue_is_described_as_far_as_slurm_answers(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert queue_summary("gpu") == "partition gpu"
    answers = {"sinfo": "up 3/1/0/4 1-00:00:00", "squeue": "5 gpu PD\n6 gpu PD"}
    for name, text in answers.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / name).chmod(0o755)
    assert queue_summary("gpu") == (
        "partition gpu: up, 1 of 4 nodes idle, 2 jobs waiting, time limit 1-00:00:00"
    )


def test_stopping_a_run_takes_back_what_was_asked_for(tmp_path):
    with Runner(Settings(scratch=tmp_path, place=Place("far away", HANGS))) as runner:
        run = runner.start(Job("print(1)"))
        events = []
        for event in run:
            events.append(event)
            if isinstance(event, Notice):
                run.stop()
        assert events[-1].outcome == "stopped"
        assert runner.status.state == "cold"


def test_a_lost_connection_is_told_and_the_next_run_asks_for_a_new_one(tmp_path, cache):
    """Though a start file of the shell there prints something, and waits for an answer."""
    rc = tmp_path / "rc"
    rc.write_text("echo Welcome\necho 'bash: warning: no locale' >&2\nread answer\n")
    launch = ("env", cache, f"BASH_ENV={rc}", "bash", "-c", 'exec "$@"', "bash", "env", "-u")
    place = Place("the place", (*launch, "BASH_ENV"), python=sys.executable)
    folders = tmp_path / "scratch", tmp_path / "of my own"
    folders[1].mkdir()
    settings = Settings(scratch=folders[0], device="cpu", place=place, read=(folders[1],))
    with Runner(settings) as runner:
        run = runner.start(Job("print('begun', flush=True)\nwhile True: pass"))
        events = []
        for event in run:
            events.append(event)
            if isinstance(event, Output):
                (far,) = children(runner._zygote._process.pid)
                os.kill(int(far), signal.SIGKILL)
        assert events[-1].outcome == "lost"
        assert events[-1].sentence == "The connection to the place ended: it was closed."
        assert [e.text for e in runner.start(Job("print('again')")) if isinstance(e, Output)] == [
            "again\n"
        ]
        assert runner.status.place.interpreter == sys.executable


def test_a_place_that_does_not_answer_is_told_and_the_next_run_asks_for_it_anew(tmp_path, cache):
    place = Place("the place", ("env", cache), python=sys.executable)
    said = f"the place does not answer: nothing came from there for {near.QUIET_S:g} s."
    limits = Limits(wall_s=near.QUIET_S + 2 * PING_S)
    with Runner(Settings(scratch=tmp_path / "s", device="cpu", place=place)) as runner:
        run = runner.start(
            Job("import time\nprint('begun', flush=True)\ntime.sleep(600)", limits=limits)
        )
        events = []
        for event in run:
            events.append(event)
            if isinstance(event, Output):
                (far,) = children(runner._zygote._process.pid)
                stopped = os.pidfd_open(int(far))
                os.kill(int(far), signal.SIGSTOP)
        assert events[-2] == Notice(said)
        assert (events[-1].outcome, events[-1].sentence) == (
            "lost", f"{said} The next run asks for it again.",
        )  # fmt: skip
        again = [*runner.start(Job("print('again')"))]
        assert again[0] == Notice(f"{said} It is asked for again.")
        assert [event.text for event in again if isinstance(event, Output)] == ["again\n"]
    with os.fdopen(stopped):
        assert select.select([stopped], [], [], 60.0)[0], "what is stopped was left behind"


ONCE = 'if [ -e "$0" ]; then exec sleep 1000; fi; touch "$0"; exec "$@"'


def test_a_new_place_is_waited_for_until_the_run_is_stopped(tmp_path, cache):
    """The first one is there and is lost; the second one never comes."""
    launch = ("sh", "-c", ONCE, str(tmp_path / "was here"), "env", cache)
    place = Place("the place", launch, python=sys.executable)
    with Runner(Settings(scratch=tmp_path / "s", device="cpu", place=place)) as runner:
        runner.prepare()
        (far,) = children(runner._zygote._process.pid)
        os.kill(int(far), signal.SIGKILL)
        while runner.status.state == "ready":
            time.sleep(0.01)
        run = runner.start(Job("print(1)"))
        events = []
        for event in run:
            events.append(event)
            run.stop()
        assert [type(event) for event in events] == [Notice, Finished]
        assert events[-1].outcome == "stopped"


def test_a_folder_of_ones_own_that_is_not_there_is_named(tmp_path, cache):
    setup = Setup("auto", str(tmp_path), readable=(f"{tmp_path}/gone",))
    said = failure(Place("p", ("env", cache), python=sys.executable), setup)
    assert f"The folder {tmp_path}/gone is not on " in said
