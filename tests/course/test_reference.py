"""Reference pages: what is read, what is wrong and where, what a run shows against them."""

import pytest

from tensortutor.course.catalog import load_course, read_course
from tensortutor.course.reference import names_of, read_reference
from tensortutor.course.reference_claims import check_reference, page_trials
from tensortutor.course.verify import Broken, Proved, prove
from tests.course.tiny import TINY, Edit, copy_of_tiny, line_of

PAGE = "lessons/reference/01_reduce.md"
WORDS = "lessons/reference/02_glossary.md"


def test_a_page_is_read():
    pages, problems = read_reference(TINY)
    assert problems == []
    assert [(page.id, page.kind, len(page.entries)) for page in pages] == [
        ("reduce", "calls", 2),
        ("glossary", "terms", 2),
    ]
    page = pages[0]
    assert page.intro == "What every line may use stands here."
    mean, extremes = page.entries
    assert mean.names == ("Tensor.mean", "average", "nanmean")
    assert mean.meaning == "The mean along a dimension."
    assert (mean.lessons, mean.section) == (("basics/means",), "Means")
    assert [shown.result for shown in mean.samples[0].shown] == [
        "tensor([2., 6.])",
        "(1, 2)",
        "RuntimeError: mean(): could not infer...",
        "(2, 2, 2)",
    ]
    assert extremes.names == ("torch.amax", "torch.amin")
    assert extremes.lessons == ("repairs/lost_dim", "basics/means")


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("Tensor.view(*shape)", ("Tensor.view",)),
        ("torch.zeros(a, b), torch.ones(a)", ("torch.zeros", "torch.ones")),
        ("x[i], x[i:j:k]", ("x[i]", "x[i:j:k]")),
        ("a @ b, torch.matmul(a, b)", ("a @ b", "torch.matmul")),
        ("(N, 1) - (N,)", ("(N, 1) - (N,)",)),
        ("`Leaf`", ("Leaf",)),
    ],
)
def test_a_title_names_calls(title, names):
    assert names_of(title) == names


BROKEN = [
    ("a kind", PAGE, 'kind = "calls"', 'kind = "list"', 'kind = "list"', "'kind' must be"),
    ("no front matter", PAGE, '+++\ntitle = "Reduce"', 'title = "Reduce"', 1, "front matter"),
    (
        "no lesson", PAGE, " See basics/means.\n```", "\n```", "### Tensor.mean",
        "leads to no lesson",
    ),
    (
        "unknown lesson", PAGE, "nanmean. See basics/means", "nanmean. See basics/meens",
        "### Tensor.mean", "there is no lesson 'basics/meens'; the nearest is 'basics/means'",
    ),
    (
        "nothing said", WORDS, "The sum divided by the number. ", "", "### Mean",
        "this entry says nothing",
    ),
    (
        "too much said", WORDS, "The sum divided by the number.", "A. B is so. C is so.",
        "### Mean", "more than 2 sentences",
    ),
    (
        "no code", PAGE, "```python\ntorch.amax(torch.ones(2, 3), 1).shape  # (2,)\n```\n", "",
        "### torch.amax", "has no code",
    ),
    ("no result", PAGE, ".shape  # (2,)", ".shape", 26, "shows no result"),
    ("no Python", PAGE, "y = x.mean(", "y = = x.mean(", "y = =", "not Python"),
    (
        "a remark beside code", PAGE, "x.mean(dim=1)         # tensor([2., 6.])",
        "import math  # a remark\nx.mean(dim=1)  # tensor([2., 6.])", "import math",
        "give a remark a line of its own",
    ),
    ("a long line", PAGE, ".shape  # (2,)", ".shape" + 60 * " " + "# (2,)", "(2,)", "columns of"),
    ("an open fence", PAGE, "1).shape  # (2,)\n```", "1).shape  # (2,)", 26, "not closed"),
    (
        "twice the same", WORDS, "### Centred row", "### Mean", 12,
        "'Mean' has an entry in lessons/reference/02_glossary.md:9 already",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "at", "words"), [case[1:] for case in BROKEN],
    ids=[case[0] for case in BROKEN],
)  # fmt: skip
def test_what_is_wrong_has_a_line(tmp_path, file, old, new, at, words):
    root = copy_of_tiny(tmp_path, Edit(file, old, new))
    course, wrong = read_course(root)
    assert wrong == ()
    _, problems = check_reference(course)
    said = "\n".join(map(str, problems))
    line = at if isinstance(at, int) else line_of(root, file, at)
    assert (problems[0].path, problems[0].line) == (file, line), said
    assert words in problems[0].message


def test_a_lesson_of_a_planned_chapter_may_be_named(tmp_path):
    plan = '\n[[chapters]]\nid = "later"\ntitle = "L"\nblurb = "B"\nplanned = true\n'
    root = copy_of_tiny(tmp_path, Edit(WORDS, "number. See basics/means", "number. See later/one"))
    contents = root / "lessons" / "course.toml"
    contents.write_text(contents.read_text("utf-8") + plan, "utf-8")
    assert check_reference(read_course(root)[0])[1] == []


def test_a_file_of_another_name_is_a_problem(tmp_path):
    root = copy_of_tiny(tmp_path)
    (root / "lessons" / "reference" / "shape.md").write_text("", "utf-8")
    assert [str(problem) for problem in read_reference(root)[1]] == [
        "lessons/reference/shape.md:1: a page's file is named NN_slug.md: rename it"
    ]


def test_a_sheet_that_does_not_fit_on_a_page_is_a_problem(tmp_path):
    root = copy_of_tiny(tmp_path)
    entry = "### {}\nSee basics/means.\n```python\n" + "x = 1  # 1\n" * 60 + "```\n"
    head = '+++\ntitle = "S"\nabout = "A"\nkind = "sheet"\n+++\n'
    text = head + "".join(map(entry.format, "abcd"))
    (root / "lessons" / "reference" / "08_sheet.md").write_text(text, "utf-8")
    assert [str(problem) for problem in check_reference(read_course(root)[0])[1]] == [
        "lessons/reference/08_sheet.md:1: printed, it has 125 rows of 110: shorten it"
    ]


def test_a_course_without_a_reference_has_no_pages(tmp_path):
    assert read_reference(tmp_path) == ((), [])


# --- proving ---


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


def proved(root, runner):
    course = load_course(root)
    pages, problems = check_reference(course)
    assert problems == []
    return list(prove(course, page_trials(pages), runner))


def test_every_result_is_proved(runner):
    found = proved(TINY, runner)
    assert {type(finding) for finding in found} == {Proved}
    assert [finding.line for finding in found] == [15, 16, 18, 21, 27]
    assert found[0].lesson == "reference/reduce"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tensor([2., 6.])", "tensor([2., 7.])", "it gives tensor([2., 6.]) of shape (2,)"),
        ("(1, 2)", "(2,)", "it gives tensor([[3., 5.]]) of shape (1, 2)"),
        ("(2, 2, 2)", "(2, 2)", "of shape (2, 2, 2)"),
        ("RuntimeError: mean", "RuntimeError: amean", "it raises RuntimeError: mean(): could"),
        ("torch.arange(3)", "torch.arange(3.0)", "it gives tensor(1.)"),
        ("(dim=1)         # tensor([2., 6.])", "(dim=9)  # tensor([2., 6.])", "raises IndexError"),
    ],
)
def test_a_wrong_result_is_found_at_its_line(tmp_path, runner, old, new, message):
    root = copy_of_tiny(tmp_path, Edit(PAGE, old, new))
    broken = [finding for finding in proved(root, runner) if isinstance(finding, Broken)]
    assert [(finding.path, finding.line) for finding in broken] == [
        (PAGE, line_of(root, PAGE, new.partition("\n")[0]))
    ]
    assert message in broken[0].message


def test_a_line_that_raises_unseen_breaks_what_follows(tmp_path, runner):
    root = copy_of_tiny(tmp_path, Edit(PAGE, "# A remark stands on", "1 / 0  \n# A remark on"))
    broken = [finding for finding in proved(root, runner) if isinstance(finding, Broken)]
    assert {finding.line for finding in broken} == {line_of(root, PAGE, "1 / 0")}
    assert "ZeroDivisionError" in broken[0].message
