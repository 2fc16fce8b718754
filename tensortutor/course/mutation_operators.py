"""Single edits of a program: from a syntax node to what might wrongly stand in its place.

Whoever imports this needs libcst, which only authors of lessons install.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import libcst as cst
from libcst import matchers

from tensortutor.course.mutation_tables import (
    BOILERPLATE,
    BOUNDARIES,
    BUILTINS,
    INVERSES,
    MODULES,
    OPERATORS,
    ORDERED,
    SYMMETRIC,
    TWINS,
    WORDS,
)

Nodes = Iterator[cst.CSTNode]
EINSUM = re.compile(r"([a-zA-Z., ]+-> *(?:\.\.\.)?)([a-zA-Z]*)")


@dataclass(frozen=True)
class Kind:
    """A kind of edit. make: from a node of `type` to what may take its place."""

    name: str
    type: type[cst.CSTNode] | tuple[type[cst.CSTNode], ...]
    make: Callable[[Any], Nodes]


def operator(node: cst.BinaryOperation | cst.AugAssign) -> Nodes:
    """Another operator in the place of this one."""
    twin = OPERATORS.get(type(node.operator).__name__)
    if twin is not None:
        yield node.with_changes(operator=_respaced(twin, node.operator))


def operands(node: cst.BinaryOperation) -> Nodes:
    """`a - b` the other way round, where that matters."""
    if type(node.operator).__name__ in ORDERED and not node.left.deep_equals(node.right):
        yield node.with_changes(left=_bracketed(node.right), right=_bracketed(node.left))


def accumulation(node: cst.AugAssign) -> Nodes:
    """`x += v` as `x = v`."""
    yield cst.Assign([cst.AssignTarget(node.target)], node.value)


def comparison(node: cst.Comparison) -> Nodes:
    """The neighbouring comparison and the opposite one."""
    for index, target in enumerate(node.comparisons):
        name = type(target.operator).__name__
        for twin in (BOUNDARIES.get(name), INVERSES.get(name)):
            if twin is not None:
                new = target.with_changes(operator=_respaced(twin, target.operator))
                yield node.with_changes(comparisons=_put(node.comparisons, index, new))


def boolean(node: cst.BooleanOperation) -> Nodes:
    """`and` for `or`, and back."""
    twin = {"And": "Or", "Or": "And"}[type(node.operator).__name__]
    yield node.with_changes(operator=_respaced(twin, node.operator))


def sign(node: cst.UnaryOperation) -> Nodes:
    """The operand without its `-`, `~` or `not`."""
    if number_of(node) is None and not isinstance(node.operator, cst.Plus):
        yield node.expression


def condition(node: cst.If | cst.While | cst.IfExp | cst.CompIf | cst.Assert) -> Nodes:
    """The opposite condition, where no other kind of edit makes it."""
    test = node.test
    if isinstance(test, cst.Comparison) and len(test.comparisons) == 1:
        return
    if not (isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)):
        yield node.with_changes(test=cst.UnaryOperation(cst.Not(), _bracketed(test)))


def constant(node: cst.BaseExpression) -> Nodes:
    """Another number, or the other truth."""
    if isinstance(node, cst.Name):
        if node.value in ("True", "False"):
            yield cst.Name("False" if node.value == "True" else "True")
        return
    number = number_of(node)
    if isinstance(number, int):
        yield _number(number + 1)
        yield _number(number - 1)
    elif number is not None:
        yield _number(number + 1.0)
        if number:
            yield _number(0.0)


def word(node: cst.SimpleString) -> Nodes:
    """Another of the words that torch's functions know; einsum's result in another form."""
    value = node.evaluated_value
    if not isinstance(value, str):
        return
    if value in WORDS:
        yield cst.SimpleString(repr(WORDS[value]))
    equation = EINSUM.fullmatch(value)
    if equation is not None:
        inputs, result = equation.groups()
        if len(result) > 1:
            yield cst.SimpleString(repr(f"{inputs}{result[:-2]}{result[-1]}{result[-2]}"))
        if result:
            yield cst.SimpleString(repr(f"{inputs}{result[:-1]}"))


def name(node: cst.Attribute | cst.Call) -> Nodes:
    """The function or dtype that is taken for this one."""
    if isinstance(node, cst.Attribute):
        if node.attr.value in TWINS:
            yield node.with_changes(attr=cst.Name(TWINS[node.attr.value]))
    elif isinstance(node.func, cst.Name) and node.func.value in BUILTINS:
        yield node.with_changes(func=cst.Name(TWINS[node.func.value]))


def removed_call(node: cst.Call) -> Nodes:
    """What a method is called on, or a function's first argument, without the call."""
    function = node.func
    if isinstance(function, cst.Attribute) and not _is_namespace(function.value):
        yield function.value
    elif _base_name(function) not in BOILERPLATE and node.args and _is_plain(node.args[0]):
        yield _bracketed(node.args[0].value)


def swapped(node: cst.Call) -> Nodes:
    """Two neighbouring arguments the other way round."""
    if _base_name(node.func) in SYMMETRIC:
        return
    for index, (one, other) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if _is_plain(one) and _is_plain(other) and not one.value.deep_equals(other.value):
            args = _put(node.args, index, one.with_changes(value=other.value))
            args = _put(args, index + 1, other.with_changes(value=one.value))
            yield node.with_changes(args=args)


def keyword(node: cst.Call) -> Nodes:
    """The call without one of its keyword arguments."""
    for index, arg in enumerate(node.args):
        if arg.keyword is not None:
            rest = [*node.args[:index], *node.args[index + 1 :]]
            if rest and index == len(rest):
                rest[-1] = rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield node.with_changes(args=rest)


def bound(node: cst.Slice) -> Nodes:
    """A slice without one of its ends, or without its step."""
    if node.lower is not None:
        yield node.with_changes(lower=None)
    if node.upper is not None:
        yield node.with_changes(upper=None)
    if node.step is not None:
        yield node.with_changes(step=None, second_colon=cst.MaybeSentinel.DEFAULT)


def index(node: cst.Subscript) -> Nodes:
    """What is indexed, without its index."""
    yield node.value


def statement(node: cst.BaseSmallStatement) -> Nodes:
    """Nothing in the place of a statement whose absence leaves every name bound."""
    if isinstance(node, cst.Assign) and not _rebinds(node):
        return
    yield cst.Pass()


def context(node: cst.With) -> Nodes:
    """The body of a `with` without its context."""
    if node.asynchronous is None and all(item.asname is None for item in node.items):
        yield cst.If(cst.Name("True"), node.body, leading_lines=node.leading_lines)


def decorator(node: cst.FunctionDef | cst.ClassDef) -> Nodes:
    """A definition without one of its decorators."""
    for index in range(len(node.decorators)):
        rest = [*node.decorators[:index], *node.decorators[index + 1 :]]
        yield node.with_changes(decorators=rest)


STATEMENTS = (
    cst.Expr, cst.Assign, cst.AugAssign, cst.Del, cst.Raise, cst.Break, cst.Continue, cst.Assert,
)  # fmt: skip
KINDS = (
    Kind("operator", (cst.BinaryOperation, cst.AugAssign), operator),
    Kind("operands", cst.BinaryOperation, operands),
    Kind("accumulation", cst.AugAssign, accumulation),
    Kind("comparison", cst.Comparison, comparison),
    Kind("boolean", cst.BooleanOperation, boolean),
    Kind("sign", cst.UnaryOperation, sign),
    Kind("condition", (cst.If, cst.While, cst.IfExp, cst.CompIf, cst.Assert), condition),
    Kind("constant", (cst.Integer, cst.Float, cst.UnaryOperation, cst.Name), constant),
    Kind("word", cst.SimpleString, word),
    Kind("name", (cst.Attribute, cst.Call), name),
    Kind("removed call", cst.Call, removed_call),
    Kind("swapped arguments", cst.Call, swapped),
    Kind("dropped keyword", cst.Call, keyword),
    Kind("bound", cst.Slice, bound),
    Kind("index", cst.Subscript, index),
    Kind("removed statement", STATEMENTS, statement),
    Kind("context", cst.With, context),
    Kind("decorator", (cst.FunctionDef, cst.ClassDef), decorator),
)


def number_of(node: cst.CSTNode) -> int | float | None:
    """The value of a number as it stands there, with its sign; None for anything else."""
    if isinstance(node, (cst.Integer, cst.Float)):
        return float(node.value) if isinstance(node, cst.Float) else node.evaluated_value
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        number = number_of(node.expression)
        return None if number is None else -number
    return None


def _number(value: int | float) -> cst.BaseExpression:
    return cst.parse_expression(repr(value))


def _respaced(twin: str, like: Any) -> cst.CSTNode:
    """The operator of this name, with the spaces around another one."""
    spaces = {
        side: getattr(like, side)
        for side in ("whitespace_before", "whitespace_after")
        if hasattr(like, side)
    }
    made: cst.CSTNode = getattr(cst, twin)(**spaces)
    return made


def _put(items: Sequence[Any], index: int, item: Any) -> list[Any]:
    return [*items[:index], item, *items[index + 1 :]]


def _bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression, in brackets if its operators could mix with what is around it."""
    loose = (cst.BinaryOperation, cst.BooleanOperation, cst.Comparison, cst.IfExp, cst.Lambda)
    if not isinstance(node, (*loose, cst.UnaryOperation, cst.GeneratorExp)) or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def _is_plain(arg: cst.Arg) -> bool:
    return arg.keyword is None and not arg.star


def _base_name(function: cst.BaseExpression) -> str:
    """The last part of a dotted name."""
    node = function.attr if isinstance(function, cst.Attribute) else function
    return node.value if isinstance(node, cst.Name) else ""


def _is_namespace(node: cst.BaseExpression) -> bool:
    """A module, or the object whose method is being defined: no value that a call changes."""
    if isinstance(node, cst.Name) and node.value in ("self", "cls"):
        return True
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name) and node.value in MODULES


def _rebinds(node: cst.Assign) -> bool:
    """The assignment changes an object, or gives a name that its own value reads."""
    targets = [target.target for target in node.targets]
    if any(not isinstance(target, cst.Name) for target in targets):
        return all(isinstance(target, (cst.Attribute, cst.Subscript)) for target in targets)
    return any(
        matchers.findall(node.value, matchers.Name(target.value))
        for target in targets
        if isinstance(target, cst.Name)
    )
