"""The command line as people use it, with a real worker."""

import atexit
import fcntl
import io
import json
import os
import pty
import re
import shlex
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from contextlib import closing, redirect_stderr, redirect_stdout
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tensortutor import __version__
from tensortutor.cli import main
from tensortutor.commands.session import Session
from tensortutor.course.catalog import find_lesson, load_course
from tensortutor.learner.answers import shown
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.skipping import question_of
from tensortutor.options import AppOptions
from tensortutor.runner import Runner, Settings, versions

ROOT = Path(__file__).resolve().parents[1]
TINY = ROOT / "tests" / "course" / "data" / "tiny"
MEANS, REPAIR = "basics/means", "repairs/lost_dim"
RIGHT = "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)\n"
COMMAND = [sys.executable, "-m", "tensortutor"]
OWN_RUNNER = Session.runner
NEVER_S = 120
COMMANDS = (
    "list", "show", "next", "run", "check", "answer", "explain", "hint", "reset", "where",
    "doctor", "worker", "new", "verify", "progress", "export", "watch", "review", "reference",
    "compare", "skip", "teach", "share", "ask-for-help", "hand-in", "class",
)  # fmt: skip


@cache
def shared_runner() -> Runner:
    """A Runner for all commands of this process: each of its own takes seconds to start."""
    folder = tempfile.TemporaryDirectory(prefix="scratch-")
    runner = Runner(Settings(scratch=Path(folder.name), device="cpu"))
    runner.prepare()
    atexit.register(folder.cleanup)
    atexit.register(runner.close)
    return runner


def runner_of(session: Session, *, preload: bool = False) -> Runner:
    """The shared Runner, or, for a command that asks for another place or device, its own."""
    options = session.options
    if replace(options, course=None, lesson=None) == AppOptions():
        return shared_runner()
    return OWN_RUNNER(session, preload=preload)


def tensortutor(
    *arguments: str, course: Path | None = TINY, typed: bytes = b"", **settings: Any
) -> "subprocess.CompletedProcess[str]":
    """Run the command line on the tiny course, without a terminal. typed: its standard input.

    In this process, with the shared Runner; in a process of its own where something is asked of it
    (settings: of subprocess.run).
    """
    words = [*(["--course", str(course)] if course else []), *arguments]
    if settings:
        return process(*words, **settings)
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with (
        pytest.MonkeyPatch.context() as patch,
        io.TextIOWrapper(io.BytesIO(typed), "utf-8") as read,
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        patch.setattr(Session, "runner", runner_of)
        patch.setattr(sys, "stdin", read)
        patch.delenv("TENSORTUTOR_ASCII", raising=False)
        patch.chdir(ROOT)
        try:
            status = main(words)
        except SystemExit as left:
            status = left.code if isinstance(left.code, int) else 1
    written = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(words, status, *written)


def process(*words: str, **settings: Any) -> "subprocess.CompletedProcess[str]":
    """Run the command line in a process of its own."""
    settings.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.run(
        [*COMMAND, *words],
        cwd=ROOT,
        capture_output=True,
        encoding="utf-8",
        timeout=NEVER_S,
        **settings,
    )


def on_terminal(
    arguments: Sequence[str], *, columns: int = 120, lines: int = 40, typed: str = "", **env: str
) -> tuple[int, str]:
    """Run the command line on a terminal of this size. Returns the exit status and the screen."""
    host, guest = pty.openpty()
    fcntl.ioctl(guest, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    inherited = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=ROOT,
        stdin=guest,
        stdout=guest,
        stderr=guest,
        env={**inherited, **env},
        start_new_session=True,
    )
    os.close(guest)
    os.write(host, typed.encode())
    screen = b""
    try:
        while chunk := os.read(host, 4096):
            screen += chunk
    except OSError:
        pass  # the other end is closed: how a terminal says that it is over
    os.close(host)
    return process.wait(NEVER_S), screen.decode("utf-8", "replace").replace("\r\n", "\n")


def events(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def refused(done: "subprocess.CompletedProcess[str]", *parts: str) -> None:
    """The command was refused with a sentence that has these parts, and nothing else was said."""
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    for part in parts:
        assert part in done.stderr


# --- help and misuse ---


def test_version() -> None:
    done = tensortutor("--version", course=None)
    assert (done.returncode, done.stdout) == (0, f"tensortutor {__version__}\n")


@pytest.mark.parametrize("before", [(), ("--device", "cpu")])
def test_a_python_file_in_the_place_of_a_command_is_opened(
    before: tuple[str, ...], tmp_path: Path
) -> None:
    folder = tmp_path / "folder.py"
    folder.mkdir()
    code, screen = on_terminal([*before, str(folder), "--epochs", "3"])
    assert (code, screen.endswith("folder.py cannot be opened: it is a folder.\n")) == (2, True)


def test_help_names_every_command() -> None:
    text = tensortutor("-h").stdout
    for name in COMMANDS:
        assert re.search(rf"^    {name} ", text, re.MULTILINE)
        own = tensortutor(name, "-h")
        assert own.returncode == 0
        assert own.stdout.startswith(f"usage: tensortutor {name} ")
    assert tensortutor("-h", "list").stdout == text
    # What is no command is answered with all that there are, options before it or not.
    assert all(repr(name) in tensortutor("--device", "cpu", "lst").stderr for name in COMMANDS)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["lst"], "invalid choice: 'lst'"),
        (["list", "--device", "tpu"], "'tpu' is no device"),
        (["list", "--sandbox", "none"], "invalid choice: 'none'"),
        (["show", MEANS, "--step", "0"], "not a whole number from 1"),
        (["show", MEANS, "--step", "99"], "steps 1 to 6, not 99"),
        (["check", MEANS, "--seed", "-1"], "--seed"),
        (["check", MEANS, "no_such_file.py"], "no_such_file.py cannot be read"),
        (["run"], "Name either a file or a lesson"),
        (["run", "--lesson", MEANS, "a.py"], "Name either a file or a lesson"),
        (["run", "no_such_file.py"], "no_such_file.py cannot be read: no such file"),
        (["run", "--lesson", MEANS, "--step", "1"], "has no code. These have: 2, 3, 4"),
        (["hint", MEANS, "--json"], "--json is for these commands: list, run, check"),
        (["--json"], "--json is for these commands"),
        (["answer", MEANS, "1", "7"], "asks nothing. These do: 3"),
        (["answer", MEANS, "3", "7", "--question", "7"], "questions 1 to 6, not 7"),
        (["answer", MEANS, "3", "seven"], "'seven' is no answer to this question. Type a number"),
        (["reset", MEANS], "Add --yes"),
        (["where", "--step", "2"], "--step goes with a lesson"),
    ],
)
def test_misuse_is_a_sentence_and_exit_status_2(arguments: list[str], part: str) -> None:
    refused(tensortutor(*arguments), part)


def test_an_unknown_lesson_is_met_with_the_nearest_ones() -> None:
    refused(tensortutor("show", "basics/meens"), "'basics/meens'", MEANS, REPAIR)


def test_a_course_that_is_none_and_one_that_is_broken(tmp_path: Path) -> None:
    refused(tensortutor("list", course=tmp_path), "lessons/course.toml")
    broken = tmp_path / "course"
    shutil.copytree(TINY, broken)
    (broken / "lessons/01_basics/01_means.md").write_text("+++\ntitle = 1\n+++\n")
    refused(tensortutor("list", course=broken), "lessons/01_basics/01_means.md:")


# --- what is imported, and when ---


def test_reading_the_course_loads_neither_torch_nor_textual() -> None:
    script = (
        "import sys; from tensortutor.cli import main; main(sys.argv[1:]);"
        "print({'torch', 'textual', 'rich'} & set(sys.modules))"
    )
    command = [sys.executable, "-c", script, "--course", str(TINY), "list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_importing_the_command_line_loads_almost_nothing() -> None:
    script = "import sys, tensortutor.cli; print([m for m in sys.modules if 'tensortutor' in m])"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert sorted(eval(done.stdout)) == [
        "tensortutor", "tensortutor.arguments", "tensortutor.cli", "tensortutor.options",
        "tensortutor.protocol", "tensortutor.protocol.layers",
    ]  # fmt: skip


# --- list and show ---


def test_list_shows_every_lesson_and_its_state() -> None:
    done = tensortutor("list")
    assert done.returncode == 0
    assert "0 of 2 lessons passed" in done.stdout
    assert f"○ open    {MEANS}" in done.stdout
    assert f"– locked  {REPAIR}" in done.stdout


def test_list_as_json() -> None:
    first, second = events(tensortutor("list", "--json").stdout)
    assert (first["event"], first["lesson"], first["state"]) == ("lesson", MEANS, "open")
    assert (second["state"], second["missing"]) == ("locked", [MEANS])
    assert events(tensortutor("--json", "list").stdout) == [first, second]


def test_list_in_a_locale_without_unicode() -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = tensortutor("list", env=env)
    assert done.returncode == 0
    assert f"o open    {MEANS}" in done.stdout
    assert f"- locked  {REPAIR}" in done.stdout
    assert done.stdout.isascii()


def test_show_prints_the_whole_lesson_without_outputs_and_answers(own_home: Path) -> None:
    done = tensortutor("show", "1.1")
    text = done.stdout
    assert done.returncode == 0
    assert text.startswith("Means of rows\nAverage along a dimension")
    for number, title in enumerate(
        ["Insight", "See it run", "Predict", "Practice", "Debugging", "In the wild"], 1
    ):
        assert f"Step {number} of 6: {title}" in text
    assert "    print(x.mean(dim=1))" in text
    assert "torch.Size([2, 1])" not in text
    assert "  2. the columns" in text
    assert f"tensortutor answer {MEANS} 3 VALUE --question 6" in text
    assert "The last column holds" not in text
    assert "return x - x.mean(dim=1" not in text
    assert "RuntimeError: mean(): could not infer output dtype" in text
    file = own_home / "work/basics/means/means.py"
    assert f"Your file: {file}" in text
    assert "def centre(x):" in file.read_text()


def test_show_one_step_and_remember_the_place(own_home: Path) -> None:
    text = tensortutor("show", MEANS, "--step", "2").stdout
    assert text.startswith("Step 2 of 6: See it run")
    assert "Step 3" not in text
    assert not (own_home / "work").exists()
    assert tensortutor("next").stdout.startswith("Step 2 of 6")


def test_the_solution_is_shown_after_passing_or_on_purpose() -> None:
    refused(tensortutor("show", MEANS, "--solution"), "--spoil", "tensortutor hint")
    assert tensortutor("show", MEANS, "--solution", "--spoil").stdout == RIGHT


def test_a_locked_lesson_names_what_opens_it() -> None:
    for command in (["check"], ["hint"], ["where"], ["run", "--lesson"]):
        done = tensortutor(*command, REPAIR)
        refused(
            done, f"locked until you have passed: {MEANS}", "add --anyway to the command",
            f"tensortutor show {REPAIR}", f"tensortutor skip {REPAIR}",
        )  # fmt: skip


def test_a_locked_lesson_is_read_without_a_trace(own_home: Path) -> None:
    tensortutor("show", MEANS, "--step", "2")
    before = (own_home / "progress.db").read_bytes()
    for words in ([], ["--step", "3"]):
        done = tensortutor("show", REPAIR, *words)
        assert done.returncode == 0, done
        assert "nothing was recorded" in done.stdout
        assert f"tensortutor skip {REPAIR} --course {TINY}\n" in done.stdout
        assert "Your file" not in done.stdout
    assert (own_home / "progress.db").read_bytes() == before
    assert not (own_home / "work" / "repairs").exists()


def test_what_a_locked_lesson_builds_on_is_asked_by_a_question_each(own_home: Path) -> None:
    means, progress = find_lesson(load_course(TINY), MEANS), Progress.open(Paths(own_home))
    wrong = tensortutor("skip", REPAIR, stdin=None, input="-7\n")
    assert (wrong.returncode, "✗ wrong" in wrong.stdout) == (1, True), wrong
    assert f"{REPAIR} stays locked. 1 of the lessons" in wrong.stdout
    question = question_of(means, progress)
    assert question is not None
    value = shown(question.quiz, question.quiz.answer)
    right = tensortutor("skip", REPAIR, stdin=None, input=f"{value}\n")
    assert (right.returncode, "✓ right" in right.stdout) == (0, True), right
    assert f"Known now: {MEANS}\n" in right.stdout
    assert right.stdout.endswith(f"{REPAIR} is open.\n")
    rows = {row["lesson"]: row for row in events(tensortutor("list", "--json").stdout)}
    assert (rows[MEANS]["state"], rows[MEANS]["known_by"]) == ("known", "")
    assert rows[REPAIR]["state"] == "open"
    assert "you skipped it and answered a question" in tensortutor("progress", "basics").stdout
    refused(tensortutor("skip", REPAIR), "there is nothing to skip")


def test_a_solution_opened_before_passing_is_help(own_home: Path) -> None:
    tensortutor("show", MEANS, "--solution", "--spoil")
    progress = Progress.open(Paths(own_home))
    progress.record_attempt(MEANS, True, 3, 3)
    progress.mark_passed(MEANS)
    assert f"{MEANS:<36}the solution\n" in tensortutor("progress").stdout


def test_what_is_said_about_a_locked_lesson_can_be_typed_as_it_stands(tmp_path: Path) -> None:
    anyway = f"--course {shlex.quote(str(TINY))} --anyway"
    page = tensortutor("show", REPAIR, "--anyway").stdout
    assert f"tensortutor answer {REPAIR} 2 VALUE {anyway}\n" in page
    assert f"tensortutor check {REPAIR} {anyway}\n" in page
    (tmp_path / "answer.py").write_text("x = 1\n")
    file = str(tmp_path / "answer.py")
    failed = tensortutor("check", REPAIR, file, "--anyway").stdout
    assert f"to replay: tensortutor check {REPAIR} {file} {anyway} --seed " in failed
    assert "--anyway" not in tensortutor("show", MEANS).stdout


def test_who_passes_a_locked_lesson_is_told_what_it_is_evidence_for(tmp_path: Path) -> None:
    file = tmp_path / "answer.py"
    file.write_text(tensortutor("show", REPAIR, "--solution", "--spoil").stdout)
    done = tensortutor("check", REPAIR, str(file), "--anyway")
    assert done.returncode == 0, done
    assert f"Known by it: {MEANS}" in done.stdout
    assert "Known by it" not in tensortutor("check", REPAIR, str(file)).stdout


def test_a_chapter_is_shown_with_its_lessons() -> None:
    for name in ("repairs", "2"):
        done = tensortutor("show", name)
        assert done.returncode == 0
        assert done.stdout.startswith("2 ")
        assert "– locked  2.1  A lost dimension\n" in done.stdout
        assert REPAIR in done.stdout
        assert MEANS not in done.stdout
    refused(tensortutor("show", "repairs", "--step", "1"), "go with a lesson")
    refused(
        tensortutor("check", "repairs"),
        f"'repairs' is a chapter. Say which of its lessons: {REPAIR}",
    )


def test_a_chapter_is_listed_alone() -> None:
    listed = tensortutor("list", "repairs").stdout
    assert "0 of 1 lessons passed" in listed
    assert REPAIR in listed
    assert MEANS not in listed
    (only,) = events(tensortutor("list", "2", "--json").stdout)
    assert only["lesson"] == REPAIR
    refused(tensortutor("list", "repair"), "There is no lesson 'repair'")


def test_a_program_that_only_warns_is_not_said_to_fail() -> None:
    page = tensortutor("show", MEANS, "--step", "5").stdout
    assert page.count("This fails with:") == 1
    assert "This warns, and goes on:\n\n    UserWarning: the mean" in page


def test_hints_come_one_at_a_time() -> None:
    first, second, after = (tensortutor("hint", MEANS).stdout for _ in range(3))
    assert first == "Hint 1 of 2 for step 4, Practice\nWhich dimension runs along a row?\n"
    assert second.startswith("Hint 2 of 2 for step 4, Practice\n")
    assert after.startswith("There are no more hints.")
    assert first in after
    assert second in after


# --- questions ---


def test_answers_are_judged_explained_and_kept() -> None:
    asked = "Step 3 of 6: Predict\nWhat is the last element of `y`?\n\n"
    wrong = tensortutor("answer", MEANS, "3", "9")
    assert wrong.returncode == 0
    assert wrong.stdout == f"{asked}Your guess: 9\n5 more to guess.\n"
    # The first without an answer is the one that is meant.
    for value in ("false", "3", "torch.float32", "2"):
        tensortutor("answer", MEANS, "3", value)
    last = tensortutor("answer", MEANS, "3", "x.mean()\nx.mean(dim=1)\nx.mean(dim=0)").stdout
    assert "Run the code to see whether you were right:" in last
    assert "Guess" not in tensortutor("show", MEANS).stdout
    ran = tensortutor("run", "--lesson", MEANS, "--step", "3").stdout
    assert "✗ Guess 1 was 9; it is 3.5.\n✓ Guess 2 was right." in ran
    assert "The last column holds 2 and 5." in ran
    assert "Dimension 1 counts the columns." in ran
    # What is known by now is judged at once.
    wrong = tensortutor("answer", MEANS, "3", "9", "--question", "1")
    assert wrong.returncode == 1
    assert wrong.stdout == f"{asked}✗ wrong\n\nThe last column holds 2 and 5.\n"
    again = tensortutor("answer", MEANS, "3", "3.5", "--question", "1")
    assert again.returncode == 0
    page = tensortutor("show", MEANS, "--step", "3").stdout
    assert "You answered 3.5, which is right." in page
    assert "You answered False, which is right." in page


# --- run ---


def test_run_gives_the_programs_bytes_and_its_exit_status(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import sys\n"
        "sys.stdout.buffer.write(b'\\xff\\x00\\x1b[31m\\r\\n')\n"
        "print('ä', sys.argv[1:])\n"
        "print('aside', file=sys.stderr)\n"
        "sys.exit(7)\n"
    )
    done = subprocess.run(
        [*COMMAND, "run", str(program), "--json", "-x"], cwd=ROOT, capture_output=True
    )
    assert done.stdout == b"\xff\x00\x1b[31m\r\n" + "ä ['--json', '-x']\n".encode()
    assert done.stderr == b"aside\n"
    assert done.returncode == 7


def test_run_reports_an_exception_as_python_does(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch\nraise RuntimeError('of my own')\n")
    done = tensortutor("run", str(program))
    assert (done.returncode, done.stdout) == (1, "")
    assert 'File "program.py", line 2' in done.stderr
    assert done.stderr.rstrip().splitlines()[-1].startswith("RuntimeError: ")


def test_run_as_json_ends_with_finished(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_bytes(b"# coding: latin-1\nprint('\xe4')\n")
    done = tensortutor("run", "--json", str(program))
    said = events(done.stdout)
    assert [event["event"] for event in said] == ["started", "output", "finished"]
    assert said[1]["text"] == "ä\n"
    assert said[2]["outcome"] == "done"
    assert done.returncode == 0


def test_on_a_terminal_control_sequences_are_harmless(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        r"import sys; sys.stdout.buffer.write(b'\x1b]0;title\x07\x1b[2Ja\tb\xff\xc2\x9b2J\n')"
    )
    code, screen = on_terminal(["run", str(program)])
    assert code == 0
    assert screen == "^[]0;title^G^[[2Ja\tb\ufffd<U+009B>2J\n"


PLOTS = """
from tensortutor.lab import plot
for step in range(9):
    plot([8 - n for n in range(step + 1)], label="falling", title="loss")
print("printed")
"""


def test_what_a_program_draws_is_kept_apart_from_what_it_prints(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PLOTS)
    done = tensortutor("run", str(program))
    assert (done.returncode, done.stdout) == (0, "printed\n")
    assert done.stderr.splitlines()[0] == "loss   ● falling 0"
    assert done.stderr.count("┤") > 2


def test_on_a_terminal_drawings_come_last_in_their_last_state(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PLOTS)
    code, screen = on_terminal(
        ["run", str(program)], columns=50, TENSORTUTOR_ASCII="1", NO_COLOR="1"
    )
    lines = screen.splitlines()
    assert (code, lines[:2]) == (0, ["printed", "loss   * falling 0"])
    assert screen.count("falling") == 1
    assert max(map(len, lines)) == 50
    assert screen.isascii()


def test_run_a_step_as_the_learner_left_it(own_home: Path) -> None:
    done = tensortutor("run", "--lesson", MEANS, "--step", "2")
    assert done.stdout == "tensor([1., 4.])\ntorch.Size([2, 1])\n"
    path = tensortutor("where", MEANS, "--step", "2").stdout.strip()
    assert path == str(own_home / "work/basics/means/means_2.py")
    Path(path).write_text("print(device)\n")
    done = tensortutor("run", "--lesson", MEANS, "--step", "2", "--device", "cpu")
    assert done.stdout == "cpu\n"


def test_a_prediction_comes_before_its_run() -> None:
    refused(tensortutor("run", "--lesson", MEANS, "--step", "3"), "Predict before you run it")


@pytest.mark.parametrize(
    ("ending", "last_words"),
    [
        ("{ready}; time.sleep(600)", ""),
        (
            "try: {ready}; time.sleep(600)\nexcept KeyboardInterrupt: print('tidied up')",
            "tidied up\n",
        ),
    ],
)
def test_ctrl_c_stops_the_program_and_shows_its_last_words(
    tmp_path: Path, ending: str, last_words: str
) -> None:
    program = tmp_path / "program.py"
    ending = ending.format(ready="print('ready', flush=True)")
    program.write_text(f"import time\n{ending}\n")
    with subprocess.Popen(
        [*COMMAND, "run", str(program)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=NEVER_S)
    assert process.returncode == 130
    assert out == last_words
    assert "Traceback" not in err


def test_an_interpreter_without_torch_is_told_before_anything_starts(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    program = tmp_path / "program.py"
    program.write_text("print('never')")
    python = tmp_path / "venv/bin/python"
    refused(tensortutor("--python", str(python), "run", str(program)), str(python), "no torch")
    refused(tensortutor("--python", "/no/such", "check", MEANS), "/no/such")


def test_a_torch_that_is_newer_than_the_course_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "NEWEST_TORCH", (2, 5))
    program = tmp_path / "program.py"
    program.write_text("print('ran')")
    assert main(["--course", str(TINY), "run", str(program)]) == 0
    out, err = capfd.readouterr()
    assert out.startswith("ran\n")
    assert err.count("is newer than this course") == 1
    assert main(["--course", str(TINY), "doctor"]) == 0
    assert re.search(r"○ note +pytorch .*\n +PyTorch .* is newer", capfd.readouterr().out)


def test_a_device_that_is_not_there_is_told(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("print('never')")
    refused(tensortutor("--device", "cuda:99", "run", str(program)), "'cuda:99'", "cpu")


def test_a_reader_that_leaves_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "--course", str(TINY), "list"],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_an_output_that_cannot_be_written_is_a_sentence() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*COMMAND, "--course", str(TINY), "list"],
            cwd=ROOT,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert done.stderr == "tensortutor: No space left on device\n"


# --- check ---


def test_a_check_that_fails_tells_what_there_is_to_know_and_can_be_replayed() -> None:
    done = tensortutor("check", MEANS, "--seed", "811")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "✗ failed  every row is centred on its own mean" in lines
    labels = {line[4:14].strip() for line in lines if line.startswith("    ") and line[4] != " "}
    assert {"called", "got", "expected", "where", "seed"} <= labels
    assert any(line.startswith("    called    centre(f32[") for line in lines)
    again = f"tensortutor check {MEANS} --course {shlex.quote(str(TINY))}"
    assert f"    seed      811, to replay: {again} --seed 811" in lines
    assert "✓ passed  the input stays as it was" in lines
    assert "You have not changed the code yet. It is in " in done.stderr
    assert tensortutor("check", MEANS, "--seed", "811").stdout == done.stdout


def test_passing_marks_the_lesson_and_opens_what_needs_it(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text("print('loaded')\n" + RIGHT)
    done = tensortutor("check", MEANS, str(answer))
    assert done.returncode == 0
    assert [line[:8] for line in done.stdout.splitlines()[:3]] == ["✓ passed"] * 3
    assert "Passed: Means of rows\n" in done.stdout
    assert f"Opened: {REPAIR}, A lost dimension\n" in done.stdout
    assert done.stdout.endswith(f"tensortutor compare {MEANS} {answer} --course {TINY}\n")
    assert done.stderr == "loaded\n"
    assert f"✓ done    {MEANS}" in (listed := tensortutor("list").stdout)
    assert f"○ open    {REPAIR}" in listed
    assert tensortutor("show", MEANS, "--solution").stdout == RIGHT
    assert "Opened" not in tensortutor("check", MEANS, str(answer)).stdout


def test_check_as_json_is_the_stream_and_what_came_of_it(own_home: Path) -> None:
    file = Path(tensortutor("where", MEANS).stdout.strip())
    assert own_home in file.parents
    file.write_text(RIGHT)
    done = tensortutor("check", MEANS, "--json", "--seed", "5")
    said = events(done.stdout)
    assert [event["seed"] for event in said if event["event"] == "verdict"] == [5, 5, 5]
    assert said[-2]["event"] == "finished"
    assert said[-1] == {
            "event": "attempt", "lesson": MEANS, "passed": True, "opened": [REPAIR], "known": [],
        }  # fmt: skip
    assert done.returncode == 0


CENTRED, COMPUTED, UNTOUCHED = (
    "every row is centred on its own mean",
    "the mean is computed, not looked up",
    "the input stays as it was",
)


def test_a_program_that_does_not_load_fails_all_checks_in_one_breath(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text("def centre(x)\n")
    done = tensortutor("check", MEANS, str(answer))
    assert done.returncode == 1
    assert "SyntaxError" in done.stderr
    assert done.stdout == (
        f"✗ failed  3 checks\n    • {CENTRED}\n    • {COMPUTED}\n    • {UNTOUCHED}\n"
        "    The program ended before these checks could report.\n"
    )


def test_equal_failures_are_told_once_and_listed_as_json(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text("def centred(x):\n    return x\n")
    done = tensortutor("check", MEANS, str(answer), "--seed", "3")
    assert done.returncode == 1
    assert done.stdout.count("The program defines no `centre`.") == 1
    assert done.stdout.startswith(f"✗ failed  3 checks\n    • {CENTRED}\n")
    said = events(tensortutor("check", MEANS, str(answer), "--json").stdout)
    verdicts = [event for event in said if event["event"] == "verdict"]
    assert [verdict["check"] for verdict in verdicts] == [CENTRED, COMPUTED, UNTOUCHED]
    assert all("defines no `centre`" in verdict["message"] for verdict in verdicts)


SEVERAL = "def centre(x):\n    x.add_(1)\n    return x[0]\n"


def test_of_failures_that_differ_the_first_is_told_whole(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text(SEVERAL)
    lines = tensortutor("check", MEANS, str(answer)).stdout.splitlines()
    assert [line for line in lines if line[0] in "✓✗"] == [
        f"✗ failed  {CENTRED}",
        f"✗ failed  {COMPUTED}",
        f"✗ failed  {UNTOUCHED}",
    ]
    second = lines.index(f"✗ failed  {COMPUTED}")
    assert any(line.startswith("    seed ") for line in lines[:second])
    assert lines[second + 1] == f"✗ failed  {UNTOUCHED}"
    assert "may have the same cause" in lines[second + 2]
    program, *command = shlex.split(lines[second + 3])
    assert (program, command[-1], len(lines)) == ("tensortutor", "--all", second + 4)
    every = tensortutor(*command, course=None).stdout
    assert every.count("    seed      ") == 3
    assert "may have the same cause" not in every
    assert "\n".join(lines[:second]) in every


def test_what_the_answer_writes_does_not_tear_the_list_apart(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    source = "import warnings\nprint('loaded')\n" + SEVERAL.replace("    x.add_(1)", "{}")
    answer.write_text(source.format("    warnings.warn('careful')\n    print('at work', end='')"))
    status, screen = on_terminal(["--course", str(TINY), "check", MEANS, str(answer)])
    assert status == 1
    parts = ("loaded", "✓", "While it was checked", "UserWarning: careful", "at work\n", "✗")
    places = [screen.index(part) for part in parts]
    assert places == sorted(places)
    assert "✓" not in screen[places[2] :]
    assert "✗" not in screen[: places[2]]


# --- a whole course, step by step, without the app ---


def test_next_leads_through_the_whole_course() -> None:
    def following() -> str:
        done = tensortutor("next")
        assert done.returncode == 0
        return done.stdout

    assert "Step 1 of 6: Insight" in following()
    assert "Step 2 of 6" in following()
    assert "Step 3 of 6" in following()
    assert "Answer the question" in following()
    for value in ("3.5", "no", "3", "torch.float32", "1", "x.mean()\nx.mean(dim=1)\nx.mean(dim=0)"):
        assert tensortutor("answer", MEANS, "3", value).returncode == 0
    assert "Run the code to see whether you were right" in following()
    tensortutor("run", "--lesson", MEANS, "--step", "3")
    task = following()
    assert "Step 4 of 6: Practice" in task
    found = re.search(r"^Your file: (.*)$", task, re.MULTILINE)
    assert found
    assert "Step 4 of 6" in following()
    Path(found[1]).write_text(RIGHT)
    assert tensortutor("check", MEANS).returncode == 0
    assert "Step 5 of 6" in following()
    assert "Step 6 of 6" in following()

    assert "A lost dimension" in following()
    following()
    assert tensortutor("answer", REPAIR, "2", "false").returncode == 0
    assert "Step 3 of 5: Fix it" in following()
    solution = tensortutor("show", REPAIR, "--solution", "--spoil").stdout
    Path(tensortutor("where", REPAIR).stdout.strip()).write_text(solution)
    assert tensortutor("check", REPAIR).returncode == 0
    following()
    following()
    assert following() == "You have passed all 2 lessons and read every step.\n"


# --- the learner's things ---


def test_where_names_every_place(own_home: Path) -> None:
    lines = tensortutor("where").stdout.splitlines()
    places = dict(line.split(maxsplit=1) for line in lines)
    assert places["home"] == str(own_home)
    assert places["progress"] == str(own_home / "progress.db")
    assert places["course"] == str(TINY)


def test_reset_keeps_a_backup_of_code_and_progress(own_home: Path) -> None:
    file = Path(tensortutor("where", MEANS).stdout.strip())
    file.write_text("mine\n")
    tensortutor("hint", MEANS)
    done = tensortutor("reset", MEANS, "--yes")
    assert done.returncode == 0
    (backup,) = (own_home / "backups").iterdir()
    assert str(backup) in done.stdout
    assert (backup / "basics/means/means.py").read_text() == "mine\n"
    assert not file.exists()
    assert tensortutor("hint", MEANS).stdout.startswith("Hint 1")
    with closing(sqlite3.connect(backup / "progress.db")) as kept:
        assert kept.execute("SELECT hints FROM lesson").fetchall() == [(1,)]


def test_what_is_reset_is_open_again_though_a_passed_lesson_builds_on_it(own_home: Path) -> None:
    Progress.open(Paths(own_home)).mark_passed(REPAIR)
    rows = {row["lesson"]: row for row in events(tensortutor("list", "--json").stdout)}
    assert (rows[MEANS]["state"], rows[MEANS]["known_by"]) == ("known", REPAIR)
    tensortutor("reset", MEANS, "--yes")
    rows = {row["lesson"]: row for row in events(tensortutor("list", "--json").stdout)}
    assert (rows[MEANS]["state"], rows[MEANS]["known_by"]) == ("open", None)
    assert rows[REPAIR]["state"] == "done"
    levels = {
        row["lesson"]: row["level"] for row in events(tensortutor("progress", "--json").stdout)
    }
    assert levels[MEANS] == "new"
    assert MEANS in tensortutor("next").stdout


@pytest.mark.parametrize(("typed", "code"), [("y\n", 0), ("\n", 1), ("no\n", 1)])
def test_reset_asks_first(typed: str, code: int) -> None:
    file = Path(tensortutor("where", MEANS).stdout.strip())
    status, screen = on_terminal(["--course", str(TINY), "reset", MEANS], typed=typed)
    assert f"Put your code for {MEANS} aside" in screen
    assert status == code
    assert file.exists() == (code != 0)


def test_a_broken_record_is_set_aside_with_a_notice(own_home: Path) -> None:
    own_home.mkdir()
    (own_home / "progress.db").write_text("no database\n" * 100)
    done = tensortutor("list")
    assert done.returncode == 0
    (aside,) = own_home.glob("progress.db.broken-*")
    assert str(aside) in done.stderr


def test_a_record_of_a_newer_version_is_refused(own_home: Path) -> None:
    tensortutor("list")
    with closing(sqlite3.connect(own_home / "progress.db")) as connection:
        connection.execute("PRAGMA user_version = 99")
    refused(tensortutor("list"), "newer tensortutor", "left as it is")


def test_a_home_that_cannot_be_written_still_works(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    env = {**os.environ, "TENSORTUTOR_HOME": str(tmp_path / "file" / "home")}
    done = tensortutor("hint", MEANS, env=env)
    assert done.returncode == 0
    assert done.stdout.startswith("Hint 1 of 2")
    assert done.stderr.startswith("tensortutor: Nothing of this session will be kept")


# --- doctor ---


def test_doctor_tells_what_works(own_home: Path) -> None:
    said = events(tensortutor("doctor", "--json").stdout)
    found = {finding["name"]: finding for finding in said}
    assert {finding["event"] for finding in said} == {"finding"}
    assert found["python"]["value"].endswith(sys.executable)
    assert str(own_home) in found["home"]["value"]
    assert found["course"]["state"] == "ok"
    assert found["pytorch"]["state"] == "ok"
    assert "cpu" in " ".join(f["value"] for f in said if f["name"] == "device")
    assert found["sandbox"]["value"].split(":")[0] in ("full", "landlock", "limits")
    assert found["memory"]["value"].startswith(
        ("counted by the kernel: ", "measured from /proc: no", "measured from /proc: a cgroup",
         "measured from /proc: the cgroup")
    )  # fmt: skip
    assert found["ruff"]["value"].endswith("ruff")
    assert found["terminal"]["state"] == "note"


def test_doctor_names_what_is_missing_and_fails() -> None:
    done = tensortutor("doctor", "--python", "/no/such/python", "--course", "/no/such/course")
    assert done.returncode == 1
    assert "✗ missing  pytorch     no program can run\n" in done.stdout
    assert "/no/such/python cannot be run" in done.stdout
    assert "✗ missing  course" in done.stdout
    assert "/no/such/course" in done.stdout


# --- verify ---


def edited_course(folder: Path, file: str, old: str, new: str) -> Path:
    """A copy of the tiny course with one text replaced."""
    root = folder / "course"
    shutil.copytree(TINY, root)
    text = (root / file).read_text()
    assert old in text
    (root / file).write_text(text.replace(old, new))
    return root


def test_verify_proves_a_lesson() -> None:
    done = tensortutor("verify", REPAIR, "--seeds", "2")
    assert done.returncode == 0
    first, last = done.stdout.splitlines()
    assert re.fullmatch(rf"✓ passed  {REPAIR}: \d+ claims hold, \d+\.\d s", first)
    assert re.fullmatch(r"\d+ claims hold, 0 do not \(\d+ s\)", last)
    assert done.stderr == ""


def test_verify_shows_how_far_it_is_on_a_terminal() -> None:
    code, screen = on_terminal(["--course", str(TINY), "verify", REPAIR, "--seeds", "1"])
    assert code == 0
    shown = re.findall(r"([━─]{20}) (\d+)/(\d+) repairs/lost_dim: ", screen)
    assert [int(done) for _, done, _ in shown] == list(range(1, len(shown) + 1))
    assert {int(total) for _, _, total in shown} == {len(shown)}
    assert shown[-1][0] == "━" * 20
    assert "✓ passed" in screen


def test_verify_proves_a_chapter() -> None:
    done = tensortutor("verify", "2", "repairs", "--seeds", "1")
    assert done.returncode == 0
    first, _ = done.stdout.splitlines()
    assert first.startswith(f"✓ passed  {REPAIR}: ")


def test_verify_names_what_does_not_hold(tmp_path: Path) -> None:
    file = "lessons/02_repairs/01_lost_dim.md"
    root = edited_course(tmp_path, file, "torch.Size([2, 3])", "torch.Size([3, 2])")
    done = tensortutor("verify", REPAIR, "--seeds", "1", course=root)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{file}:")
    assert f"✗ failed  {REPAIR}: 1 of " in done.stdout
    said = events(tensortutor("verify", REPAIR, "--seeds", "1", "--json", course=root).stdout)
    (broken,) = [event for event in said if event["event"] == "broken"]
    assert (broken["lesson"], broken["path"]) == (REPAIR, file)


def test_verify_tells_problems_and_still_proves_the_sound_lessons(tmp_path: Path) -> None:
    file = "lessons/01_basics/01_means.md"
    root = edited_course(tmp_path, file, "minutes = 5", 'minutes = "five"')
    done = tensortutor("verify", "--seeds", "1", course=root)
    assert done.returncode == 1
    assert done.stdout.startswith(f"{file}:5: ")
    assert f"✓ passed  {REPAIR}" in done.stdout
    assert f"passed  {MEANS}" not in done.stdout


def test_a_new_lesson_stands_at_once_and_verify_names_what_is_left_to_do(tmp_path: Path) -> None:
    root = tmp_path / "course"
    shutil.copytree(TINY, root)
    done = tensortutor("new", "2/sums", course=root)
    assert done.returncode == 0
    lesson, checks = root / "lessons/02_repairs/02_sums.md", root / "checks/02_repairs/02_sums.py"
    assert done.stdout.splitlines()[:2] == [f"The lesson: {lesson}", f"Its checks: {checks}"]
    assert f"verify --watch repairs/sums --course {root}" in done.stdout
    proved = tensortutor("verify", "repairs/sums", "--seeds", "2", course=root)
    assert proved.returncode == 1
    *left, mark, _ = proved.stdout.splitlines()
    assert len(left) > 5
    assert all(
        re.match(r"(lessons|checks)/02_repairs/02_sums\.(md|py):\d+: TODO: ", line) for line in left
    )
    assert mark.startswith(f"✗ failed  repairs/sums: {len(left)} of ")
    for path in (lesson, checks):
        path.write_text(path.read_text().replace("TODO", "Done"))
    assert tensortutor("verify", "repairs/sums", "--seeds", "2", course=root).returncode == 0
    refused(tensortutor("new", "2/sums", course=root), "There is a lesson repairs/sums already")


def test_watch_proves_a_lesson_again_when_it_is_saved(tmp_path: Path) -> None:
    root = tmp_path / "course"
    shutil.copytree(TINY, root)
    lesson = root / "lessons/02_repairs/01_lost_dim.md"
    text = lesson.read_text()
    command = [*COMMAND, "--course", str(root), "verify", "--watch", "--seeds", "1", REPAIR]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8"
    ) as process:
        assert process.stdout is not None

        def until(part: str) -> str:
            """The first line from here on that has this part."""
            assert process.stdout is not None
            for line in process.stdout:
                if part in line:
                    return line
            raise AssertionError(f"it ended without a word of {part!r}")

        try:
            assert until(REPAIR).startswith("✓ passed")
            until("Waiting for a lesson to be saved.")
            lesson.write_text(text.replace("torch.Size([2, 3])", "torch.Size([3, 2])"))
            assert until(f"  {REPAIR}").startswith("✗ failed")
            until("Waiting")
            lesson.write_text(text.replace("minutes", "hours"))
            assert until("hours").startswith("lessons/02_repairs/01_lost_dim.md:")
            until("Waiting")
            lesson.write_text(text)
            assert until(f"  {REPAIR}").startswith("✓ passed")
            until("Waiting")
            process.send_signal(signal.SIGINT)
            assert process.wait(NEVER_S) == 0
        finally:
            process.kill()


# --- the app's door ---


@pytest.mark.parametrize("term", ["dumb", ""])
def test_a_terminal_that_cannot_place_text_is_refused(term: str) -> None:
    code, screen = on_terminal([], TERM=term)
    assert code == 2
    assert f"TERM is {term!r}" in screen
    assert "tensortutor list, show, next" in screen


@pytest.mark.parametrize(("columns", "lines"), [(59, 40), (120, 15)])
def test_a_window_that_is_too_small_is_refused(columns: int, lines: int) -> None:
    code, screen = on_terminal([], columns=columns, lines=lines)
    assert code == 2
    said = " ".join(screen.split())
    assert f"60 columns and 16 lines; this one has {columns} and {lines}" in said
    assert "tensortutor list, show, next" in said


def test_without_a_terminal_the_app_names_the_commands() -> None:
    refused(tensortutor(), "needs a terminal", "tensortutor list, show, next, run, check")


@pytest.mark.parametrize(
    "words", ["--lesson basics/meens", "basics/meens", "1.9", "--device cpu --ascii 1.9"]
)
def test_an_unknown_lesson_keeps_the_app_from_starting(words: str) -> None:
    code, screen = on_terminal([*words.split(), "--course", str(TINY)])
    assert code == 2
    assert screen.startswith("tensortutor: There is no lesson ")
    assert words.split()[-1] in screen


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "long.py"
    path.touch()
    os.truncate(path, 1 << 40)
    refused(tensortutor("run", str(path)), "long.py cannot be read: it has more than 64 MiB")
