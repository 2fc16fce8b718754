"""`progress` and `export` on the command line."""

import json

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.test_cli import MEANS, REPAIR, events, refused, tensortutor


def test_progress_names_what_is_worth_another_look(own_home):
    progress = Progress.open(Paths.find())
    progress.show_hint(REPAIR)
    progress.mark_passed(REPAIR)
    progress.mark_passed(MEANS)
    done = tensortutor("progress")
    assert done.returncode == 0
    assert " 1 of  1 passed, 1 well" in done.stdout
    assert REPAIR in done.stdout.partition("worth another look")[2]
    rows = {row["lesson"]: row["level"] for row in events(tensortutor("--json", "progress").stdout)}
    assert (rows[MEANS], rows[REPAIR]) == ("well", "passed")


def test_progress_of_a_chapter_goes_lesson_by_lesson(own_home):
    Progress.open(Paths.find()).record_attempt(MEANS, False, 0, 3)
    done = tensortutor("progress", "basics")
    assert "begun · 1 check" in done.stdout
    refused(tensortutor("progress", "nowhere"), "nowhere")


def test_export_keeps_what_it_finds(own_home, tmp_path):
    path = tmp_path / "01_01_means.ipynb"
    path.write_text("mine")
    done = tensortutor("export", MEANS, "--to", str(tmp_path))
    assert done.returncode == 0, done
    assert done.stdout.strip() == str(path)
    assert json.loads(path.read_text())["nbformat"] == 4
    assert (tmp_path / "01_01_means.1.ipynb").read_text() == "mine"
    again = tensortutor("export", MEANS, "--to", str(tmp_path))
    assert again.stderr == "", "nothing has changed: nothing is put aside"


def test_export_wants_to_know_what(own_home, tmp_path):
    refused(tensortutor("export"), "Name a lesson or a chapter")
    refused(tensortutor("export", MEANS, "--to", "/proc/nowhere"), "cannot be written")
