"""The formats and rules of a lesson's second edition."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tensortutor.course.catalog import load_course, open_course, read_course
from tensortutor.course.verify import Broken, Proved, Skipped, verify
from tensortutor.protocol.jobs import Limits
from tests.course.tiny import Edit, line_of

SECOND = Path(__file__).parent / "data" / "second"
LESSON = "lessons/01_basics/01_means.md"
CHECKS = "checks/01_basics/01_means.py"


def copy_of_second(folder, *edits):
    root = folder / "course"
    shutil.copytree(SECOND, root)
    for edit in edits:
        edit.apply(root)
    return root


@dataclass(frozen=True)
class Case:
    """A rule, the edits that break it, and all that is then reported.

    at: the file of the first edit, and what its line holds, or its number.
    """

    rule: str
    edits: tuple[Edit, ...]
    at: str | int
    words: tuple[str, ...]
    file: str


def lesson(rule, old, new, at, *words, file=LESSON):
    return Case(rule, (Edit(LESSON, old, new),), at, words, file)


def judge(rule, old, new, at, *words, file=CHECKS):
    return Case(rule, (Edit(CHECKS, old, new),), at, words, file)


LOOK = 'row = "first"\nexpect = "A"'
SHOWS = 'background("A row is a sample."'
PARSED = [
    lesson("minutes", 'device = "any"', 'device = "any"\nminutes = 9', "minutes =", "computes"),
    lesson("third edition", "edition = 2", "edition = 3", "edition =", "1 or 2", "not 3"),
    lesson("first edition", "edition = 2", 'minutes = 5\nlong = "so"', "long =", "edition 2"),
    lesson("unknown tab", '"tensors"', '"tensor"', 'tab = "tensor"', "nearest is 'tensors'"),
    lesson("unknown key of a look", LOOK, f"{LOOK}\nwide = 3", "wide = 3", "no key 'wide'"),
    lesson("look without a row", LOOK, 'expect = "A"', 27, "the look lacks 'row'"),
    lesson(
        "look above its program",
        "## See the shapes\n",
        '## See the shapes\n\n```look\ntab = "output"\nrow = "1"\nexpect = "1"\nsay = "No."\n```\n',
        15,
        "this look has no program",
    ),
    lesson("old text twice", 'old = "dim=1"\nnew = "dim=0"', 'old = "m"\nnew = "n"', 'old = "m"',
           "'m' stands 5 times", "must stand there once"),
    lesson("old text nowhere", 'old = "dim=1"\nnew = "dim=0"', 'old = "dim=3"\nnew = "d"',
           "dim=3", "stands nowhere"),
    lesson("edit of nothing", 'new = "dim=0"', 'new = "dim=1"', 56, "changes nothing"),
    lesson("two results", 'shows = "[1.5000', 'output = ""\nshows = "[1.5000', "shows =",
           "one of output, shows or error", "this one has output and shows"),
    lesson("no result", 'shows = "[1.5000, 2.5000, 3.5000]"\n', "", 54, "this one has none"),
    lesson("no new text", 'old = "dim=1"\nnew = "dim=0"', 'old = "dim=1"', 54, "lacks 'new'"),
    lesson("derivation without its title", "## Derivation: the", "## The", "## The mean",
           "begin it with 'Derivation:'"),
    lesson("unknown option", "run needs=cuda", "run needs=rocm", "needs=rocm",
           "no option `needs=rocm`"),
    lesson("option of a hint", "```hint\nName", "```hint needs=cuda\nName", "hint needs",
           "a hint fence cannot carry needs=cuda"),
    judge("blank quote", 'holds=["The input stays as it is"]', 'holds=""', '"the input stays',
          "words of the task in quotes"),
    judge("side of nothing", 'holds=["The input stays as it is"]', 'side="on"', '"the input stays',
          "belongs to a sentence"),
    judge("sides twice", "both_sides=True", 'both_sides=True, side="on"', 30,
          "one side or both"),
    judge("hint without a number", "@hinted(1, ", "@hinted(0, ", "@hinted", "the hint's number"),
    judge("hint that is not there", "@hinted(1, ", "@hinted(3, ", "@hinted", "the task has 2"),
    judge("reaches nothing", "reaches=shape", "reaches=shapes", "@hinted", "is no check above it",
          "the nearest is shape"),
    judge("background of 3", SHOWS, "background(3", "background(3", "sentences of the task"),
    judge("key line without a reason", SHOWS, f'key_line_shown("mean")\n\n{SHOWS}',
          "key_line_shown(", "needs a call and the reason"),
    judge("shows no id", SHOWS, f"shows = 3\n\n{SHOWS}", "shows = 3", "list of ids"),
    judge("shows without a mutant", SHOWS, f'shows = ["basics/sums"]\n\n{SHOWS}', "shows =",
          "no mutant has that misconception"),
    judge("odd misconception", 'columns", caught_by=centred', 'columns", caught_by=centred, '
          'misconception="means"', '@mutant("averages', "is the id of a lesson"),
    judge("shows without a mistake of that lesson", '@mutant("averages the columns", caught_by=c',
          'shows = ["basics/sums"]\n\n@mutant("averages the columns", misconception="basics/sums", '
          "caught_by=c", "shows =", "says which mistake of that lesson"),
    judge("mistake of no lesson", 'columns", caught_by=centred',
          'columns", caught_by=centred, like="x"', '@mutant("averages', "misconception= names"),
    judge("misconception of an unknown lesson", 'columns", caught_by=centred',
          'columns", caught_by=centred, misconception="basics/sums"', '@mutant("averages',
          "there is no lesson 'basics/sums'", "nearest is 'basics/means'"),
]  # fmt: skip
RULES = [
    judge("quote that is not there", '"The input stays as it is"', '"The input keeps its values"',
          "holds=[", "does not say 'The input keeps its values'"),
    judge("sentence without a check", 'holds=["The input stays as it is"]', 'hint="x"',
          "Write `centre`. A row", "no check holds an answer to", "The input stays", file=LESSON),
    judge("background that is not there", "A row is a sample.", "A row is one.", "A row is one.",
          "no sentence of the task begins with"),
    judge("one side", "both_sides=True", 'side="keepdim"', '"Every row', "two sides ('or')",
          "the side 'keepdim' alone"),
    judge("first hint", "@hinted(1, ", "@hinted(2, ", 1, "followed the first hint"),
    lesson("experiment in prose", "Two rows, two means.\"\n```",
           "Two rows, two means.\"\n```\n\nWrite 0 and run it again.", "run it again",
           "make it a `try` fence"),
    lesson("key line", "m = x.mean(dim=1)\nfirst", "m = x.mean(dim=1, keepdim=True)\nfirst",
           "m = x.mean(dim=1, keepdim=True)", "decides the exercise", "mean(dim=1, keepdim=True)"),
    lesson("too long", "a dimension.\n", "a dimension.\n" + 4000 * 'word ', 1,
           "25 are the most"),
]  # fmt: skip


@pytest.mark.parametrize("case", [*PARSED, *RULES], ids=lambda case: case.rule)
def test_rule(tmp_path, case):
    root = copy_of_second(tmp_path, *case.edits)
    _, problems = read_course(root)
    said = "\n".join(map(str, problems))
    line = case.at if isinstance(case.at, int) else line_of(root, case.file, case.at)
    hits = [p for p in problems if p.path == case.file and p.line == line]
    assert any(all(word in hit.message for word in case.words) for hit in hits), said


def test_the_lesson_follows_all_rules():
    assert read_course(SECOND)[1] == ()


def test_a_lesson_without_a_picture_is_refused(tmp_path):
    root = copy_of_second(tmp_path)
    path = root / LESSON
    text = path.read_text()
    path.write_text(text[: text.index("```look")] + text[text.index("```try") :])
    (problem,) = read_course(root)[1]
    assert "shows no picture" in problem.message


def test_the_key_line_may_be_declared(tmp_path):
    shown = Edit(LESSON, "m = x.mean(dim=1)\nfirst", "m = x.mean(dim=1, keepdim=True)\nfirst")
    excuse = Edit(CHECKS, SHOWS, f'key_line_shown("torch.mean", because="it is short")\n\n{SHOWS}')
    notes = Edit(LESSON, 'row = "m = x.mean(dim=1)"', 'row = "m = x.mean"')
    problems = read_course(copy_of_second(tmp_path, shown, excuse, notes))[1]
    assert "decides the exercise" not in "\n".join(map(str, problems))


def test_two_checks_may_try_a_side_each(tmp_path):
    sides = (
        Edit(CHECKS, "both_sides=True", 'side="with keepdim"'),
        Edit(
            CHECKS,
            'holds=["The input stays as it is"]',
            'holds=["The input stays as it is", "loses its own mean"], side="without"',
        ),
    )
    assert read_course(copy_of_second(tmp_path, *sides))[1] == ()


def test_the_minutes_are_the_same_before_a_lesson_is_read():
    opened, loaded = open_course(SECOND).lessons[0], load_course(SECOND).lessons[0]
    assert opened.minutes == loaded.minutes > 5


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


def prove(root, runner):
    course = load_course(root, thorough=True)
    return list(verify(course, course.lessons, runner, seeds=3, limits=Limits(wall_s=10.0)))


def test_claims_for_cuda_are_counted_and_the_rest_is_proved(runner):
    found = prove(SECOND, runner)
    skipped = [finding for finding in found if isinstance(finding, Skipped)]
    assert {type(finding) for finding in found} == {Proved, Skipped}
    assert [finding.line for finding in skipped] == [
        line_of(SECOND, LESSON, "run needs=cuda"), line_of(SECOND, LESSON, "error needs=cuda"),
    ]  # fmt: skip
    assert {finding.message for finding in skipped} == {"it needs a CUDA device"}


UNPROVED = [
    lesson("another output", "        [4.]])", "        [5.]])", "        [5.]])",
           "it prints '        [4.]])'"),
    lesson("another part", '"[1.5000, 2.5000', '"[1.4, 2.5000', "shows =", "without '[1.4, 2.5000"),
    lesson("another error", 'error = "RuntimeError: mean(): could', 'error = "TypeError: mean',
           "error = ", "it raises 'RuntimeError: mean()"),
    lesson("no such row", 'row = "first"', 'row = "last"', 27, "no row 'last'; its rows: x, m"),
    lesson("another note", '"m: f32[2]"', '"m: f32[3]"', 33, "shows 'm: f32[2]', not 'm: f32[3]'"),
    lesson("another derivation", "[1.0, 4.0]", "[1.0, 4.5]", "[1.0, 4.5]", "'[1.0, 4.0]'"),
    judge("a hint that leads to an error", "return x - x.mean(dim=1)\n", "return x[0]\n", "@hinted",
          "'the shape stays' fails"),
]  # fmt: skip


@pytest.mark.parametrize("case", UNPROVED, ids=lambda case: case.rule)
def test_what_does_not_hold_is_found(tmp_path, runner, case):
    root = copy_of_second(tmp_path, *case.edits)
    (broken,) = [f for f in prove(root, runner) if isinstance(f, Broken)]
    line = case.at if isinstance(case.at, int) else line_of(root, case.file, case.at)
    assert (broken.path, broken.line) == (case.file, line), str(broken)
    assert all(word in broken.message for word in case.words), broken.message
