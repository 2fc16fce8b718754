"""What a learner answers to a question: reading it, judging it, keeping it."""

import ast
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from tensortutor.course.material import Quiz

NAMES = ("nan", "inf", "-inf", "none", "true", "false")
"""Words of Python that may be typed in any case."""
DTYPE = re.compile(r"torch\.(?=(?:(?:b?float|complex|u?int)\d+|bool)$)")
"""What stands before the name of a dtype, and may be left out."""
SPACING = re.compile(r"\s*([,()\[\]{}])\s*")
ENOUGH = 3
"""Significant digits of a number that may be rounded."""
_ITEMS = {"order": str, "shape": int}
"""What the answers are lists of."""
MOST_ZEROS = 400
"""Numbers with more zeros than this are no floats."""


class NotAnAnswer(ValueError):
    """What was typed is no answer of the kind asked for. `str` says what to type."""


class Nearly(NotAnAnswer):
    """The right number, rounded too much to tell. `str` says so."""


class Typed(float):
    """A number with the digits that it was typed with: 2.30 claims more than 2.3."""

    text: str

    def __new__(cls, text: str) -> "Typed":
        """text: as Python writes a number. Raises ValueError."""
        number = super().__new__(cls, text)
        number.text = text
        return number


def read(quiz: Quiz, text: str) -> Any:
    """The value that a typed or a kept answer stands for.

    number: float, also from 2/3. truth: bool. choice: the choice, from its text or its number
    from 1. order: the lines as a list, from their numbers as shown (2,1,3), one line each, or
    JSON. text: str. shape: list of ints, from 2, 3 or (2, 3) or torch.Size([2, 3]) or scalar.
    Raises NotAnAnswer; Nearly for a number that lacks a digit.
    """
    value = _READERS[quiz.kind](quiz, text.strip())
    if quiz.kind == "number" and _lacks_a_digit(quiz, value):
        raise Nearly(f"Nearly: {text.strip()} may be rounded. Give one more digit.")
    return value


def is_right(quiz: Quiz, value: Any) -> bool:
    """Whether a value as `read` returns it answers the question.

    What the author has put down as wrong, letter by letter, is wrong.
    """
    return not _is_named_wrong(quiz, value) and _same(quiz, value, quiz.answer)


def about_run(quiz: Quiz, value: Any) -> Quiz | None:
    """The question as a run has answered it, by what its proof gave there; None if that is none.

    What belongs to the lesson's own answer is left out: its wrong answers, and why it is so.
    """
    numbers = quiz.kind == "number" and isinstance(value, (int, float))
    if isinstance(value, bool) != (quiz.kind == "truth"):
        return None
    if not numbers and type(value) is not type(quiz.answer):
        return None
    item = _ITEMS.get(quiz.kind)
    if item is not None and not all(type(one) is item for one in value):
        return None
    if value == quiz.answer:
        return quiz
    try:
        answer = float(value) if numbers else value
    except OverflowError:
        return None  # a whole number beyond all floats
    return replace(quiz, answer=answer, wrong=(), explain="")


def written(quiz: Quiz, value: Any) -> str:
    """A value as it is kept: `read` returns it again."""
    if quiz.kind == "order":
        return json.dumps(list(value), ensure_ascii=False)
    return shown(quiz, value)


def shown(quiz: Quiz, value: Any) -> str:
    """A value as it stands in a sentence."""
    return _SHOWN.get(quiz.kind, str)(value)


def explanation(quiz: Quiz, value: Any) -> str:
    """What to say about an answer, as Markdown: a word on this wrong one, then on the question."""
    parts = [] if is_right(quiz, value) else [_mistake(quiz, value)]
    return "\n\n".join(part for part in (*parts, quiz.explain.strip()) if part)


def how(quiz: Quiz) -> str:
    """What to type for a question of this kind, as a sentence."""
    return _HOW[quiz.kind]


def _mistake(quiz: Quiz, value: Any) -> str:
    for text, why in quiz.wrong:
        try:
            if _same(quiz, value, _READERS[quiz.kind](quiz, text.strip())):
                return why.strip()
        except NotAnAnswer:
            continue  # an author's key that is no answer explains none
    return ""


def _same(quiz: Quiz, value: Any, wanted: Any) -> bool:
    return _SAME.get(quiz.kind, _equal)(quiz, value, wanted)


def _equal(quiz: Quiz, value: Any, wanted: Any) -> bool:
    del quiz
    return bool(value == wanted)


def _is_named_wrong(quiz: Quiz, value: Any) -> bool:
    if quiz.kind not in ("number", "text"):
        return False
    typed = _squeezed(written(quiz, value))
    return typed != _squeezed(shown(quiz, quiz.answer)) and any(
        typed == _squeezed(text) for text, _ in quiz.wrong
    )


def _same_number(quiz: Quiz, value: float, wanted: float) -> bool:
    if math.isnan(wanted) or math.isnan(value):
        return math.isnan(wanted) and math.isnan(value)
    if math.isclose(value, wanted, rel_tol=quiz.tolerance, abs_tol=quiz.tolerance):
        return True
    return _right_digits(quiz, value, wanted) >= ENOUGH


def _right_digits(quiz: Quiz, value: float, wanted: float) -> int:
    """How many significant digits were typed, if they are what `wanted` rounds to; else 0.

    A whole number is never rounded, nor is any where the author wants more than four digits.
    """
    text = getattr(value, "text", "")
    exact = quiz.tolerance < Quiz.tolerance or not math.isfinite(wanted) or wanted == int(wanted)
    if exact or not text or not math.isfinite(value):
        return 0
    typed = Decimal(text)
    _, digits, exponent = typed.as_tuple()
    if not isinstance(exponent, int) or abs(exponent) > MOST_ZEROS:
        return 0
    half = Decimal(1).scaleb(exponent) / 2
    return len(digits) if abs(typed - Decimal(wanted)) <= half else 0


def _lacks_a_digit(quiz: Quiz, value: float) -> bool:
    """One digit more and it would do. With less than that, it may as well be a guess."""
    if _is_named_wrong(quiz, value) or _same_number(quiz, value, quiz.answer):
        return False
    return _right_digits(quiz, value, quiz.answer) == ENOUGH - 1


def _same_text(quiz: Quiz, value: str, wanted: str) -> bool:
    del quiz
    if _spelt(value) == _spelt(wanted):
        return True
    meant, right = _literal(value), _literal(wanted)
    return right is not None and type(meant) is type(right) and meant == right


def _spelt(text: str) -> str:
    """Text as it is compared: without spaces at commas and brackets, a dtype by its own name."""
    return DTYPE.sub("", SPACING.sub(r"\1", _squeezed(text)))


def _same_items(quiz: Quiz, value: Sequence[Any], wanted: Sequence[Any]) -> bool:
    del quiz
    return list(value) == list(wanted)


def _literal(text: str) -> Any:
    """The Python value that a text writes, however it is spaced: [1,2.] is [1.0, 2.0].

    None for what is no number, list or tuple. A tensor as printed counts as what is in it.
    """
    text = _squeezed(text)
    inside = re.fullmatch(r"tensor\((.*)\)", text)
    text = inside[1] if inside else text
    if text.casefold() in NAMES:
        return text.casefold()
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, (int, float, list, tuple)) else None


def _squeezed(text: str) -> str:
    """Text without what nobody means by it: quotes around it, runs of spaces."""
    text = " ".join(text.split())
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"`":
        text = text[1:-1]
    return text


def _number(quiz: Quiz, text: str) -> float:
    plain = text.replace("_", "").replace("\u2212", "-")
    fraction = re.fullmatch(r"([^/]+)/([^/]+)", plain)
    try:
        return float(fraction[1]) / float(fraction[2]) if fraction else Typed(plain)
    except (ValueError, ZeroDivisionError):
        raise NotAnAnswer(how(quiz)) from None


def _truth(quiz: Quiz, text: str) -> bool:
    words = {"true": True, "t": True, "yes": True, "false": False, "f": False, "no": False}
    if text.lower() not in words:
        raise NotAnAnswer(how(quiz))
    return words[text.lower()]


def _choice(quiz: Quiz, text: str) -> str:
    if text in quiz.choices:
        return text
    for choice in quiz.choices:
        if _squeezed(text).casefold() == _squeezed(choice).casefold():
            return choice
    if text.isdecimal() and 1 <= int(text) <= len(quiz.choices):
        return quiz.choices[int(text) - 1]
    raise NotAnAnswer(how(quiz))


def _order(quiz: Quiz, text: str) -> list[str]:
    for lines in (_from_json(text), text.splitlines()):
        if sorted(lines) == sorted(quiz.choices):
            return lines
    numbers = re.split(r"[,\s]+", text)
    if sorted(numbers) != sorted(str(n + 1) for n in range(len(quiz.choices))):
        raise NotAnAnswer(how(quiz))
    return [quiz.choices[int(number) - 1] for number in numbers]


def _from_json(text: str) -> list[str]:
    try:
        lines = json.loads(text)
    except (ValueError, RecursionError):
        return []
    return [str(line) for line in lines] if isinstance(lines, list) else []


def _text(quiz: Quiz, text: str) -> str:
    if not text:
        raise NotAnAnswer(how(quiz))
    return text


def _shape(quiz: Quiz, text: str) -> list[int]:
    if text.lower() == "scalar":
        return []
    inside = re.sub(r"^torch\.Size\((.*)\)$", r"\1", text).strip("()[] ")
    parts = [part for part in re.split(r"[,\sx×]+", inside) if part]
    if not text or not all(re.fullmatch(r"[0-9]+", part) for part in parts):
        raise NotAnAnswer(how(quiz))
    return [int(part) for part in parts]


def _shown_number(value: float) -> str:
    return value.text if isinstance(value, Typed) else f"{float(value):.10g}"


def _shown_shape(value: Sequence[int]) -> str:
    return "(" + ", ".join(map(str, value)) + ("," if len(value) == 1 else "") + ")"


_READERS: dict[str, Callable[[Quiz, str], Any]] = {
    "number": _number,
    "truth": _truth,
    "choice": _choice,
    "order": _order,
    "text": _text,
    "shape": _shape,
}

_SAME: dict[str, Callable[[Quiz, Any, Any], bool]] = {
    "number": _same_number,
    "text": _same_text,
    "order": _same_items,
    "shape": _same_items,
}

_SHOWN: dict[str, Callable[[Any], str]] = {
    "number": _shown_number,
    "shape": _shown_shape,
    "order": "\n".join,
}

_HOW = {
    "number": "Type a number, such as 12, -0.5, 1e-3 or 2/3.",
    "truth": "Type true or false.",
    "choice": "Type the number of a choice.",
    "order": "Type the numbers of the lines in the right order, such as 2,1,3.",
    "text": "Type a word, a short text, or a value as Python writes it, such as [1, 2].",
    "shape": "Type the sizes, such as 2,3,4; for a scalar, the word scalar.",
}
