"""What a run must show for a claim to hold, and what is said when it does not."""

import math

import pytest

from tensortutor.course import claim_checks
from tensortutor.course.material import Failure, Pane, Quiz
from tensortutor.course.run_record import gather
from tensortutor.protocol.events import Finished, Frame, Output, Probed, Raised
from tests.course.fake_runner import DONE, printed, raised

PANE = Pane("run", "print(1)\nprint(2)\n", 10, "1\n2\n", 14)


def question(kind, answer, **more):
    return Quiz(kind, "?", answer, "x", "Because.", 1, **more)


@pytest.mark.parametrize("text", ["1\n2\n", "1\n2", "1  \n2\n\n", "1\r\n2\n"])
def test_output_is_compared_without_what_nobody_sees(text):
    assert claim_checks.prints(PANE)(gather(printed(text))) is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("1\n3\n", 16, "it prints '3', not '2'"),
        (" 1\n2\n", 15, "it prints ' 1', not '1'"),
        ("1\n", 16, "it prints no '2'"),
        ("1\n2\n3\n", 17, "it also prints '3'"),
        ("", 15, "it prints no '1'"),
    ],
)
def test_another_output_names_the_first_line_that_differs(text, line, words):
    fault = claim_checks.prints(PANE)(gather(printed(text)))
    assert fault == claim_checks.Fault(words, line)


def test_a_program_that_prints_nothing_may_say_so():
    silent = Pane("run", "x = 1\n", 10, "", 13)
    assert claim_checks.prints(silent)(gather(printed(""))) is None
    assert claim_checks.prints(silent)(gather(printed("1\n"))) == claim_checks.Fault(
        "it also prints '1'", 14
    )


def test_an_error_is_placed_in_the_lessons_own_line():
    error = Raised("ValueError", "no\nmore", (Frame("<module>", 2, "print(2)"),), "...")
    record = gather([error, Finished("raised", 1, "", 1.0)])
    assert claim_checks.completes(PANE)(record) == claim_checks.Fault(
        "it raises ValueError: no", 12
    )


@pytest.mark.parametrize("outcome", ["time", "memory", "killed", "exited", "lost"])
def test_a_run_that_does_not_end_well_gives_its_sentence(outcome):
    record = gather([Finished(outcome, 1, "The sentence.", 1.0)])
    assert claim_checks.completes(PANE)(record) == claim_checks.Fault("The sentence.")


def test_a_run_without_a_word_is_a_fault():
    assert claim_checks.completes(PANE)(gather([])) is not None


@pytest.mark.parametrize(
    ("quiz", "value", "right"),
    [
        (question("number", 2.0), 2, True),
        (question("number", 2.0), 2.00001, True),
        (question("number", 2.0), 2.1, False),
        (question("number", 2.0, tolerance=0.1), 2.1, True),
        (question("number", 1.0), True, False),
        (question("number", 1.0), "1", False),
        (question("number", math.inf), math.inf, True),
        (question("number", math.nan), math.nan, True),
        (question("number", 1.0), [1.0], False),
        (question("truth", True), True, True),
        (question("truth", True), 1, False),
        (question("shape", [2, 3]), [2, 3], True),
        (question("shape", [2, 3]), [3, 2], False),
        (question("shape", []), [], True),
        (question("text", "a"), "a", True),
        (question("text", "1"), 1, False),
        (question("choice", "a"), "b", False),
        (question("order", ["a", "b"]), ["a", "b"], True),
        (question("order", ["a", "b"]), ["b", "a"], False),
    ],
)
def test_a_proof_gives_the_answer_or_not(quiz, value, right):
    fault = claim_checks.answers(quiz, 0)(gather(printed("", value)))
    assert (fault is None) == right
    assert right or f"the proof gives {value!r}" in fault.message


def test_a_proof_that_raises_or_is_never_reached():
    wrong = gather([Probed(0, None, "NameError: name 'x' is not defined"), DONE])
    quiz = question("number", 1.0)
    assert claim_checks.answers(quiz, 0)(wrong).message == (
        "the proof raises NameError: name 'x' is not defined"
    )
    never = gather(raised("ValueError", "no"))
    assert claim_checks.answers(quiz, 0)(never).message == "it raises ValueError: no"


CHAINED = """Traceback (most recent call last):
  File "x.py", line 2, in <module>
KeyError: 'a'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "x.py", line 4, in <module>
    f()
torch.Special: first line
  an indented second
"""
SYNTAX = '  File "x.py", line 1\n    x = = 1\n        ^\nSyntaxError: invalid syntax\n'


@pytest.mark.parametrize(
    ("text", "message", "shown"),
    [
        (CHAINED, "torch.Special: first", True),
        (CHAINED, "torch.Special: first line\n  an indented second", True),
        (CHAINED, "KeyError: 'a'", False),
        (CHAINED, "first line", False),
        (SYNTAX, "SyntaxError: invalid", True),
    ],
)
def test_an_error_message_is_the_beginning_of_the_report(text, message, shown):
    fault = claim_checks.raises(Failure("x", message, 5, 9))(gather(raised("T", "m", text)))
    assert (fault is None) == shown
    assert shown or fault.line == 10


def test_an_error_that_the_programs_own_hook_has_reported_is_known_by_its_message():
    holds = claim_checks.raises(Failure("x", "ValueError: the file is empty", 5, 9))
    assert holds(gather(raised("ValueError", "the file is empty", ""))) is None
    fault = holds(gather(raised("ValueError", "another", "")))
    assert "it raises 'ValueError: another'" in fault.message


def test_what_another_version_of_torch_says_is_as_good():
    failure = Failure("x", "torch.Special: new words", 5, 9, ("torch.Special: first",))
    assert claim_checks.raises(failure)(gather(raised("T", "m", CHAINED))) is None
    fault = claim_checks.raises(failure)(gather(raised("T", "m", SYNTAX)))
    assert "shown is 'torch.Special: new words'" in fault.message
    heard = [Output("stderr", "x.py:1: UserWarning: old\n"), DONE]
    warning = Failure("x", "UserWarning: new", 5, 9, ("UserWarning: old",))
    assert claim_checks.raises(warning)(gather(heard)) is None


def test_a_warning_is_looked_for_on_stderr():
    failure = Failure("x", "UserWarning: beware", 5, 9)
    heard = [Output("stderr", "x.py:1: User"), Output("stderr", "Warning: beware\n  f()\n"), DONE]
    assert claim_checks.raises(failure)(gather(heard)) is None
    fault = claim_checks.raises(failure)(gather([Output("stdout", "UserWarning: beware"), DONE]))
    assert fault.message.startswith("it raises nothing, nor warns; shown is 'UserWarning")
    assert fault.line == 10
