"""`drill` and drills in `review` on the command line."""

import json

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.course.test_drills import DRILLS, FILE
from tests.course.tiny import copy_of_tiny
from tests.test_cli import MEANS, events, refused, tensortutor


def course_with_drills(folder):
    root = copy_of_tiny(folder)
    (root / FILE).write_text(DRILLS)
    return root


def test_drills_are_listed_drawn_and_judged(own_home, tmp_path):
    root = course_with_drills(tmp_path)
    assert "basics/last_columns" in tensortutor("drill", course=root).stdout
    drawn = tensortutor("drill", "last_columns", course=root)
    assert drawn.returncode == 0, drawn
    for words in ("The last two columns of `x`", "wanted", "int64 [", "tensortutor drill"):
        assert words in drawn.stdout
    right = tensortutor("drill", "basics/last_columns", "x[:, [-1, -2]]", course=root)
    assert right.returncode == 0, right
    assert "Also right: x[:, -2:].flip(1)" in right.stdout
    wrong = tensortutor("drill", "last_columns", "x[:, -2:]", course=root)
    assert wrong.returncode == 1
    assert "in the order in which `x` has them" in wrong.stdout
    assert "expected" in wrong.stdout


def test_what_is_no_drill_or_no_line_is_a_sentence(own_home, tmp_path):
    root = course_with_drills(tmp_path)
    refused(tensortutor("drill", "last_column", course=root), "basics/last_columns")
    refused(tensortutor("drill", "last_columns", "y = x", course=root), "no Python expression")
    assert "no drills" in tensortutor("drill").stdout


def test_a_program_reads_drills_and_verdicts(own_home, tmp_path):
    root = course_with_drills(tmp_path)
    (row,) = events(tensortutor("--json", "drill", course=root).stdout)
    assert (row["drill"], row["lesson"]) == ("basics/last_columns", MEANS)
    found = events(tensortutor("--json", "drill", "last_columns", "x", course=root).stdout)
    assert any(one["event"] == "verdict" and not one["passed"] for one in found)


def test_the_same_seed_gives_the_same_inputs(own_home, tmp_path):
    root = course_with_drills(tmp_path)
    said = {
        tensortutor("drill", "last_columns", "x", "--seed", "3", course=root).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_a_review_names_the_drills_that_are_due(own_home, tmp_path, monkeypatch):
    root = course_with_drills(tmp_path)
    from tensortutor.learner import progress as progress_module

    monkeypatch.setattr(progress_module, "_now", lambda: "2020-01-01T00:00:00+00:00")
    Progress.open(Paths.find()).mark_passed(MEANS)
    assert "tensortutor drill DRILL" in tensortutor("review", course=root).stdout
    rows = [json.loads(r) for r in tensortutor("--json", "review", course=root).stdout.splitlines()]
    assert [row["drill"] for row in rows] == ["basics/last_columns"]


def test_verify_proves_the_drills_of_a_course(own_home, tmp_path):
    root = course_with_drills(tmp_path)
    done = tensortutor("verify", "drills", course=root)
    assert done.returncode == 0, done
    assert "drills: 5 claims hold" in done.stdout
    (root / FILE).write_text(DRILLS.replace("[-1, -2]", "[-2, -1]"))
    done = tensortutor("verify", "drills", course=root)
    assert done.returncode == 1
    assert f"{FILE}:1: claimed: basics/last_columns: x[:, [-2, -1]] is right" in done.stdout
