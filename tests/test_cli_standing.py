"""`progress` and `export` on the command line."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from tensortutor.course.catalog import find_lesson, load_course
from tensortutor.learner.answers import shown
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.test_cli import MEANS, REPAIR, TINY, events, refused, tensortutor

TINY_COURSE = load_course(TINY)


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
    assert (rows[MEANS], rows[REPAIR]) == ("well", "helped")


def test_progress_of_a_chapter_goes_lesson_by_lesson(own_home):
    Progress.open(Paths.find()).record_attempt(MEANS, False, 0, 3)
    done = tensortutor("progress", "basics")
    assert "begun · 1 check" in done.stdout
    refused(tensortutor("progress", "nowhere"), "nowhere")


def test_what_a_passed_lesson_is_evidence_for_is_known_and_not_passed(own_home):
    """Nothing in the record says so, the course does."""
    progress = Progress.open(Paths.find())
    progress.mark_passed(REPAIR)
    rows = {row["lesson"]: row for row in events(tensortutor("--json", "progress").stdout)}
    assert (rows[MEANS]["level"], rows[MEANS]["known_by"]) == ("known", REPAIR)
    assert (rows[REPAIR]["level"], rows[REPAIR]["known_by"]) == ("well", None)
    assert " 0 of  1 passed, 1 known" in tensortutor("progress").stdout
    assert f"known: you passed {REPAIR}" in tensortutor("progress", "basics").stdout
    listed = {row["lesson"]: row for row in events(tensortutor("--json", "list").stdout)}
    assert (listed[MEANS]["state"], listed[MEANS]["known_by"]) == ("known", REPAIR)
    assert listed[REPAIR]["state"] == "done"
    plain = tensortutor("list").stdout
    assert "lessons passed, 1 known" in plain
    assert "◐ known" in plain


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


def test_review_lists_asks_and_keeps(own_home):
    progress = Progress.open(Paths.find())
    assert "Nothing is due" in tensortutor("review").stdout
    asked = next(
        (index, step) for index, step in enumerate(find_lesson(TINY_COURSE, MEANS).steps)
        if step.quizzes
    )  # fmt: skip
    with closing(sqlite3.connect(Paths.find().progress)) as record:
        record.execute(
            "INSERT INTO answer (lesson, at, step, quiz, answer, correct) "
            "VALUES (?, '2020-01-01T00:00:00+00:00', ?, 0, 'x', 0)", (MEANS, asked[0]),
        )  # fmt: skip
        record.commit()
    assert f"{MEANS} " in tensortutor("review").stdout
    (row,) = events(tensortutor("--json", "review").stdout)
    assert (row["lesson"], row["step"], row["question"]) == (MEANS, asked[0] + 1, 1)
    quiz = asked[1].quizzes[0]
    done = tensortutor("review", "--ask", stdin=None, input=f"{shown(quiz, quiz.answer)}\n")
    assert "✓ right" in done.stdout, done
    assert "Nothing is due" in tensortutor("review").stdout
    assert progress.answers(MEANS)[asked[0], 0][1] is True


def test_no_more_new_cards_are_due_on_a_day_than_the_settings_say(own_home):
    Progress.open(Paths.find())
    Paths.find().settings.write_text("[review]\nnew_per_day = 2\n")
    with closing(sqlite3.connect(Paths.find().progress)) as record:
        record.executemany(
            "INSERT INTO answer (lesson, at, step, quiz, answer, correct) "
            "VALUES (?, '2020-01-01T00:00:00+00:00', ?, ?, 'x', 0)",
            [(MEANS, 2, quiz) for quiz in range(4)],
        )
        record.commit()
    assert tensortutor("review").stdout.startswith("2 of 4 new cards today.\nDue questions: 2.")
    assert [row["new"] for row in events(tensortutor("--json", "review").stdout)] == [True, True]


def test_an_exercise_is_begun_afresh_beside_the_learners_own(own_home):
    refused(tensortutor("review", "--fresh", MEANS), "has not been passed yet")
    Progress.open(Paths.find()).mark_passed(MEANS)
    path = Path(tensortutor("review", "--fresh", MEANS).stdout.strip())
    assert path.read_text() == find_lesson(TINY_COURSE, MEANS).task.pane.source
    assert path.is_relative_to(Paths.find().home / "review")
