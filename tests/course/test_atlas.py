"""The atlas: reading it, choosing the one entry that knows an error, filling its sentences."""

import sys
from pathlib import Path

import pytest

from tensortutor.course.atlas import check_atlas, read_atlas
from tensortutor.course.catalog import find_course, open_course
from tensortutor.course.error_logs import Complaint
from tensortutor.course.explain import Explainer, explained, known, matching
from tensortutor.course.placeholders import fill
from tensortutor.course.prose import paragraphs
from tensortutor.protocol.events import Explained, Finished, Raised, Verdict, Warned
from tensortutor.protocol.scene import Operand, Scene
from tests.course.reading import LOUD, plain, sentences, words
from tests.course.tiny import TINY, copy_of_tiny

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MOST_WORDS = 30
PLANNED = tomllib.loads((Path(__file__).parent / "data" / "graph.toml").read_text("utf-8"))
ENTRY = """\
[[errors]]
id = "sizes"
title = "Sizes differ"
pattern = 'RuntimeError: sizes (?P<a>\\d+) and (?P<b>\\d+)'
facts = ["{left} and {right}: {a} is not {b}.", "{a} is not {b}."]
means = "They must agree."
way_out = "Make them agree."
lesson = "basics/means"

[[errors.programs]]
says = "3 is not 4"
source = '''
raise RuntimeError("sizes 3 and 4")
'''
"""


def course_with(folder: Path, atlas: str) -> Path:
    root = copy_of_tiny(folder)
    (root / "lessons" / "atlas.toml").write_text(atlas, "utf-8")
    return root


def entries_of(folder: Path, atlas: str):
    entries, problems = read_atlas(course_with(folder, atlas))
    assert problems == []
    return entries


# --- reading ---


def test_an_entry_is_read_whole(tmp_path):
    (entry,) = entries_of(tmp_path, ENTRY)
    assert (entry.id, entry.title, entry.line) == ("sizes", "Sizes differ", 1)
    (program,) = entry.programs
    assert program.source == 'raise RuntimeError("sizes 3 and 4")\n'
    assert (program.line, program.says, program.ranks) == (10, "3 is not 4", 0)


def test_a_course_without_an_atlas_has_no_entries():
    assert read_atlas(TINY) == ((), [])


def test_learners_need_no_programs(tmp_path):
    root = course_with(tmp_path, ENTRY)
    assert [entry.programs for entry in read_atlas(root, thorough=False)[0]] == [()]


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("[[errors]]", "[[errors", 1, "atlas.toml is not TOML"),
        ("[[errors]]", "[[mistakes]]", 1, "has no key 'mistakes'; the nearest is 'errors'"),
        ('id = "sizes"', 'id = "Sizes 2"', 2, "'id' must be lower-case letters"),
        ('title = "Sizes differ"\n', "", 1, "the error lacks 'title'"),
        ('means = "They', 'meaning = "They', 6, "the error has no key 'meaning'"),
        ("'RuntimeError: sizes", "'RuntimeError: (sizes", 4, "this is no regular expression"),
        ("'RuntimeError: sizes", "'|RuntimeError: sizes", 4, "fits every text"),
        ("{left} and", "{left.colour} and", 5, "{left.colour} is neither a group"),
        ("{a} is not {b}.", "{Nobody} is not {b}.", 5, "{Nobody} is neither a group"),
        ('lesson = "basics/means"', 'lesson = "means"', 8, "'lesson' must be the id of a lesson"),
        ('lesson = "basics/means"', 'lesson = "basics/means"\nwhere = {}', 9, "'where' is empty"),
        ('lesson = "basics/means"', "where = { inside = '(' }", 8, "this is no regular expression"),
        ("source =", "code =", 12, "the program has no key 'code'"),
        ('raise RuntimeError("sizes 3 and 4")', "x = 1\nraise =", 14, "the program is not Python"),
        ("says =", "ranks = 9\nsays =", 11, "'ranks' must be a whole number from 1 to 8"),
        (ENTRY[ENTRY.index("[[errors.programs]]") :], "", 1, "lacks a program that raises it"),
        (ENTRY, ENTRY + ENTRY, 15, "there are two errors 'sizes'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path, old, new, line, words):
    assert old in ENTRY
    _, problems = read_atlas(course_with(tmp_path, ENTRY.replace(old, new, 1)))
    places = [(problem.path, problem.line) for problem in problems if words in problem.message]
    assert places == [("lessons/atlas.toml", line)], problems


def test_a_lesson_must_exist_unless_its_chapter_is_still_being_written(tmp_path):
    def wrong(id: str) -> list[str]:
        root = course_with(tmp_path / id, ENTRY.replace("basics/means", id))
        return [str(problem) for problem in check_atlas(open_course(root))[1]]

    assert wrong("basics/means") == wrong("later/anything") == []
    (problem,) = wrong("basics/medians")
    assert problem.startswith("lessons/atlas.toml:1: 'sizes' names the lesson 'basics/medians'")


# --- choosing ---


def test_the_subject_begins_with_the_type_and_its_module_does_not_count(tmp_path):
    entries = entries_of(tmp_path, ENTRY)
    for kind in ("RuntimeError", "torch.RuntimeError"):
        assert [e.id for e in matching(entries, Complaint(kind, "sizes 3 and 4"))] == ["sizes"]
    for kind, message in (("ValueError", "sizes 3 and 4"), ("RuntimeError", "my sizes 3 and 4")):
        assert matching(entries, Complaint(kind, message)) == []


def test_conditions_that_hold_go_before_none_and_those_that_do_not_hold_are_out(tmp_path):
    special = ENTRY.replace('id = "sizes"', 'id = "special"').replace(
        "[[errors.programs]]", "where = { inside = 'loss\\.', line = 'grad' }\n[[errors.programs]]"
    )
    entries = entries_of(tmp_path, ENTRY + special)

    def chosen(inside: tuple[str, ...], code: str) -> list[str]:
        found = matching(entries, Complaint("RuntimeError", "sizes 3 and 4", inside, code))
        return [entry.id for entry in found]

    assert chosen(("module.forward", "loss.__init__"), "w.grad += 1") == ["special"]
    assert chosen(("module.forward",), "w.grad += 1") == ["sizes"]
    assert chosen(("loss.__init__",), "w += 1") == ["sizes"]


def test_two_entries_for_one_error_are_both_named(tmp_path):
    twin = ENTRY.replace('id = "sizes"', 'id = "twin"')
    entries = entries_of(tmp_path, ENTRY + twin)
    found = matching(entries, Complaint("RuntimeError", "sizes 3 and 4"))
    assert [entry.id for entry in found] == ["sizes", "twin"]


def test_an_error_that_came_out_of_another_process_is_looked_up_first(tmp_path):
    worker = ENTRY.replace('id = "sizes"', 'id = "worker"').replace(
        "RuntimeError: sizes (?P<a>\\d+) and (?P<b>\\d+)", "\\w+: Caught (?P<a>\\w+)(?P<b>) in"
    )
    entries = entries_of(tmp_path, ENTRY + worker)
    message = (
        "Caught {0} in DataLoader worker process 0.\nOriginal Traceback (most recent call last):\n"
        '  File "/x/torch/utils/data/_utils/worker.py", line 3, in _worker_loop\n'
        '    data = fetcher.fetch(index)\n  File "a.py", line 9, in __getitem__\n{0}: {1}\n'
    )
    inner = Complaint("RuntimeError", message.format("RuntimeError", "sizes 3 and 4"))
    assert [e.id for e in known(entries, inner)[1]] == ["sizes"]
    other = Complaint("KeyError", message.format("KeyError", "'cat'"))
    assert [e.id for e in known(entries, other)[1]] == ["worker"]


# --- filling ---

X = Operand("x", ("left", "arg0"), "Tensor", "f32", (32, 10), "cpu")
W = Operand("self.fc.weight", ("weight",), "Parameter", "f32", (64, 12), "cuda:0")
NAMELESS = Operand("", ("input",), "Tensor", "i64", (), "cpu", values="0 to 7")
MODULE = Operand("self.fc", ("callee", "module"), "Linear")
NUMBER = Operand("dim", ("dim",), "int", values="2")
ARRAY = Operand("a", ("right",), "NumPy array", "float64", (5,), "cpu")
PART = Operand("y", (), "Tensor", "f32", (4,), "cpu")
ALL = (X, W, NAMELESS, MODULE, NUMBER, ARRAY, PART)


@pytest.mark.parametrize(
    ("sentence", "filled"),
    [
        ("{left}.", "`x` is f32[32, 10]."),
        ("{weight}.", "`self.fc.weight` is f32[64, 12] on cuda:0."),
        ("{input}.", "the input is i64[]."),
        ("{nobody|left.name} has {left.last} columns.", "`x` has 10 columns."),
        ("{left.shape} {left.first} {left.second} {left.ndim}", "[32, 10] 32 10 2"),
        ("{input.values}, {input.dtype}, {weight.device}", "0 to 7, i64, cuda:0"),
        ("{module.name} is a {module.kind}.", "`self.fc` is a Linear."),
        ("{dim}.", "`dim` is 2."),
        ("{right}.", "`a` is the NumPy array float64[5]."),
        ("{tensors}.", "`x` is f32[32, 10], `self.fc.weight` is f32[64, 12] on cuda:0 and "
         "`a` is the NumPy array float64[5]."),
        ("{size} is not {other}.", "3 is not 4."),
    ],
)  # fmt: skip
def test_parts_of_a_sentence(sentence, filled):
    assert fill([sentence], {"size": "3", "other": "4"}, ALL) == filled


@pytest.mark.parametrize("part", ["nobody", "module.shape", "input.last", "dim.dtype", "size"])
def test_a_sentence_with_an_unknown_part_gives_way_to_the_next(part):
    assert fill([f"It is {{{part}}}.", "It is what it is."], {"size": None}, ALL) == (
        "It is what it is."
    )
    assert fill([f"It is {{{part}}}."], {"size": None}, ALL) == ""


def test_what_a_value_holds_is_never_taken_for_a_part():
    braces = Operand("d['{left}']", ("left",), "Tensor", "f32", (1,), "cpu")
    assert fill(["{left}: {size}"], {"size": "{x}"}, [braces]) == "`d['{left}']` is f32[1]: {x}"


def test_tensors_of_the_line_are_named_where_the_operation_has_none():
    assert fill(["{tensors}."], {}, [PART]) == "`y` is f32[4]."


def test_code_keeps_its_lines_and_prose_does_not():
    text = "Some\nprose.\n\n    a = 1\n    b = 2\n\nMore."
    assert list(paragraphs(text)) == [
        (False, "Some prose."), (True, "a = 1\nb = 2"), (False, "More."),
    ]  # fmt: skip


# --- explaining ---

SCENE = Scene((X, Operand("y", ("right",), "Tensor", "f32", (4,), "cpu")))
RAISED = Raised("RuntimeError", "sizes 3 and 4\nmore", (), "...", SCENE)


def test_the_courses_own_atlas_goes_first_and_the_built_in_one_helps_out(tmp_path):
    explainer = Explainer(open_course(course_with(tmp_path, ENTRY)))
    own = explainer.event(RAISED)
    assert own == Explained(
        "", "sizes", "RuntimeError: sizes 3 and 4", "Sizes differ",
        "`x` is f32[32, 10] and `y` is f32[4]: 3 is not 4.", "They must agree.",
        "Make them agree.", "basics/means",
    )  # fmt: skip
    message = "shape '[4, 2]' is invalid for input of size 6"
    built_in = explainer.event(Raised("RuntimeError", message, (), ""))
    assert built_in is not None
    assert (built_in.entry, built_in.lesson) == ("view_size", "")  # a lesson of another course
    assert explainer.event(Raised("RuntimeError", "of my own", (), "")) is None


def test_the_lesson_is_named_only_when_it_is_there(tmp_path):
    planned = ENTRY.replace("basics/means", "later/anything")
    told = Explainer(open_course(course_with(tmp_path, planned))).event(RAISED)
    assert told is not None
    assert told.lesson == ""


@pytest.mark.parametrize(
    "message", ["RuntimeError: sizes 3 and 4", "rank 1: RuntimeError: sizes 3 and 4"]
)
def test_an_error_within_a_check_is_explained_for_that_check(tmp_path, message):
    explainer = Explainer(open_course(course_with(tmp_path, ENTRY)))
    told = explainer.event(Verdict("adds", False, 1, 1.0, message, scene=SCENE))
    assert told is not None
    assert (told.check, told.entry) == ("adds", "sizes")
    assert told.here.startswith("`x` is f32[32, 10]")
    for verdict in (
        Verdict("adds", True, 1, 1.0, message),
        Verdict("adds", False, 1, 1.0, "0.weight differs from what is wanted."),
    ):
        assert explainer.event(verdict) is None


def test_explanations_follow_their_error_and_are_told_once(tmp_path):
    explainer = Explainer(open_course(course_with(tmp_path, ENTRY)))
    other = Raised("RuntimeError", "sizes 5 and 6", (), "")
    warned = Warned("RuntimeError", "sizes 3 and 4", 1, SCENE)
    done = Finished("raised", 1, "...", 1.0)
    found = list(explained([warned, RAISED, other, done], explainer.event))
    assert [type(event) for event in found] == [
        Warned, Explained, Raised, Raised, Explained, Finished,
    ]  # fmt: skip


def test_an_atlas_that_is_not_sound_explains_what_it_can(tmp_path):
    broken = ENTRY.replace('id = "sizes"', 'id = "Not an id"') + ENTRY
    told = Explainer(open_course(course_with(tmp_path, broken))).event(RAISED)
    assert told is not None
    assert told.entry == "sizes"


# --- the built-in atlas ---

BUILT_IN, WRONG = check_atlas(open_course(find_course()))


def test_the_built_in_atlas_is_sound_and_large():
    assert WRONG == []
    assert sum(not entry.needs for entry in BUILT_IN) >= 60
    assert len({entry.title for entry in BUILT_IN}) == len(BUILT_IN)


@pytest.mark.parametrize("entry", BUILT_IN, ids=lambda entry: entry.id)
def test_an_entry_reads_well(entry):
    chapter, _, slug = entry.lesson.partition("/")
    assert slug in PLANNED[chapter], f"the course will have no lesson {entry.lesson}"
    prose = [
        text for part in (entry.means, entry.way_out) for code, text in paragraphs(part) if not code
    ]
    for text in [entry.title, *entry.facts, *prose]:
        assert not LOUD.search(plain(text)), text
        for sentence in sentences(text):
            assert words(sentence) <= MOST_WORDS, sentence
    code = [
        text for part in (entry.means, entry.way_out) for code, text in paragraphs(part) if code
    ]
    for line in (line for text in code for line in text.split("\n")):
        assert len(line) <= 72, line
    for program in entry.programs:
        assert program.source.count("\n") <= 30
        assert max(map(len, program.source.split("\n"))) <= 100
    assert entry.facts or not any(program.says for program in entry.programs)
