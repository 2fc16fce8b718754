"""One edit for each rule: the broken lesson gives these problems, at these lines, and no others."""

from dataclasses import dataclass

import pytest

from tensortutor.course.catalog import read_course
from tests.course.tiny import CHECKS, FIX_CHECKS, LESSON, Edit, copy_of_tiny, line_of

RUN = """```python run
import torch

x = torch.arange(6.0).view(2, 3)
print(x.mean(dim=1))
print(x.mean(dim=1, keepdim=True).shape)
```
"""
EXERCISE = '''```python exercise
def centre(x):
    """x: (rows, columns), floating point -> the same shape."""
    return x - x.mean()
```
'''
HINT_1 = "```hint\nWhich dimension runs along a row?\n```\n"
HINT_2 = "```hint\n`keepdim=True` makes the means line up with the rows.\n```\n"
SOLUTION = """```python solution
def centre(x):
    return x - x.mean(dim=1, keepdim=True)
```
"""
ERROR = "```python error\nimport torch\n\ntorch.arange(3).mean()\n```\n"
MESSAGE = "```message\nRuntimeError: mean(): could not infer output dtype\n```\n"
TRUTH = """```quiz
kind = "truth"
ask = "`y` shares its storage with `x`."
answer = false
proof = "y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()"
explain = "A mean is a new value."
```
"""
COLUMNS = '"the columns" = "Dimension 1 counts the columns."'
WIDE = "y = " + "1 + " * 18 + "1"
TALL = "".join(f"a = {n}\n" for n in range(61))
LONG = "".join(f"Line {n}.\n" for n in range(41))


@dataclass(frozen=True)
class Found:
    """A problem. at: the first line that contains this text, or the line's number."""

    at: str | int
    words: tuple[str, ...]
    file: str = LESSON


@dataclass(frozen=True)
class Case:
    """A rule, the edit that breaks it, and all that is then reported."""

    rule: str
    edit: Edit
    found: tuple[Found, ...]


def at(place: str | int, *words: str, file: str = LESSON) -> Found:
    return Found(place, words, file)


def lesson(rule: str, old: str, new: str, *found: Found) -> Case:
    return Case(rule, Edit(LESSON, old, new), found)


def judge(rule: str, old: str, new: str, *found: Found) -> Case:
    found = tuple(Found(f.at, f.words, CHECKS) for f in found)
    return Case(rule, Edit(CHECKS, old, new), found)


FRONT_MATTER = [
    lesson(
        "unknown key",
        "minutes = 5",
        "minutes = 5\nminuets = 5",
        at("minuets", "no key 'minuets'", "nearest is 'minutes'"),
    ),
    lesson("missing key", "minutes = 5\n", "", at(1, "lacks 'minutes'", "whole number")),
    lesson(
        "wrong type",
        "minutes = 5",
        'minutes = "5"',
        at("minutes =", "'minutes' must be a whole number", "'5'"),
    ),
    lesson("truth for a number", "minutes = 5", "minutes = true", at("minutes =", "not true")),
    lesson("blank title", '"Means of rows"', '" "', at("title =", "'title'", "not empty")),
    lesson(
        "unknown device", 'device = "any"', 'device = "gpu"', at("device =", '"ranks:N"', "'gpu'")
    ),
    lesson(
        "not an id", "requires = []", 'requires = ["Basics/x-y"]', at("requires =", "list of ids")
    ),
    lesson(
        "unknown limit",
        "wall_s = 30",
        "wall_time = 30",
        at("limits =", "no key 'wall_time'", "'wall_s'"),
    ),
    lesson(
        "limit of zero",
        "wall_s = 30",
        "wall_s = 0",
        at("limits =", "'wall_s'", "from 0.1 to 86400"),
    ),
    lesson("not TOML", "minutes = 5", "minutes = five", at("minutes =", "is not TOML")),
    lesson("not closed", "}\n+++\n", "}\n", at(1, "not closed", "+++")),
    lesson(
        "none at all",
        '+++\ntitle = "Means',
        'title = "Means',
        at(1, "front matter is missing", "+++"),
    ),
]
PARTS = [
    lesson("no Insight", "## Insight", "## Idea", at(1, "'## Insight' is missing", "add this")),
    lesson(
        "no Debugging",
        "## Debugging",
        "## Debug",
        at(1, "'## Debugging' is missing", "is it '## Debug' in line 120?"),
    ),
    lesson(
        "no In the wild",
        "## In the wild",
        "## In The Wild",
        at(1, "'## In the wild' is missing", "is it '## In The Wild' in line 144?"),
    ),
    lesson(
        "no run pane", RUN, "", at(1, "nothing to run"), at("```output", "belongs to no program")
    ),
    lesson(
        "no task",
        EXERCISE,
        "",
        at(1, "there is no task"),
        at("```hint", "hint belongs to no task"),
        at(107, "hint belongs to no task"),
        at("```python solution", "solution belongs to no task"),
    ),
    lesson(
        "two tasks",
        "## Debugging\n",
        f"## B\n\n{EXERCISE}{HINT_1}{HINT_2}{SOLUTION}## Debugging\n",
        at(122, "has a task in line 104 already"),
    ),
    lesson("no solution", SOLUTION, "", at("```python exercise", "has no solution")),
    lesson("two solutions", SOLUTION, SOLUTION * 2, at(119, "solution in line 115", "@accepted")),
    lesson("one hint", HINT_1, "", at("```python exercise", "2 or 3 hints", "has 1")),
    lesson("four hints", HINT_1, HINT_1 * 3, at("```python exercise", "2 or 3 hints", "has 4")),
    lesson(
        "hint without task",
        "## Debugging\n",
        f"## Debugging\n{HINT_1}",
        at(121, "hint belongs to no task", "python exercise"),
    ),
    lesson(
        "no quiz to predict",
        "## Practice\n",
        "## B\n```python predict\n1\n```\n## Practice\n",
        at(101, "nothing to predict", "add a quiz"),
    ),
    lesson("no title", "## See it run", "##", at(21, "has no title")),
    lesson(
        "two panes",
        "The rows were averaged",
        "```python run\nx = 1\n```\nThe rows",
        at(36, "has code in line 23 already", "##"),
    ),
    lesson(
        "fence without a step",
        "+++\n\n## Insight",
        f"+++\n{RUN}## Insight",
        at(9, "a run fence without a step", "##"),
    ),
    lesson(
        "text without a step",
        "+++\n\n## Insight",
        "+++\nHello.\n\n## Insight",
        at(9, "text without a step"),
    ),
    lesson(
        "long text",
        "The rows were averaged",
        LONG + "The rows were averaged",
        at("## See it run", "42 lines of text, 40 are the most"),
    ),
    lesson("wide code", "print(x.mean(dim=1))", WIDE, at(WIDE, "77 columns wide: 72")),
    lesson("long code", "print(x.mean(dim=1))\n", TALL, at(23, "65 lines: 60 are the most")),
    lesson(
        "wide solution",
        "def centre(x):\n    return x - x.mean(dim=1",
        f"def centre(x):\n    {WIDE}\n    return x - x.mean(dim=1",
        at(WIDE, "81 columns"),
    ),
]
FENCES = [
    lesson(
        "unknown keyword",
        "```python run\nimport",
        "```python runs\nimport",
        at(1, "nothing to run"),
        at("```python runs", "nearest is `python run`"),
        at("```output", "output belongs to no program"),
    ),
    lesson(
        "keyword without python",
        "```hint\nWhich",
        "```exercise\n```\n```hint\nWhich",
        at("```exercise", "nearest is `python exercise`"),
    ),
    lesson(
        "more words",
        RUN,
        RUN.replace("run", "run fast"),
        at(1, "nothing to run"),
        at("run fast", "nearest is `python run`"),
        at("```output", "belongs to no program"),
    ),
    lesson(
        "plural",
        "```hint\nWhich",
        "```hints\nWhich",
        at("```python exercise", "has 1"),
        at("```hints", "nearest is `hint`"),
    ),
    lesson(
        "output with a word",
        "```output\ntensor([1.,",
        "```output text\ntensor([1.,",
        at("```output text", "write `output` alone"),
    ),
    lesson(
        "not closed before the next",
        "keepdim=True).shape)\n```\n",
        "keepdim=True).shape)\n",
        at(23, "not closed before line 30 opens another"),
    ),
    lesson(
        "not closed at the end",
        MESSAGE[:-4] + "```\n\nAn odd",
        MESSAGE[:-4] + "\nAn odd",
        at(129, "not closed before line 134"),
    ),
    lesson(
        "last fence not closed",
        "In the wild\n",
        "In the wild\n\n```python\nx = 1\n",
        at(146, "not closed until the end of the file"),
    ),
    lesson(
        "closed by too few",
        "````\n\n## See",
        "```\n\n## See",
        at("````text", "not closed until the end", "add a line ````"),
    ),
    lesson("empty", HINT_1, "```hint\n```\n", at("```hint", "hint fence is empty")),
    lesson(
        "output without a program",
        "The rows were",
        "```output\n1\n```\nThe rows were",
        at(36, "output belongs to no program", "right below"),
    ),
    lesson(
        "output of a task",
        EXERCISE,
        EXERCISE + "```output\n1\n```\n",
        at(109, "output belongs to no program"),
    ),
    lesson("message without error", ERROR, "", at("```message", "message belongs to no program")),
    lesson("error without message", MESSAGE, "", at("```python error", "error is not said")),
    lesson(
        "text before message",
        f"{ERROR}{MESSAGE}",
        f"{ERROR}Then:\n{MESSAGE}",
        at("```python error", "error is not said"),
        at(130, "message belongs to no program"),
    ),
]
QUIZZES = [
    lesson(
        "unknown kind",
        'kind = "truth"',
        'kind = "true"',
        at('kind = "true"', "no kind 'true'", "nearest is 'truth'"),
    ),
    lesson(
        "unknown quiz key",
        'explain = "A mean',
        'explains = "A mean',
        at(58, "the quiz lacks 'explain'"),
        at("explains", "no key 'explains'", "nearest is 'explain'"),
    ),
    lesson("missing proof", 'proof = "y[-1]"\n', "", at(50, "the quiz lacks 'proof'")),
    lesson(
        "number not a number",
        "answer = 3.5",
        'answer = "3.5"',
        at('answer = "3.5"', "'number' must be a number", "'3.5'"),
    ),
    lesson("number true", "answer = 3.5", "answer = true", at("answer = true", "must be a number")),
    lesson(
        "truth not a truth",
        "answer = false",
        "answer = 0",
        at("answer = 0", "'truth' must be true or false", "not 0"),
    ),
    lesson("shape not a list", "answer = [3]", "answer = 3", at(68, "list of whole numbers")),
    lesson("shape of floats", "answer = [3]", "answer = [3.0]", at(68, "list of whole numbers")),
    lesson("text not text", 'answer = "torch.float32"', "answer = 32", at(75, "must be a string")),
    lesson(
        "answer no choice",
        'answer = "the rows"',
        'answer = "rows"',
        at('answer = "rows"', "'rows' is not among the choices", "the rows and the columns"),
    ),
    lesson(
        "no choices",
        'choices = ["the rows", "the columns"]\n',
        "",
        at(79, "the quiz lacks 'choices'"),
    ),
    lesson(
        "same choice twice",
        '["the rows", "the columns"]',
        '["the rows", "the rows"]',
        at("choices =", "two or more different strings"),
    ),
    lesson(
        "choices for a number",
        "tolerance = 0.01",
        'choices = ["a", "b"]',
        at('choices = ["a"', "'choices' belongs to the kind 'choice', not 'number'"),
    ),
    lesson(
        "tolerance for a shape",
        "answer = [3]",
        "answer = [3]\ntolerance = 1",
        at("tolerance = 1", "'tolerance' belongs to the kind 'number'"),
    ),
    lesson(
        "wrong of no choice",
        COLUMNS,
        '"columns" = "Dimension 1."',
        at("[wrong]", "'columns'", "none of the wrong choices"),
    ),
    lesson(
        "order of one",
        '["x.mean()", "x.mean(dim=1)", "x.mean(dim=0)"]',
        '["x.mean()"]',
        at(92, "list of two or more strings"),
    ),
    lesson(
        "quiz not TOML", "answer = 3.5", "answer = 3.5 apples", at("apples", "quiz is not TOML")
    ),
    lesson(
        "quiz cut off",
        'explain = "1, 2 and 3 elements."',
        'explain = """1, 2 and 3',
        at('explain = """1', "quiz is not TOML"),
    ),
]
JUDGES = [
    judge(
        "syntax error",
        "    x = rows(rng, device)\n    with",
        "    x = rows(rng device)\n    with",
        at("rows(rng device)", "check file is not Python"),
    ),
    judge(
        "caught by no check",
        "caught_by=untouched",
        "caught_by=untuched",
        at("untuched", "untuched, which is no check above it", "nearest is untouched"),
    ),
    judge(
        "caught by a helper",
        "caught_by=untouched",
        "caught_by=rows",
        at("caught_by=rows", "rows, which is no check above it"),
    ),
    judge("no caught_by", ", caught_by=untouched", "", at('@mutant("subtracts', "lacks caught_by")),
    judge(
        "no name",
        '@accepted("adds a dimension by hand")',
        "@accepted",
        at("@accepted", "needs a name in quotes"),
    ),
    judge(
        "two checks of one name",
        '"the input stays as it was"',
        '"every row is centred on its own mean"',
        at(25, "two checks", "rename one"),
    ),
    judge(
        "two check functions",
        "def untouched",
        "def computed",
        at(25, "two check functions computed()"),
        at("caught_by=untouched", "is no check above it"),
    ),
    judge(
        "two variants of one name",
        '"adds a dimension by hand"',
        '"subtracts in place"',
        at('@accepted("subtracts', "two variants", "rename one"),
    ),
    judge(
        "forbid not a tuple",
        '("torch.nn.functional.layer_norm",)',
        '"torch.layer_norm"',
        at("forbid=", "tuple of names in quotes"),
    ),
    judge(
        "variant of nothing",
        "def centre(x):\n    return x - x.mean(1)[:, None]",
        "def center(x):\n    return x - x.mean(1)[:, None]",
        at('@accepted("adds', "replaces center", f"{LESSON}:115", "it defines centre"),
    ),
    lesson(
        "solution defines another",
        "def centre(x):\n    return x - x.mean(dim=1",
        "def center(x):\n    return x - x.mean(dim=1",
        at('@mutant("averages', "does not define", "defines center", file=CHECKS),
        at('@mutant("subtracts', "does not define", "defines center", file=CHECKS),
        at('@accepted("adds', "does not define", "defines center", file=CHECKS),
    ),
    lesson(
        "solution with a syntax error",
        "return x - x.mean(dim=1, keepdim=True)\n```\n\n## Deb",
        "return x - x.mean(dim=1\n```\n\n## Deb",
        at("return x - x.mean(dim=1\n".strip(), "the solution is not Python"),
    ),
]
ALL = [*FRONT_MATTER, *PARTS, *FENCES, *QUIZZES, *JUDGES]


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.rule)
def test_rule(tmp_path, case):
    root = copy_of_tiny(tmp_path, case.edit)
    _, problems = read_course(root)
    wanted = []
    for found in case.found:
        line = found.at if isinstance(found.at, int) else line_of(root, found.file, found.at)
        wanted.append(f"{found.file}:{line}")
    said = [str(problem) for problem in problems]
    assert [text.partition(": ")[0] for text in said] == wanted, "\n".join(said)
    for text, found in zip(said, case.found, strict=True):
        for word in found.words:
            assert word in text


def test_rules_have_different_names():
    assert len({case.rule for case in ALL}) == len(ALL)


def test_the_tiny_course_breaks_no_rule(tmp_path):
    assert read_course(copy_of_tiny(tmp_path))[1] == ()


def test_every_error_is_reported_at_once(tmp_path):
    edits = [case.edit for case in (FRONT_MATTER[0], PARTS[0], FENCES[-4], QUIZZES[0], JUDGES[1])]
    _, problems = read_course(copy_of_tiny(tmp_path, *edits))
    said = "\n".join(map(str, problems))
    assert len(problems) == 5
    for word in ("minuets", "## Insight", "output belongs", "no kind 'true'", "untuched"):
        assert word in said


def test_bytes_that_are_not_utf8_give_their_line(tmp_path):
    root = copy_of_tiny(tmp_path)
    path = root / LESSON
    path.write_bytes(path.read_bytes().replace(b"A reduction takes", b"A r\xe9duction takes"))
    _, problems = read_course(root)
    assert [str(p).partition(":")[2][:2] for p in problems] == ["12"]
    assert "byte 0xe9 is not UTF-8" in problems[0].message


def test_check_file_missing(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / CHECKS).unlink()
    _, problems = read_course(root)
    assert [str(p) for p in problems] == [f"{LESSON}:1: its check file is missing: write {CHECKS}"]


def test_check_file_without_checks(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / FIX_CHECKS).write_text('"""Nothing yet."""\n')
    _, problems = read_course(root)
    assert [str(p) for p in problems] == [
        f'{FIX_CHECKS}:1: there is no check: declare one with @check("what it wants")'
    ]
