"""What helps with a kind of failure, whatever the lesson: hints that no author has to write.

An author's hint speaks of one question, most often whether the values are right. When a check
fails before it comes to that question, the hint would mislead, and one of these takes its place.
"""

import re

NONE = "Does every way through the function end in a `return`?"
NOTHING = "The last call gave nothing back. If it should: does every way through it `return`?"
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


def on_error(error: BaseException, text: str) -> str:
    """A word about an exception that a learner's line raised, or "". text: its message."""
    for kind, part, advice in ERRORS:
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
