"""What was at hand where a program failed: the words with which an error can be explained."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Operand:
    """A value that a failing line worked on.

    name: as the learner's code reaches it, `self.fc.weight`; "" if it has none there. roles: what
    it was: "left", "right", "owner", "callee", "index", "arg0", "item1", a keyword; in torch's own
    functions "module" or the parameter's name, as "input"; () for a part of a larger expression.
    kind: the name of its type. dtype: "f32", or "" for what is no tensor and no array. shape and
    what follows belong to tensors. values: the range of a small tensor, "0 to 7", or a number as
    Python writes it.
    """

    name: str
    roles: tuple[str, ...]
    kind: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    device: str = ""
    requires_grad: bool = False
    leaf: bool = False
    contiguous: bool = True
    values: str = ""


@dataclass(frozen=True)
class Scene:
    """What was at hand where an exception was raised or a warning given.

    inside: the library's functions that were under way, outermost first, by file and name as
    "functional.cross_entropy". code: the program's line.
    """

    operands: tuple[Operand, ...] = ()
    inside: tuple[str, ...] = ()
    code: str = ""


UNKNOWN = Scene()
