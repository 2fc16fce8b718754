"""Single edits of solutions: which are made, which go unnoticed, and what is said of them."""

import dataclasses
import subprocess
import sys

import pytest

from tensortutor.course.catalog import load_course, read_course
from tensortutor.course.git_changes import NoHistory, changed_files
from tensortutor.course.mutants import LibraryMissing, mutants_of
from tensortutor.course.mutation_testing import Excused, Killed, Survived, Unsound, count, survivors
from tensortutor.protocol.events import Finished
from tests.course.fake_runner import FakeRunner, judged, raised
from tests.course.tiny import CHECKS, LESSON, TINY, Edit, copy_of_tiny, line_of
from tests.test_cli import tensortutor

FUNCTION = "def f(x, y):\n    {}\n"


def edits(source, judge=None):
    return [(mutant.kind, mutant.before, mutant.after) for mutant in mutants_of(source, judge)]


def afters(statement, kind):
    """What edits of a kind make of a statement, or of its header."""
    return [after for k, _, after in edits(FUNCTION.format(statement)) if k == kind]


@pytest.mark.parametrize(
    ("kind", "statement", "wanted"),
    [
        ("operator", "return x // y", ["return x / y"]),
        ("operator", "return x @ y", ["return x * y"]),
        ("operator", "return x**2 & y", ["return x**2 | y", "return x*2 & y"]),
        ("operator", "x += y", ["x -= y"]),
        ("operands", "return x - y * 2", ["return (y * 2) - x"]),
        ("operands", "return (x - y).abs() + (y - x) ** 2 + x * y", []),
        ("accumulation", "x += y", ["x = y"]),
        ("comparison", "return x < y", ["return x <= y", "return x >= y"]),
        ("comparison", "return x == y", ["return x != y"]),
        ("comparison", "return x is y in 3", ["return x is not y in 3", "return x is y not in 3"]),
        ("boolean", "return x and y", ["return x or y"]),
        ("sign", "return -x", ["return x"]),
        ("sign", "return ~x", ["return x"]),
        ("sign", "return not x", ["return x"]),
        ("sign", "return x[-1]", []),
        ("condition", "if x.any():\n        return y", ["if not x.any():"]),
        ("condition", "while x or y:\n        pass", ["while not (x or y):"]),
        ("condition", "return [v for v in x if v]", ["return [v for v in x if not v]"]),
        ("condition", "return x if y else 0", ["return x if not y else 0"]),
        ("constant", "return x.sum(1)", ["return x.sum(2)", "return x.sum(0)"]),
        ("constant", "return x.sum(dim=-1)", ["return x.sum(dim=0)", "return x.sum(dim=-2)"]),
        ("constant", "return x + 1e-5", ["return x + 1.00001", "return x + 0.0"]),
        ("constant", "return x + 0.0", ["return x + 1.0"]),
        ("constant", "return x.sum(keepdim=True)", ["return x.sum(keepdim=False)"]),
        ("word", 'return f(x, reduction="mean")', ["return f(x, reduction='sum')"]),
        ("word", 'return e("bi,bj->bij")', ["return e('bi,bj->bji')", "return e('bi,bj->bi')"]),
        ("word", 'return x["mean value"]', []),
        ("name", "return torch.argmax(x)", ["return torch.argmin(x)"]),
        ("name", "return max(x)", ["return min(x)"]),
        ("name", "return x.to(torch.float16)", ["return x.to(torch.bfloat16)"]),
        ("removed call", "return x.clone()", ["return x"]),
        ("removed call", "return x.detach().view(2)", ["return x.detach()", "return x.view(2)"]),
        ("removed call", "return torch.exp(x + y, out=y)", ["return (x + y)"]),
        ("removed call", "return self.norm(x)", ["return x"]),
        ("removed call", "return len(x)", []),
        ("swapped arguments", "return f(x, y)", ["return f(y, x)"]),
        ("swapped arguments", "return f(x, *y) + f(x, y=y) + f(x, x) + y.transpose(0, 1)", []),
        ("dropped keyword", "return f(x, a=1, b=y)", ["return f(x, b=y)", "return f(x, a=1)"]),
        ("bound", "return x[1:y:2]", ["return x[:y:2]", "return x[1::2]", "return x[1:y]"]),
        ("index", "return x[..., None]", ["return x"]),
        ("index", "x[0] = y[1]", ["x[0] = y"]),
        ("removed statement", "x.grad.zero_()", ["pass"]),
        ("removed statement", "x = x.clone()", ["pass"]),
        ("removed statement", "x.data = y", ["pass"]),
        ("removed statement", "z = y", []),
        ("removed statement", 'raise ValueError("too {x}" + 1)', ["pass"]),
        ("removed statement", '"""A docstring."""', []),
        ("context", "with torch.no_grad():\n        x += 1", ["if True:"]),
        ("context", "with open(x) as z:\n        x += 1", []),
    ],
)  # fmt: skip
def test_edits_of_each_kind(kind, statement, wanted):
    assert sorted(afters(statement, kind)) == sorted(wanted)


def test_a_decorator_can_go():
    source = "@torch.no_grad()\n@once\ndef f(x):\n    return x\n"
    header = "@torch.no_grad() @once def f(x):"
    assert edits(source) == [
        ("decorator", header, "@once def f(x):"),
        ("decorator", header, "@torch.no_grad() def f(x):"),
        ("name", header, "@torch.enable_grad() @once def f(x):"),
    ]


def test_messages_and_annotations_are_left_alone():
    source = 'def f(x: int = 0) -> "Tensor[1]":\n    raise ValueError(f"not {x + 1}")\n'
    assert {kind for kind, _, _ in edits(source)} == {"constant", "removed statement"}


def test_a_statement_is_shown_on_one_line_without_its_comments():
    source = "def f(x):\n    # before\n    return g(  # a\n        x,\n        dim=1,\n    )  # b\n"
    shown = [m for m in mutants_of(source) if m.kind == "dropped keyword"]
    assert [(m.line, m.before, m.after) for m in shown] == [
        (3, "return g(x, dim=1,)", "return g(x)")
    ]


def test_every_mutant_is_another_program_made_by_one_edit_and_the_order_is_that_of_the_lines():
    source = "def f(x, n):\n    x = x.sum(0) - n\n    return x if n > 0 else -x\n"
    found = mutants_of(source)
    assert found == mutants_of(source)
    assert len({mutant.source for mutant in found} | {source}) == len(found) + 1
    assert [mutant.line for mutant in found] == sorted(mutant.line for mutant in found)
    for mutant in found:
        compile(mutant.source, "mutant", "exec")
        changed = [
            (old, new)
            for old, new in zip(source.split("\n"), mutant.source.split("\n"), strict=True)
            if old != new
        ]
        assert [(old.strip(), new.strip()) for old, new in changed] == [
            (mutant.before, mutant.after)
        ]


# --- what the checks can see ---

PROGRAM = """\
import torch
STEP = 2
UNUSED = 3

def f(x):
    return x + STEP

def demo(x):
    return x * 5

x = demo(STEP)
print(f(x + 7))
"""


def lines_edited(judge, program=PROGRAM):
    return sorted({mutant.line for mutant in mutants_of(program, judge)})


def test_what_no_check_can_see_is_not_edited():
    asks = '@check("it adds")\ndef adds(answer, rng, device):\n    answer.f(rng.x)\n'
    assert lines_edited(asks) == [2, 6]
    assert lines_edited(asks.replace("answer.f", "answer.x")) == [2, 9, 11]
    assert lines_edited(asks.replace("answer", "given")) == [2, 6]
    assert lines_edited(asks.replace("answer.f(rng.x)", 'getattr(answer, "f")')) == [2, 6]


def test_a_check_that_reads_the_output_sees_the_whole_program():
    asks = '@check("it prints")\ndef prints(answer, rng, device):\n    answer.output\n'
    assert lines_edited(asks) == [2, 3, 6, 9, 11, 12]


def test_a_program_without_functions_is_edited_as_a_whole():
    assert lines_edited("", "x = 1\nprint(x)\nprint(x + 2)\n") == [1, 2, 3]


def test_without_the_library_a_sentence_says_what_to_install(monkeypatch):
    for name in ("libcst", "libcst.metadata"):
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("tensortutor.course.mutation_sites", "tensortutor.course.mutation_operators"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(LibraryMissing, match=r"pip install 'tensortutor\[author\]'"):
        mutants_of("x = 1\n")


# --- which of them the checks notice ---

DIM = "return x - x.mean(dim=1, keepdim=True)"


@pytest.fixture
def runner(runner_on_cpu):
    return runner_on_cpu


def fates(root, runner, **options):
    course = load_course(root, thorough=True)
    return list(survivors(course, course.lessons[:1], runner, **options))


WEAK = Edit(CHECKS, "    return torch.randn(shape, device=device)", "    return torch.randn(3, 3)")
SQUARE = Edit(
    LESSON, DIM + "\n```\n\n## Deb", "rows = x.shape[0]\n    " + DIM + " * rows / 3\n```\n\n## Deb"
)
"""An answer that is right for three rows only, and inputs that have no other number."""


def declared(before, after):
    text = f'equivalent(\n    "{before}",\n    "{after}",\n    because="Three is three.",\n)\n'
    return [
        Edit(CHECKS, "check, expect_close", "check, equivalent, expect_close"),
        Edit(CHECKS, '\n\n@accepted("adds', f'\n\n{text}\n\n@accepted("adds'),
    ]


ROWS = ("rows = x.shape[0]", "rows = x.shape[1]")


def test_a_sound_lesson_notices_every_mutant(runner):
    found = fates(TINY, runner)
    assert {type(fate) for fate in found} == {Killed}
    assert len(found) == count(load_course(TINY, thorough=True).lessons[:1]) == 9
    assert {fate.by for fate in found} == {
        "'every row is centred on its own mean' fails with seed 0"
    }


def test_a_weak_check_lets_a_mutant_survive(tmp_path, runner):
    root = copy_of_tiny(tmp_path, WEAK, SQUARE)
    weak = [fate for fate in fates(root, runner) if not isinstance(fate, Killed)]
    assert {type(fate) for fate in weak} == {Survived}
    first = weak[0]
    assert (first.path, first.before, first.after) == (LESSON, *ROWS)
    assert first.line == line_of(root, LESSON, "rows = x.shape[0]")


def test_a_declared_equivalent_excuses_its_survivor_alone(tmp_path, runner):
    root = copy_of_tiny(tmp_path, WEAK, SQUARE, *declared(*ROWS))
    found = [fate for fate in fates(root, runner) if not isinstance(fate, Killed)]
    assert [fate.after for fate in found if isinstance(fate, Excused)] == [ROWS[1]]
    assert [fate.because for fate in found if isinstance(fate, Excused)] == ["Three is three."]
    assert any(isinstance(fate, Survived) for fate in found)
    assert not any(isinstance(fate, Unsound) for fate in found)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (DIM, DIM.replace("dim=1", "dim=0"), "this edit is no equivalent: 'every row is centred"),
        (DIM, DIM.replace("-", "/"), f"the nearest is '{DIM}  ->  "),
    ],
    ids=["killed", "unknown"],
)
def test_a_declaration_that_excuses_nothing_is_reported(tmp_path, runner, before, after, words):
    root = copy_of_tiny(tmp_path, *declared(before, after))
    (stale,) = [fate for fate in fates(root, runner) if not isinstance(fate, Killed)]
    assert isinstance(stale, Unsound)
    assert (stale.path, stale.line) == (CHECKS, line_of(root, CHECKS, "equivalent(\n".strip()))
    assert words in stale.message


def test_a_solution_that_fails_has_no_mutants(tmp_path, runner):
    root = copy_of_tiny(tmp_path, SQUARE)
    (unsound,) = fates(root, runner)
    assert (type(unsound), unsound.path) == (Unsound, LESSON)
    assert "no mutants of a solution that fails: 'every row is centred" in unsound.message


@pytest.mark.parametrize(
    "written", ['"x"', '"x", "y"', '"x", y, because="z"', '"x", "y", because=" "']
)
def test_a_declaration_has_two_statements_and_a_reason(tmp_path, written):
    edit = Edit(CHECKS, '\n\n@accepted("adds', f'\n\nequivalent({written})\n\n\n@accepted("adds')
    root = copy_of_tiny(tmp_path, edit)
    _, (problem,) = read_course(root, thorough=True)
    assert (problem.path, problem.line) == (CHECKS, line_of(root, CHECKS, "equivalent("))
    assert "equivalent needs three strings" in problem.message


def ended(outcome, code=1):
    return [Finished(outcome, code, f"It was {outcome}.", 1.0)]


@pytest.mark.parametrize(
    ("say", "fate"),
    [
        (judged, Survived),
        (lambda job: judged(job, job.judge.checks[0]), Killed),
        (lambda job: raised("ValueError", "no"), Killed),
        (lambda job: judged(job)[:1] + ended("killed", 139), Killed),
        (lambda job: ended("time"), Killed),
        (lambda job: ended("memory"), Killed),
        (lambda job: ended("exited"), Killed),
        (lambda job: ended("lost"), Unsound),
    ],
    ids=["passed", "failed", "raised", "crashed", "time", "memory", "exited", "lost"],
)
def test_how_a_run_ends_decides_the_fate(say, fate):
    course = load_course(TINY, thorough=True)
    solution = course.lessons[0].task.solution
    runner = FakeRunner(lambda job: judged(job) if job.source == solution else say(job))
    assert {type(f) for f in survivors(course, course.lessons[:1], runner)} == {fate}


def test_mutants_get_a_short_time_and_three_seeds_in_one_run():
    course = load_course(TINY, thorough=True)
    runner = FakeRunner(judged)
    list(survivors(course, course.lessons[:1], runner))
    first, *rest = [run.job for run in runner.runs]
    assert first.limits.wall_s == 180.0
    assert {job.limits.wall_s for job in rest} == {10.0}
    assert {job.judge.seeds for job in rest} == {(0, 1, 2)}
    assert {job.judge.until for job in rest} == {course.lessons[0].judge.checks}
    assert {job.scratch for job in rest} == {""}


def test_lessons_for_cuda_are_left_out_elsewhere():
    course = load_course(TINY, thorough=True)
    cuda = [dataclasses.replace(course.lessons[0], device="cuda")]
    assert list(survivors(course, cuda, FakeRunner(judged))) == []
    assert len(list(survivors(course, cuda, FakeRunner(judged), device="cuda:0"))) == 9


# --- the command ---

GATE = ("verify", "basics/means", "--seeds", "1", "--mutate")


def test_the_command_passes_a_lesson_whose_mutants_are_all_killed():
    done = tensortutor(*GATE)
    assert (done.returncode, done.stderr) == (0, "")
    *_, lesson, whole = done.stdout.splitlines()
    assert lesson.startswith("✓ passed  basics/means: 9 of 9 mutants killed (100.0 %), ")
    assert whole.startswith("9 of 9 mutants killed (100.0 %); at least 95 % wanted (")


def test_the_command_fails_below_the_wanted_share_and_names_the_survivors(tmp_path):
    root = copy_of_tiny(tmp_path, WEAK, SQUARE)
    done = tensortutor(*GATE, course=root)
    assert done.returncode == 1
    line = line_of(root, LESSON, ROWS[0])
    assert f"{LESSON}:{line}: survived: {ROWS[0]}  ->  {ROWS[1]}\n" in done.stdout
    assert "• survived  basics/means: " in done.stdout


def git(root, *arguments):
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", root, *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """The tiny course below the root of a git checkout."""
    root = copy_of_tiny(tmp_path)
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "first")
    return root


def test_changed_files_are_those_that_differ_from_a_revision(checkout):
    assert changed_files(checkout, "HEAD") == frozenset()
    WEAK.apply(checkout)
    new = checkout / "lessons" / "01_basics" / "02_new.md"
    new.write_text("new", "utf-8")
    (checkout / "README").write_text("elsewhere", "utf-8")
    assert changed_files(checkout, "HEAD") == {checkout / CHECKS, new}
    git(checkout, "add", ".")
    git(checkout, "commit", "-m", "second")
    assert changed_files(checkout, "HEAD") == frozenset()
    assert changed_files(checkout, "HEAD^") == {checkout / CHECKS, new}


def test_only_changed_lessons_are_verified(checkout):
    Edit(
        "lessons/02_repairs/01_lost_dim.md",
        "Which sizes meet?",
        "Which meet?",
    ).apply(checkout)
    done = tensortutor("verify", "--seeds", "1", "--changed", "HEAD", course=checkout)
    assert done.returncode == 0
    assert "repairs/lost_dim" in done.stdout
    assert "basics/means" not in done.stdout


def test_mutants_are_tried_only_where_the_checks_have_changed(checkout):
    WEAK.apply(checkout)
    arguments = ("verify", "--seeds", "1", "--mutate", "--mutate-since", "HEAD")
    done = tensortutor(*arguments, course=checkout)
    tried = [line for line in done.stdout.splitlines() if "mutants killed" in line]
    assert len([line for line in tried if "basics/means" in line]) == 1
    assert not any("repairs/lost_dim" in line for line in tried)


def test_without_a_history_a_sentence_says_so(tmp_path, checkout):
    refused = tensortutor("verify", "--changed", "no-such-branch", course=checkout)
    assert refused.returncode == 2
    assert "git knows no revision 'no-such-branch'" in refused.stderr
    with pytest.raises(NoHistory, match="is in no git checkout"):
        changed_files(tmp_path.parent, "HEAD")
