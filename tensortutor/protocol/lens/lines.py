"""What the lines of the learner's file made: tensors, and where broadcasting stretched them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mark:
    """Something worth a look at a line.

    kind: "broadcast" (a dimension was stretched), "copy", "view" (it shares the cells of what it
    was made from), "device", "dtype", "detached", "nan", "inf" (first seen here). text: a few
    words, as `y stretched from [64] to [64, 64]`.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Made:
    """A tensor that a line made or changed, as it was when last seen there.

    name: as the learner writes it: `x`, `self.w`, `y[0]`; "return" for what a function gave back.
    how: "made", "changed" (in place) or "returned". seen: at which execution of the line, from 1;
    0: it is what the name held when its function or the program ended.
    """

    name: str
    words: str
    how: str = "made"
    seen: int = 1
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True)
class Line:
    """A statement of the learner's file. line: its first (of a block: the head), end_line its last.

    count: how often it was executed while it was followed; first_only: it was executed more often,
    and only the first `count` executions were followed.
    """

    line: int
    end_line: int
    count: int
    made: tuple[Made, ...]
    first_only: bool = False


@dataclass(frozen=True)
class Trace:
    """The statements that made or changed tensors, from the top of the file down."""

    lines: tuple[Line, ...]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class Operand:
    """One side of an expression. text: its source. words: "" for a plain number.

    shape: () for a number as well as for a 0-d tensor. stretched: the dimensions of the result,
    counted from the right as -1, -2, ..., along which this side is repeated.
    """

    text: str
    words: str
    shape: tuple[int, ...]
    stretched: tuple[int, ...] = ()


@dataclass(frozen=True)
class Broadcast:
    """An expression with two operands that broadcast, as last executed.

    Lines and columns from 1, in characters; the end column is the one behind the last character.
    operator: as written, `+`, `==` or `torch.maximum`. result: its shape, or None where the
    dimension `mismatch` (counted from the right: -1 is the last) of the two cannot be brought
    together. words: the result's, "" if there is none. raised: the program ended here.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    operator: str
    left: Operand
    right: Operand
    result: tuple[int, ...] | None
    words: str = ""
    mismatch: int | None = None
    raised: bool = False


@dataclass(frozen=True)
class ShapeError:
    """The call at which the program ended, because the shapes of its arguments do not fit.

    Lines and columns as in Broadcast. function: as written. operands: the tensors, those of a
    module's own parameters too. why: sentences that say which dimension of which operand disagrees.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    operands: tuple[Operand, ...]
    why: tuple[str, ...]


@dataclass(frozen=True)
class Broadcasts:
    """Expressions in the order of the file; one that contains another comes before it.

    error: where the program ended at something else than two sides that broadcast.
    """

    expressions: tuple[Broadcast, ...]
    left_out: int = 0
    note: str = ""
    error: ShapeError | None = None
