"""What Python complained of, read out of tracebacks and logs of every kind."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensortutor.course.error_logs import Complaint, read_complaint

LIBRARY = "/venv/lib/python3.11/site-packages/torch/nn"
PLAIN = f"""\
step 1
Traceback (most recent call last):
  File "/home/me/train.py", line 12, in <module>
    loss = loss_fn(model(x), y)
           ^^^^^^^^^^^^^^^^^^^^
  File "{LIBRARY}/modules/module.py", line 1751, in _wrapped_call_impl
    return self._call_impl(*args, **kwargs)
  File "{LIBRARY}/functional.py", line 3504, in cross_entropy
    return torch._C._nn.cross_entropy_loss(
IndexError: Target 3 is out of bounds.
"""
INSIDE = ("module._wrapped_call_impl", "functional.cross_entropy")
TARGET = Complaint(
    "IndexError", "Target 3 is out of bounds.", INSIDE, "loss = loss_fn(model(x), y)"
)


def test_a_plain_traceback_tells_type_message_functions_and_line():
    assert read_complaint(PLAIN) == TARGET


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("\n", "\r\n"),
        textwrap.indent(PLAIN, "[rank0]: ", lambda _: True),
        textwrap.indent(PLAIN, "[rank 1] ", lambda _: True),
        textwrap.indent(PLAIN, "2024-05-01 12:00:00,123 | ERROR | ", lambda _: True),
        PLAIN.replace("Traceback (most", "12:00 ERROR it failed: Traceback (most"),
        "\x1b[31m" + PLAIN.replace("IndexError", "\x1b[1;35mIndexError\x1b[0m"),
        "Traceback (most recent call last):\n  File \"a.py\", line 1\nKeyError: 'a'\n\n"
        "During handling of the above exception, another exception occurred:\n\n" + PLAIN,
    ],
    ids=["windows", "torchrun", "ranks", "dated", "logger", "coloured", "chained"],
)  # fmt: skip
def test_the_same_in_other_clothes(text):
    assert read_complaint(text) == TARGET


def test_a_date_that_moves_on_is_cut_off_by_its_length():
    lines = PLAIN.splitlines()
    dated = "\n".join(f"12:00:{number:02d} {line}" for number, line in enumerate(lines))
    assert read_complaint(dated) == TARGET


def test_the_last_of_several_tracebacks_counts():
    later = PLAIN.replace("Target 3 is", "Target 4 is")
    found = read_complaint(PLAIN + "retrying\n" + later + "")
    assert found is not None
    assert found.message == "Target 4 is out of bounds."


def test_a_message_of_several_lines_is_whole_and_ends_where_the_next_report_begins():
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    f()\n'
        "RuntimeError: Error(s) in loading state_dict for Linear:\n"
        '\tMissing key(s) in state_dict: "weight". \n\n'
        "The above exception was the direct cause of the following exception:\n\n"
    )
    found = read_complaint(text)
    assert found is not None
    assert found.message == (
        "Error(s) in loading state_dict for Linear:\n\tMissing key(s) in state_dict: \"weight\"."
    )  # fmt: skip


def test_a_loaders_worker_keeps_its_own_traceback_in_the_message():
    text = (
        'Traceback (most recent call last):\n  File "a.py", line 9, in <module>\n    next(it)\n'
        "LookupError: Caught LookupError in DataLoader worker process 0.\n"
        "Original Traceback (most recent call last):\n"
        '  File "b.py", line 2, in __getitem__\n    raise LookupError\nLookupError: no file\n'
    )
    found = read_complaint(text)
    assert found is not None
    assert found.message.startswith("Caught LookupError in DataLoader worker process 0.\nOriginal")
    inner = read_complaint(found.message.partition("Original Traceback")[2], headed=True)
    assert inner == Complaint("LookupError", "no file", (), "raise LookupError")


NOTEBOOK = f"""\
\x1b[0;31m---------------------------------------------------------------------------\x1b[0m
\x1b[0;31mIndexError\x1b[0m                                Traceback (most recent call last)
Cell \x1b[0;32mIn[3], line 2\x1b[0m
\x1b[1;32m      1\x1b[0m y = torch.tensor([3])
\x1b[0;32m----> 2\x1b[0m F.cross_entropy(logits, y)

File \x1b[0;32m{LIBRARY}/functional.py:3504\x1b[0m, in \x1b[0;36mcross_entropy\x1b[0m(input)
\x1b[1;32m   3502\x1b[0m     label_smoothing: float = 0.0
\x1b[0;32m-> 3504\x1b[0m return torch._C._nn.cross_entropy_loss(

\x1b[0;31mIndexError\x1b[0m: Target 3 is out of bounds.
"""


def test_a_notebooks_traceback():
    assert read_complaint(NOTEBOOK) == Complaint(
        "IndexError", "Target 3 is out of bounds.", ("functional.cross_entropy",),
        "F.cross_entropy(logits, y)",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("IndexError: Target 3", "IndexError", "Target 3"),
        ("noise\ntorch.OutOfMemoryError: CUDA out\n", "torch.OutOfMemoryError", "CUDA out"),
        ("KeyboardInterrupt\n", "KeyboardInterrupt", ""),
        ("E       IndexError: Target 3", "IndexError", "Target 3"),
        ("    | ValueError: one of a group", "ValueError", "one of a group"),
        ("a.py:3: UserWarning: mind the gap\n  f(x)\n", "UserWarning", "mind the gap"),
        (
            "terminate called after throwing an instance of 'c10::DistBackendError'\n"
            "  what():  [Rank 0] Watchdog caught",
            "DistBackendError",
            "[Rank 0] Watchdog caught",
        ),
    ],
)
def test_a_last_line_alone(text, kind, message):
    assert read_complaint(text) == Complaint(kind, message)


@pytest.mark.parametrize("text", ["", "hello\n", "a: b\n", "Traceback (most recent call last):\n"])
def test_a_text_without_an_error(text):
    assert read_complaint(text) is None


@given(st.lists(st.sampled_from([*PLAIN.splitlines(), *NOTEBOOK.splitlines(), "x", ""])))
def test_no_order_of_lines_breaks_it(lines):
    assert isinstance(read_complaint("\n".join(lines)), (Complaint, type(None)))
