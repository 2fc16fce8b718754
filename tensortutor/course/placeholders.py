"""Sentences about a failure, filled with what was at hand.

A sentence of the atlas holds parts in braces. `{name}` is a group of the entry's pattern. Anything
else is a value by the role that it played, the first of several roles that is known:
`{input|arg0}` becomes "`x` is f32[32, 10]", and one thing about it can be asked for:
`{input.shape}`. `{tensors}` lists all tensors of the failing operation.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

from tensortutor.protocol.scene import Operand

PART = re.compile(r"\{([^{}]*)\}")
ROLE = re.compile(r"[a-z_]+[0-9]?(?:\|[a-z_]+[0-9]?)*")
TENSORS = "tensors"
MOST_TENSORS = 4


def unknown_parts(sentence: str, groups: Collection[str]) -> Iterator[str]:
    """The parts of a sentence that nothing could ever fill."""
    for part in PART.findall(sentence):
        roles, dot, asked = part.partition(".")
        if part in groups or part == TENSORS:
            continue
        if not ROLE.fullmatch(roles) or (dot and asked not in WORDS):
            yield part


def fill(
    sentences: Sequence[str], groups: Mapping[str, str | None], operands: Sequence[Operand]
) -> str:
    """The first of the sentences of which every part is known, filled; "" if there is none."""
    for sentence in sentences:
        words = {part: _word(part, groups, operands) for part in PART.findall(sentence)}
        if all(words.values()):
            return "".join(
                (words[piece] or "") if number % 2 else piece
                for number, piece in enumerate(PART.split(sentence))
            )
    return ""


def _word(part: str, groups: Mapping[str, str | None], operands: Sequence[Operand]) -> str | None:
    if part in groups:
        return groups[part]
    if part == TENSORS:
        return all_tensors(operands)
    roles, _, asked = part.partition(".")
    for role in roles.split("|"):
        operand = next((o for o in operands if role in o.roles), None)
        if operand is not None:
            word = WORDS[asked](operand, role)
            if word:
                return word
    return None


def all_tensors(operands: Sequence[Operand]) -> str:
    """What the tensors of the operation are; of its line, if the operation has none with a name."""
    tensors = [operand for operand in operands if operand.dtype and operand.name]
    direct = [operand for operand in tensors if operand.roles] or tensors
    clauses = [clause(operand, "") for operand in direct[:MOST_TENSORS]]
    if len(clauses) < 2:
        return "".join(clauses)
    return f"{', '.join(clauses[:-1])} and {clauses[-1]}"


def clause(operand: Operand, role: str) -> str:
    """ "`x` is f32[32, 10]"."""
    if operand.dtype:
        array = f"the {operand.kind} " if operand.kind == "NumPy array" else ""
        return f"{naming(operand, role)} is {array}{type_of(operand)}"
    if operand.values:
        return f"{naming(operand, role)} is {operand.values}"
    article = "an" if operand.kind[:1].lower() in "aeiou" else "a"
    return f"{naming(operand, role)} is {article} {operand.kind}"


def naming(operand: Operand, role: str) -> str:
    """ "`x`", or what it was to torch's function."""
    if operand.name:
        return f"`{operand.name}`"
    return f"the {operand.kind}" if role == "module" else f"the {role.replace('_', ' ')}"


def type_of(operand: Operand) -> str:
    """ "f32[32, 10]", with the device if it is not the CPU."""
    where = f" on {operand.device}" if operand.device not in ("cpu", "") else ""
    return f"{operand.dtype}{shape_of(operand)}{where}" if operand.dtype else ""


def shape_of(operand: Operand) -> str:
    """ "[32, 10]"."""
    return f"[{', '.join(map(str, operand.shape))}]"


def _of_tensor(word: Callable[[Operand], object]) -> Callable[[Operand, str], str]:
    """A word that only a tensor or an array has."""
    return lambda operand, _: str(word(operand)) if operand.dtype else ""


def _size(number: int) -> Callable[[Operand], str]:
    return lambda operand: "".join(map(str, operand.shape[number:][:1]))


WORDS: dict[str, Callable[[Operand, str], str]] = {
    "": clause,
    "name": naming,
    "kind": lambda operand, _: operand.kind,
    "values": lambda operand, _: operand.values,
    "type": _of_tensor(type_of),
    "shape": _of_tensor(shape_of),
    "dtype": _of_tensor(lambda operand: operand.dtype),
    "device": _of_tensor(lambda operand: operand.device),
    "ndim": _of_tensor(lambda operand: len(operand.shape)),
    "first": _of_tensor(_size(0)),
    "second": _of_tensor(_size(1)),
    "last": _of_tensor(_size(-1)),
}
"""What can be asked of a value, "" for a whole clause."""
