"""What helps with a kind of failure, whatever the lesson: hints that no author has to write.

An author's hint speaks of one question, most often whether the values are right. When a check
fails before it comes to that question, the hint would mislead, and one of these takes its place.
"""

import re

NONE = "Does every way through the function end in a `return`?"
NOTHING = "The last call gave nothing back. If it should: does every way through it `return`?"
SOMETHING = "Something is None here. Does every function and method that gives a thing `return` it?"
NO_TENSOR = "A tensor is wanted. `.item()`, `.tolist()`, `len()` and `.shape` give Python's values."
NO_NUMBER = "`.item()` takes the number out of a tensor that has one value."
NO_CONTAINER = "`t.tolist()` gives the numbers in a tensor, `tuple(t.shape)` those of its shape."
WRONG_TYPE = "The task says which type is wanted. `int`, `list`, `tuple` and so on convert."
SHAPE = "Print the shape after each step, and find the first that is not what you meant."
DTYPE = "An operation takes its dtype from its inputs. Find the line where this one comes in."
DEVICE = "A tensor that is made without `device=` lies on the CPU. Make it where the input is."
SIGNATURE = "The checks call it as shown here. Keep the name and the arguments that the task gives."

SHAPES = r"\b(sizes?|shapes?|dimensions?)\b"
ERRORS: tuple[tuple[type[BaseException], str, str], ...] = (
    (UnboundLocalError, "", "On the way to this line, nothing has given the name a value yet."),
    (NameError, "", "Nothing has this name when the line runs. A slip, or a missing import?"),
    (AttributeError, "'NoneType'", "What stands before the dot is None. Where does it come from?"),
    (AttributeError, "", "What stands before the dot has no such name. What is its type?"),
    (TypeError, "'NoneType'", "A value in this line is None. Where does it come from?"),
    (TypeError, "argument", "Hold the arguments of this call against what it takes."),
    (TypeError, "not callable", "Is there a variable that has the name of a function?"),
    (ValueError, "to unpack", "The right side gives another number of things than the left names."),
    (IndexError, "out of (range|bounds)", "How many are there? Sizes may be small here, even 0."),
    (IndexError, "too many indices", "The tensor has fewer dimensions than this line asks for."),
    (KeyError, "", "The dictionary has no such key. Print its keys before this line."),
    (ZeroDivisionError, "", "With these inputs it divides by 0. What does the task want then?"),
    (RecursionError, "", "A function calls itself: Python allows about 1000 calls in each other."),
    (ImportError, "", "The task needs no more than torch and what Python brings along."),
    (SystemExit, "", "This ends the whole program. `return` leaves a function."),
    (RuntimeError, "(dtype|scalar type)", "Print the dtype of every tensor that goes in here."),
    (RuntimeError, SHAPES, "Print the shape of every tensor that goes into this line."),
)
"""(kind, what is found in the message, advice): the first that fits. Errors of Python, for the
most part; what torch's errors mean takes more than a line."""

OF_ITS_TYPE = "Is what your code makes of the type that the task says?"
USES: tuple[tuple[type[BaseException], str, str], ...] = (
    (AttributeError, "", OF_ITS_TYPE),
    (TypeError, "not (iterable|callable|subscriptable)", OF_ITS_TYPE),
    (ValueError, "to unpack", "How many things does the task want back?"),
    (KeyError, "", "The check looks for this name. What names does the task give?"),
    (
        RuntimeError,
        "modified by an inplace",
        "A write in place changed what backward needs.",
    ),
    (
        RuntimeError,
        "(not require grad|not have been used in the graph)",
        "The check asks for a gradient, and finds no way back to what it asks for. Look for "
        "`.detach()`, `.item()`, `no_grad`, and tensors that are made anew.",
    ),
)
"""The same for what a check does with the things that a program has made."""


def on_error(error: BaseException, text: str) -> str:
    """A word about an exception that a learner's line raised, or "". text: its message."""
    return _first(ERRORS, error, text)


def on_use(error: BaseException, text: str, result: str, hint: str) -> str:
    """A word about an exception that a check raised on what a program has made, or "".

    text: its message. result: what kind of thing the last call gave. hint: the check's own; it
    cannot know of what is None, but of everything else it knows more.
    """
    if "NoneType" in text:
        return NOTHING if result == "None" else SOMETHING
    return hint or _first(USES, error, text)


def _first(
    table: tuple[tuple[type[BaseException], str, str], ...], error: BaseException, text: str
) -> str:
    for kind, part, advice in table:
        if isinstance(error, kind) and re.search(part, text):
            return advice
    return ""


def on_type(got: object, wanted: object) -> str:
    """A word about a value that is not of the wanted value's type."""
    if got is None:
        return ""
    if not hasattr(got, "untyped_storage"):  # no tensor
        return WRONG_TYPE
    if isinstance(wanted, (bool, int, float, complex)):
        return NO_NUMBER
    return NO_CONTAINER if isinstance(wanted, (list, tuple)) else WRONG_TYPE
