"""Drills: how their file is read, what `verify` proves of them, how a line is judged."""

import pytest

from tensortutor.course.catalog import open_course
from tensortutor.course.drill_claims import drill_problems, drill_trials
from tensortutor.course.drills import answer_job, not_a_line, picture_job, read_drills
from tensortutor.course.run_record import gather
from tensortutor.course.verify import Broken, prove
from tensortutor.protocol.drawings import CellGrid
from tests.course.tiny import Edit, copy_of_tiny

FILE = "lessons/01_basics/drills.toml"
DRILLS = """\
[[drills]]
id = "last_columns"
lesson = "basics/means"
ask = "The last two columns of `x`, the last one first."
given = '''
n = rng.randint(2, 4)
x = torch.randint(0, 10, (n, rng.randint(4, 6)))
'''
answer = "x[:, -2:].flip(1)"
accepted = ["x[:, [-1, -2]]"]
[[drills.wrong]]
line = "x[:, -2:]"
because = "These are the columns in the order in which `x` has them."
[[drills.wrong]]
line = "x[-2:].flip(1)"
because = "The first index counts rows."
"""


def with_drills(folder, *edits, text=DRILLS):
    root = copy_of_tiny(folder)
    (root / FILE).write_text(text)
    for old, new in edits:
        Edit(FILE, old, new).apply(root)
    return open_course(root)


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


@pytest.fixture
def drill(tmp_path):
    (one,) = read_drills(with_drills(tmp_path))[0]
    return one


def test_a_drill_uses_what_its_answer_names(drill):
    assert (drill.id, drill.lesson, drill.names) == (
        "basics/last_columns", "basics/means", ("x",)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('lesson = "basics/means"', 'lesson = "basics/sums"', 3, "has no lesson 'basics/sums'"),
        ('answer = "x[:, -2:].flip(1)"', 'answer = "x["', 9, "no Python expression"),
        ("x = torch.randint(0, 10, (n, rng.randint(4, 6)))", "z = n", 5, "uses nothing"),
        ('answer = "x[:, -2:].flip(1)"', 'answer = "y = x"', 9, "cannot be an answer"),
        ("x = torch.randint", "x = torch.randint((", 5, "'given' is not Python"),
        ('because = "The first index counts rows."\n', "", 14, "lacks 'because'"),
        ('id = "last_columns"', 'id = "Last"', 2, "lower-case"),
        ("[[drills]]", "[[drill]]", 1, "drills"),
    ],
)
def test_each_mistake_is_named_with_its_line(tmp_path, old, new, line, says):
    drills, problems = read_drills(with_drills(tmp_path, (old, new)))
    assert not drills
    assert any(p.path == FILE and p.line == line and says in p.message for p in problems), problems


def test_one_wrong_line_is_too_few_and_two_drills_of_one_name_too_many(tmp_path):
    short = DRILLS[: DRILLS.rindex("[[drills.wrong]]")]
    for number, (text, says) in enumerate([(short, "at least 2"), (DRILLS * 2, "two drills")]):
        folder = tmp_path / str(number)
        _, problems = read_drills(with_drills(folder, text=text))
        assert any(says in problem.message for problem in problems), problems


def test_a_line_that_is_right_and_wrong_is_a_problem(tmp_path):
    course = with_drills(tmp_path, ('["x[:, [-1, -2]]"]', '["x[ :, -2: ]"]'))
    drills, _ = read_drills(course)
    assert ["right and wrong" in p.message for p in drill_problems(course, drills)] == [True]


def test_verify_proves_right_and_wrong_lines_and_the_picture(tmp_path, runner):
    course = with_drills(tmp_path)
    findings = list(prove(course, drill_trials(read_drills(course)[0], 5), runner))
    assert len(findings) == 5
    assert not [finding for finding in findings if isinstance(finding, Broken)]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('"x[:, [-1, -2]]"', '"x[:, [-2, -1]]"', "is right"),
        ('line = "x[-2:].flip(1)"', 'line = "x.flip(1)[:, :2]"', "is wrong"),
        ('"x[:, [-1, -2]]"', '"x.add_(0)[:, [-1, -2]] if x.add_(1) is x else 0"', "is right"),
        ("x = torch.randint(0, 10, (n, rng.randint(4, 6)))", "x = [1]", "drawn"),
    ],
)
def test_verify_names_a_claim_that_does_not_hold(tmp_path, runner, old, new, what):
    course = with_drills(tmp_path, (old, new))
    findings = list(prove(course, drill_trials(read_drills(course)[0], 5), runner))
    broken = [finding for finding in findings if isinstance(finding, Broken)]
    assert any(what in finding.what for finding in broken), findings


def test_inputs_and_result_are_drawn_as_grids(drill, runner):
    record = gather(runner.start(picture_job(drill, 3)))
    grids = {event.title for event in record.events if isinstance(event, CellGrid)}
    assert grids == {"x", "wanted"}


@pytest.mark.parametrize(
    ("line", "says"),
    [("x[:, -2:]", "values wrong"), ("x.mean()", "x.mean"), ("y", "NameError"), ("None", "None")],
)
def test_a_wrong_line_fails_with_the_checks_own_words(drill, runner, line, says):
    record = gather(runner.start(answer_job(drill, line, (1,))))
    assert record.judged is not None
    assert not record.judged.ok
    failed = next(verdict for verdict in record.verdicts if not verdict.passed)
    assert says in f"{failed.message} {failed.where}"


def test_what_is_known_of_a_wrong_line_does_not_depend_on_its_spaces(drill):
    assert drill.because("x[ : , -2 : ]").startswith("These are")
    assert drill.because("x") == ""
    assert drill.others("x[:,[-1,-2]]") == ["x[:, -2:].flip(1)"]


@pytest.mark.parametrize("text", ["", "  ", "y = 3", "a\nb", "x" * 500, "(", "1; 2", "f(" * 5000])
def test_what_is_no_line_gets_a_sentence(text):
    assert not_a_line(text).endswith(".")


def test_a_line_stays_inside_its_brackets(drill, runner):
    """An answer cannot add statements to the program."""
    assert not_a_line("0)\n    pass\nif (True")
    record = gather(runner.start(answer_job(drill, "x[:, [-1, -2]] # the end")))
    assert record.judged is not None
    assert record.judged.ok
