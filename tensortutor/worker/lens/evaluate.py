"""Works out the shapes inside an expression from the shapes of its names, without running it.

What cannot be told is Unknown, and whatever is built on it as well; the parts around it are still
looked at. Each operation of two sides that broadcasts is reported on the way.
"""

import ast
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from tensortutor.worker.lens import shapes
from tensortutor.worker.lens.layers import Layer
from tensortutor.worker.lens.looks import Called, Seen
from tensortutor.worker.lens.rules import (
    ATTRIBUTES,
    BROADCASTING_LOSSES,
    COMPARISONS,
    DIVISION,
    QUESTIONS,
    RULES,
    TWO_SIDED,
)
from tensortutor.worker.lens.shapes import Mismatch, Unknown, Value
from tensortutor.worker.lens.statements import OWN_SCOPE, Path, way

ARITHMETIC = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%",
    ast.Pow: "**", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
}  # fmt: skip
COMPARED = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip


class Pair(NamedTuple):
    """Two sides that met. result: None if they cannot; then the dimension, from the right."""

    node: ast.expr
    operator: str
    left: tuple[ast.expr, Any]
    right: tuple[ast.expr, Any]
    result: Value | None
    mismatch: int | None


class Evaluator:
    """One statement. pairs: what was found, outer expressions after the inner ones.

    known: what the names are. returned: what the learner's functions gave back here. modules: names
    that stand for torch or a part of it.
    """

    def __init__(
        self, known: dict[Path, Any], returned: dict[Any, Seen], modules: dict[str, str]
    ) -> None:
        self.pairs: list[Pair] = []
        self.mismatched = False
        self._known = known
        self._returned = returned
        self._modules = modules

    def value(self, node: ast.AST) -> Any:
        """The value of an expression. Raises Unknown and Mismatch."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            path = way(node)
            if path is not None and path in self._known:
                return as_value(self._known[path])
        do = DO.get(type(node))
        if do is None:
            self._visit_children(node)
            raise Unknown
        try:
            return do(self, node)
        except (TypeError, ValueError, IndexError, AttributeError, ZeroDivisionError):
            raise Unknown from None  # arguments that the rule does not know

    def attempt(self, node: ast.AST) -> Any:
        """The value, or Unknown itself."""
        try:
            return self.value(node)
        except Unknown:
            return Unknown

    def _visit_children(self, node: ast.AST) -> None:
        if isinstance(node, (*OWN_SCOPE, ast.IfExp, ast.BoolOp)):
            return  # they may not have been evaluated
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.expr, ast.keyword, ast.FormattedValue)):
                self.attempt(child)

    # --- the kinds of expression ---

    def constant(self, node: ast.Constant) -> Any:
        """A literal."""
        return node.value

    def sequence(self, node: ast.Tuple | ast.List) -> Any:
        """All of a tuple or a list, which must be known to the last."""
        items = [self.attempt(item) for item in node.elts]
        if Unknown in items:
            raise Unknown
        return tuple(items) if isinstance(node, ast.Tuple) else items

    def unary(self, node: ast.UnaryOp) -> Any:
        """`-x`, `~x`."""
        value = self.value(node.operand)
        if isinstance(value, Value):
            return value
        if type(value) in (int, float) and isinstance(node.op, ast.USub):
            return -value
        raise Unknown

    def walrus(self, node: ast.NamedExpr) -> Any:
        """`(y := x)`."""
        return self.value(node.value)

    def binary(self, node: ast.BinOp) -> Any:
        """`a + b`."""
        operator = ARITHMETIC.get(type(node.op), "")
        return self.meet(node, operator, node.left, node.right)

    def compare(self, node: ast.Compare) -> Any:
        """`a < b`."""
        operator = COMPARED.get(type(node.ops[0]), "")
        if len(node.ops) > 1 or not operator:
            self._visit_children(node)
            raise Unknown
        return self.meet(node, operator, node.left, node.comparators[0])

    def attribute(self, node: ast.Attribute) -> Any:
        """`x.T`, `torch.float32`."""
        name = self._in_torch(node)
        if name:
            found = getattr(torch, name, None)
            if isinstance(found, torch.dtype):
                return found
            raise Unknown
        value = self.value(node.value)
        if isinstance(value, tuple) and not isinstance(value, Value):  # what max(dim) gives
            return value[("values", "indices").index(node.attr)]
        if not isinstance(value, Value) or node.attr not in ATTRIBUTES:
            raise Unknown
        return ATTRIBUTES[node.attr](value)

    def subscript(self, node: ast.Subscript) -> Any:
        """`x[0, :, None]`."""
        value, index = self.value(node.value), self.attempt(node.slice)
        if index is Unknown:
            raise Unknown
        return indexed(value, index) if isinstance(value, Value) else value[index]

    def slice(self, node: ast.Slice) -> Any:
        """`a:b`."""
        ends = (node.lower, node.upper, node.step)
        values = [None if end is None else self.value(end) for end in ends]
        if any(type(one) not in (int, type(None)) for one in values):
            raise Unknown
        return slice(*values)

    def call(self, node: ast.Call) -> Any:
        """A method, a function of torch, a module, a function of the learner's."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            self._visit_children(node)
            raise Unknown
        path = way(node.func)
        target = self._known.get(path) if path is not None else None
        if isinstance(target, (Layer, Called)):
            return self._called(node, target)
        name = self._in_torch(node.func)
        if name:
            return self._function(node, name, list(node.args))
        if isinstance(node.func, ast.Attribute):
            return self._function(node, node.func.attr, [node.func.value, *node.args])
        if isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
            return self.value(node.args[0]).shape[0]
        self._visit_children(node)
        raise Unknown

    def _called(self, node: ast.Call, target: Layer | Called) -> Any:
        if isinstance(target, Called) or target.kind != "loss":
            arguments = [self.attempt(argument) for argument in node.args]
            if isinstance(target, Called):
                if target.code in self._returned:
                    return as_value(self._returned[target.code])
                raise Unknown
            return shapes.through(target, arguments[0])
        name, how = target.needs
        if name in BROADCASTING_LOSSES and len(node.args) == 2:
            result = self.meet(node, ast.unparse(node.func), node.args[0], node.args[1])
            return result if how == "none" else result._replace(shape=())
        self._visit_children(node)
        raise Unknown

    def _function(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Any:
        """`f(x, y)` and `x.f(y)` alike."""
        if name.removesuffix("_") in TWO_SIDED and len(arguments) >= 2:
            return self._two_sided(node, name, arguments)
        if name == "where" and len(arguments) == 3:
            self.attempt(arguments[0])
            return self.meet(node, "torch.where", arguments[1], arguments[2])
        values = [self.attempt(argument) for argument in arguments]
        more = {str(k.arg): self.attempt(k.value) for k in node.keywords}
        rule = RULES.get(name) or QUESTIONS.get(name)
        if rule is None or Unknown in values or Unknown in more.values():
            raise Unknown
        made_here = self._in_torch(node.func) or (values and is_tensors(values[0]))
        if not made_here:
            raise Unknown
        return rule(*values, **more)

    def _two_sided(self, node: ast.Call, name: str, arguments: list[ast.expr]) -> Any:
        operator = ast.unparse(node.func)
        if name.endswith("_"):
            node.in_place = True  # type: ignore[attr-defined]
            name = name.removesuffix("_")
        result = self.meet(node, operator, arguments[0], arguments[1], name)
        if name in BROADCASTING_LOSSES:
            how = {k.arg: self.attempt(k.value) for k in node.keywords}.get("reduction", "mean")
            return result if how == "none" else result._replace(shape=())
        return result

    def _in_torch(self, node: ast.AST) -> str:
        """The name of what `torch.f`, `F.f` mean; "" for anything that is not torch's."""
        parts = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._modules:
            return ""
        if (node.id,) in self._known:
            return ""  # a variable of that name hides the module
        whole = [*self._modules[node.id].split("."), *reversed(parts)]
        known = ("torch", "nn", "functional", "linalg", "special", "Tensor")
        return whole[-1] if all(part in known for part in whole[:-1]) else ""

    # --- two sides ---

    def meet(
        self, node: ast.expr, operator: str, left: ast.expr, right: ast.expr, name: str = ""
    ) -> Any:
        """An operation of two sides. Raises Mismatch, Unknown."""
        a, b = self.attempt(left), self.attempt(right)
        if not (isinstance(a, Value) or isinstance(b, Value)):
            numbers = type(a) in (int, float) and type(b) in (int, float)
            if not numbers or operator not in NUMERIC:
                raise Unknown
            try:
                return NUMERIC[operator](a, b)
            except ArithmeticError:
                raise Unknown from None
        if Unknown in (a, b) or not (side(a) and side(b)):
            raise Unknown
        result, wrong = self._result(operator, name, a, b)
        if wrong is None and getattr(node, "in_place", False) and result.shape != a.shape:
            wrong = first_difference(a.shape, result.shape)
        pair = Pair(
            node, operator, (left, a), (right, b), None if wrong is not None else result, wrong
        )
        self.pairs.append(pair)
        if wrong is not None:
            raise Mismatch
        return result

    def _result(self, operator: str, name: str, a: Any, b: Any) -> tuple[Value, int | None]:
        device = a.device if isinstance(a, Value) else b.device
        if operator == "@":
            if not isinstance(a, Value) or not isinstance(b, Value):
                raise Unknown
            try:
                return shapes.matmul(a, b), None
            except Mismatch:
                return a, -1
        shape, wrong = shapes.broadcast(shape_of(a), shape_of(b))
        dtype = shapes.promoted(a, b)
        if operator in COMPARED.values() or name in COMPARISONS:
            dtype = torch.bool
        elif (operator == "/" or name in DIVISION) and shapes.rank(dtype) < 2:
            dtype = torch.get_default_dtype()
        return Value(shape, dtype, device), wrong


def as_value(known: Any) -> Any:
    """What was noted, as something to reckon with."""
    if isinstance(known, Seen):
        return Value(tuple(map(int, known.shape)), known.dtype, str(known.device))
    if type(known) is tuple and any(isinstance(item, Seen) for item in known):
        return tuple(map(as_value, known))
    if isinstance(known, (Layer, Called)) or callable(known):
        raise Unknown
    return known


def is_tensors(value: Any) -> bool:
    """A tensor, or several of them."""
    if isinstance(value, Value):
        return True
    return isinstance(value, (list, tuple)) and all(isinstance(one, Value) for one in value)


def side(value: Any) -> bool:
    """A tensor or a number."""
    return isinstance(value, Value) or type(value) in shapes.NUMBERS


def shape_of(value: Any) -> tuple[int, ...]:
    """() for a number."""
    return value.shape if isinstance(value, Value) else ()


def first_difference(shape: tuple[int, ...], result: tuple[int, ...]) -> int:
    """The first dimension, from the right, in which the result is larger."""
    for index in range(1, len(result) + 1):
        if index > len(shape) or shape[-index] != result[-index]:
            return -index
    return -1


def indexed(value: Value, index: Any) -> Value:
    """Basic indexing, and one tensor of integers. Raises Unknown for the rest."""
    steps = index if type(index) is tuple else (index,)
    taken = sum(step is not None and step is not Ellipsis for step in steps)
    shape: list[int] = []
    rest = list(value.shape)
    for step in steps:
        if step is None:
            shape.append(1)
        elif step is Ellipsis:
            keep = len(rest) - (taken - sum(s is not None and s is not Ellipsis
                                            for s in steps[: steps.index(Ellipsis)]))  # fmt: skip
            shape += rest[:keep]
            rest = rest[keep:]
        elif type(step) is int:
            rest.pop(0)
        elif type(step) is slice:
            shape.append(len(range(*step.indices(rest.pop(0)))))
        elif isinstance(step, Value) and step.dtype is torch.int64 and len(steps) == 1:
            rest.pop(0)
            shape += step.shape
        else:
            raise Unknown
    return value._replace(shape=(*shape, *rest))


NUMERIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b,
    "/": lambda a, b: a / b, "//": lambda a, b: a // b, "%": lambda a, b: a % b,
}  # fmt: skip
DO: dict[type, Callable[[Evaluator, Any], Any]] = {
    ast.Constant: Evaluator.constant, ast.Tuple: Evaluator.sequence, ast.List: Evaluator.sequence,
    ast.UnaryOp: Evaluator.unary, ast.NamedExpr: Evaluator.walrus, ast.BinOp: Evaluator.binary,
    ast.Compare: Evaluator.compare, ast.Attribute: Evaluator.attribute, ast.Call: Evaluator.call,
    ast.Subscript: Evaluator.subscript, ast.Slice: Evaluator.slice,
}  # fmt: skip
