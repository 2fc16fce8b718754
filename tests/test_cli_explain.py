"""The command line explains errors: of a run, of a check, and of any traceback."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course.test_atlas import ENTRY
from tests.course.tiny import TINY
from tests.test_cli import COMMAND, MEANS, ROOT, events, on_terminal, refused, tensortutor

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 12, in <module>
    y = model(x)
  File "/venv/lib/python3.11/site-packages/torch/nn/modules/linear.py", line 134, in forward
    return F.linear(input, self.weight, self.bias)
RuntimeError: mat1 and mat2 shapes cannot be multiplied (32x10 and 64x12)
"""
LAST = TRACEBACK.splitlines()[-1]
PROGRAM = """\
import torch
from torch import nn

print("before")
model = nn.Sequential(nn.Flatten(), nn.Linear(64, 12))
x = torch.randn(32, 10)
model(x)
"""


def explain(text: str | bytes, *options: str) -> "subprocess.CompletedProcess[str]":
    """`explain` with this on its standard input, on the built-in course."""
    data = text.encode() if isinstance(text, str) else text
    return tensortutor("explain", *options, course=None, typed=data)


def test_a_traceback_from_standard_input_is_explained_below_its_own_last_line() -> None:
    command = [*COMMAND, "explain"]
    done = subprocess.run(
        command, cwd=ROOT, input=TRACEBACK.encode(), capture_output=True, timeout=120
    )
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0
    assert lines[0] == LAST
    assert lines[1] == "    The inner dimensions differ"
    assert lines[2] == "    here      The left matrix has 10 columns, the right one 64 rows."
    labels = [line[4:14].strip() for line in lines[1:] if line[4] != " "]
    assert labels == ["The inner", "here", "means", "way out", "lesson"]
    assert max(map(len, lines)) <= 88


def test_a_file_and_a_lesson_to_go_to(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    error = "RuntimeError: shape '[4, 2]' is invalid for input of size 6"
    log.write_text(f"epoch 1\n{TRACEBACK}retry\n{TRACEBACK.replace(LAST, error)}\nbye\n")
    done = tensortutor("explain", str(log), course=None)
    assert done.returncode == 0
    assert done.stdout.splitlines()[0] == error
    assert done.stdout.splitlines()[-1] == "    lesson    tensortutor show tensors/reshape"
    assert tensortutor("show", "tensors/reshape", "--anyway", course=None).returncode == 0


def test_a_message_without_its_type_is_known_too() -> None:
    assert explain(LAST.removeprefix("RuntimeError: ")).returncode == 0


def test_as_json() -> None:
    (said,) = events(explain(TRACEBACK, "--json").stdout)
    assert (said["event"], said["entry"], said["error"]) == ("explained", "matmul_shapes", LAST)
    done = explain("ValueError: my own\n", "--json")
    assert json.loads(done.stdout) == {"event": "unknown", "error": "ValueError: my own"}
    assert done.returncode == 1


def test_an_error_that_no_entry_knows_is_shown_as_it_is() -> None:
    done = explain("Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'\n")
    assert done.returncode == 1
    assert done.stdout == "KeyError: 'a'\n"
    assert "This error is not in the atlas." in done.stderr


@pytest.mark.parametrize("data", [b"", b"all is well\n", bytes(range(256)) * 9])
def test_a_text_without_an_error_is_a_sentence(data: bytes) -> None:
    done = explain(data)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tensortutor: There is no traceback in it")
    assert "Traceback (most" not in done.stderr


def test_other_bad_input(tmp_path: Path) -> None:
    refused(tensortutor("explain", "nowhere.log"), "nowhere.log cannot be read: no such file")
    refused(tensortutor("explain", str(tmp_path)), "cannot be read: it is a folder")
    refused(tensortutor("explain", "/dev/zero"), "/dev/zero cannot be read: it is a device")
    os.mkfifo(tmp_path / "pipe")
    refused(tensortutor("explain", str(tmp_path / "pipe")), "it is a FIFO that nobody writes into")
    refused(tensortutor("run", str(tmp_path / "pipe")), "it is a FIFO that nobody writes into")
    refused(tensortutor("explain", "a.log", "--list"), "Name a file, or say --list")


def test_escapes_in_a_log_are_harmless_and_a_terminal_is_asked_for_text() -> None:
    code, screen = on_terminal(
        ["explain"], typed="\x1b[31mRuntimeError: \x1b]0;title\x07a\x07\x1b[0m\n\x04"
    )
    assert code == 1
    assert "Paste the traceback, then press Ctrl+D." in screen
    assert "RuntimeError: a^G" in screen


def test_a_huge_log_is_read_from_its_end(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    with log.open("w") as file:
        file.write(TRACEBACK.replace("mat1", "mat0"))
        for _ in range(70):
            file.write("step\n" * 20_000)
        file.write(TRACEBACK)
    assert tensortutor("explain", str(log)).stdout.startswith(LAST)
    # Three TB of which the system keeps nothing: whoever read them would not come to an end.
    with log.open("r+") as file:
        file.truncate(3 << 40)
        file.seek(0, os.SEEK_END)
        file.write(f"\n{TRACEBACK}")
    assert tensortutor("explain", str(log)).stdout.startswith(LAST)


def test_list_names_every_error() -> None:
    done = tensortutor("explain", "--list", course=None)
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) > 60
    assert any(line.split()[0] == "broadcast" and "memory/broadcasting" in line for line in lines)
    said = events(tensortutor("explain", "--list", "--json", course=None).stdout)
    assert [event["id"] for event in said] == [line.split()[0] for line in lines]


def test_run_explains_after_the_programs_own_words(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = tensortutor("run", str(program), course=None)
    assert (done.returncode, done.stdout) == (1, "before\n")
    lines = done.stderr.splitlines()
    below = lines[lines.index(LAST) + 1 :]
    assert below[0] == "    The inner dimensions differ"
    here = " ".join(line.strip() for line in below[1:3])
    assert here.startswith(
        "here      `x` is f32[32, 10] and `model[1].weight` is f32[12, 64]: Linear"
    )
    said = events(tensortutor("run", "--json", str(program), course=None).stdout)
    assert [event["event"] for event in said] == [
        "started", "output", "raised", "explained", "finished",
    ]  # fmt: skip
    assert said[2]["scene"]["operands"][1]["shape"] == [32, 10]


def test_check_explains_an_answer_that_raises_once(tmp_path: Path) -> None:
    answer = tmp_path / "answer.py"
    answer.write_text("import torch\n\ndef centre(x):\n    return x - torch.ones(1001)\n")
    done = tensortutor("check", MEANS, str(answer))
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert lines.count("    These shapes do not broadcast") == 1
    start = lines.index("    These shapes do not broadcast")
    assert lines[start - 1].startswith("    seed  ")
    said = events(tensortutor("check", MEANS, str(answer), "--json").stdout)
    (told,) = [event for event in said if event["event"] == "explained"]
    verdicts = [event for event in said if event["event"] == "verdict" and not event["passed"]]
    assert told["check"] == verdicts[0]["check"]
    assert told["lesson"] == ""  # the tiny course has no such lesson


# --- the author's gate ---


def course_with(folder: Path, atlas: str) -> Path:
    root = folder / "course"
    shutil.copytree(TINY, root)
    (root / "lessons" / "atlas.toml").write_text(atlas)
    return root


def test_verify_proves_the_atlas_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    needy = ENTRY.replace('id = "sizes"', 'id = "needy"\nneeds = "cuda"').replace("sizes (", "n (")
    root = course_with(tmp_path, ENTRY + needy)
    done = tensortutor("verify", "atlas", course=root)
    assert done.returncode == 0, done.stdout
    left_out, held, total = done.stdout.splitlines()
    assert left_out == "lessons/atlas.toml:15: not proved: it needs a CUDA device"
    assert held.startswith("✓ passed  atlas: 1 claims hold, ")
    assert total.startswith("1 claims hold, 0 do not, 1 could not be proved here")


def test_verify_names_what_the_atlas_gets_wrong(tmp_path: Path) -> None:
    root = course_with(tmp_path, ENTRY.replace("sizes 3 and 4", "sizes 4 and 3"))
    done = tensortutor("verify", "atlas", course=root)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "lessons/atlas.toml:10: claimed: the error is explained by 'sizes'; but the explanation"
    )
    assert "✗ failed  atlas: 1 of 1 claims do not hold" in done.stdout


def test_an_atlas_that_is_not_sound_is_told_and_not_run(tmp_path: Path) -> None:
    root = course_with(tmp_path, ENTRY.replace('title = "Sizes differ"\n', ""))
    done = tensortutor("verify", "atlas", course=root)
    assert done.returncode == 1
    assert done.stdout.startswith("lessons/atlas.toml:1: the error lacks 'title'")


def test_a_course_without_an_atlas_has_none_to_prove() -> None:
    refused(tensortutor("verify", "atlas"), "This course has no atlas")


def test_explain_loads_neither_torch_nor_textual() -> None:
    code = (
        "import sys, tensortutor.cli as cli\n"
        f"sys.stdin = open({str(ROOT / 'README.md')!r})\n"
        "status = cli.main(['explain'])\n"
        "print(sorted({'torch', 'textual', 'numpy'} & set(sys.modules)), status)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1:] == ["[] 0"], done.stderr  # the README shows an error
