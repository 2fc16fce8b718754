"""What the gate says of an atlas: which entry is chosen for what a program raised."""

import pytest

from tensortutor.course.atlas import check_atlas
from tensortutor.course.atlas_claims import atlas_trials, keeps_columns
from tensortutor.course.catalog import open_course
from tensortutor.course.verify import Broken, Proved, Skipped, prove
from tensortutor.protocol.events import Warned
from tests.course.fake_runner import DONE, FakeRunner, raised
from tests.course.test_atlas import ENTRY, course_with

SIZES = raised("RuntimeError", "sizes 3 and 4")


def findings(folder, atlas, say, device="cpu", **options):
    course = open_course(course_with(folder, atlas))
    entries, problems = check_atlas(course)
    assert problems == []
    trials = atlas_trials(course, entries, device, **options)
    return list(prove(course, trials, FakeRunner(lambda job: say)))


def test_an_error_that_its_entry_explains_is_proved(tmp_path):
    (finding,) = findings(tmp_path, ENTRY, SIZES)
    assert type(finding) is Proved
    assert (finding.lesson, finding.path, finding.line) == ("atlas", "lessons/atlas.toml", 10)


def test_a_warning_counts_as_well(tmp_path):
    atlas = ENTRY.replace("RuntimeError: sizes", "UserWarning: sizes")
    (finding,) = findings(tmp_path, atlas, [Warned("UserWarning", "sizes 3 and 4"), DONE])
    assert type(finding) is Proved


@pytest.mark.parametrize(
    ("atlas", "say", "words"),
    [
        (ENTRY, [DONE], "it raises nothing and is given no warning"),
        (ENTRY, raised("ValueError", "no"), "no entry knows 'ValueError: no'"),
        (ENTRY, raised("RuntimeError", "sizes 4 and 3"), "the explanation says '4 is not 3.', not"),
        (
            ENTRY + ENTRY.replace('id = "sizes"', 'id = "twin"'),
            SIZES,
            "'twin' is chosen as well for 'RuntimeError: sizes 3 and 4'",
        ),
        (
            ENTRY + ENTRY.replace('id = "sizes"', 'id = "own"').replace("sizes (?P", "other (?P"),
            raised("RuntimeError", "other 3 and 4"),
            "'own' is chosen for 'RuntimeError: other 3 and 4'",
        ),
    ],
)
def test_what_does_not_hold_is_told(tmp_path, atlas, say, words):
    finding = findings(tmp_path, atlas, say)[0]
    assert type(finding) is Broken
    assert words in finding.message
    assert str(finding).startswith("lessons/atlas.toml:10: claimed: the error is explained by")


def test_a_program_may_lead_to_another_entry_with_another_pytorch(tmp_path):
    other = ENTRY.replace('id = "sizes"', 'id = "own"').replace("sizes (?P", "other (?P")
    says = raised("RuntimeError", "other 3 and 4")
    allowed = ENTRY.replace("says =", 'elsewhere = ["own"]\nsays =') + other
    assert type(findings(tmp_path / "allowed", allowed, says)[0]) is Proved
    finding = findings(tmp_path / "not", allowed.replace('["own"]', '["third"]'), says)[0]
    assert "'own' is chosen for" in finding.message


def test_without_columns_the_entry_must_be_right_and_nothing_is_claimed_of_the_operands(tmp_path):
    blurred = raised("RuntimeError", "sizes 4 and 3")
    assert type(findings(tmp_path / "old", ENTRY, blurred, columns=False)[0]) is Proved
    other = raised("ValueError", "no")
    assert type(findings(tmp_path / "other", ENTRY, other, columns=False)[0]) is Broken
    assert [keeps_columns(v) for v in ("3.10.13", "3.11.0", "3.13.0")] == [False, True, True]


def test_what_another_machine_must_raise_is_left_out_and_told(tmp_path):
    atlas = ENTRY.replace("\n[[errors.programs]]", '\nneeds = "cuda"\n\n[[errors.programs]]')
    (finding,) = findings(tmp_path / "cpu", atlas, SIZES)
    assert type(finding) is Skipped
    assert str(finding) == "lessons/atlas.toml:1: not proved: it needs a CUDA device"
    (finding,) = findings(tmp_path / "cuda", atlas, SIZES, device="cuda:0")
    assert type(finding) is Proved
    (finding,) = findings(tmp_path / "more", atlas.replace('"cuda"', '"two GPUs"'), SIZES)
    assert str(finding).endswith("not proved: it needs two GPUs")


def test_a_program_runs_as_so_many_ranks_on_the_cpu(tmp_path):
    atlas = ENTRY.replace("says =", "ranks = 2\nsays =")
    course = open_course(course_with(tmp_path, atlas))
    runner = FakeRunner(lambda job: SIZES)
    list(prove(course, atlas_trials(course, check_atlas(course)[0], "cpu"), runner))
    (run,) = runner.runs
    assert (run.job.ranks, run.job.device) == (2, "cpu")
