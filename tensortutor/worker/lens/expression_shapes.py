"""Works out the shapes inside an expression with torch itself, on the meta device.

The names of the expression are known by their shapes alone. Each part is computed from tensors of
these shapes that have no values; what cannot be told is Unknown, and whatever is built on it as
well. (Some operators do not check shapes on the meta device. Where one of these may have raised,
small tensors of zeros on the CPU stand in.) Operations of two sides that broadcast are reported on
the way, and the call that raises.
"""

import ast
import inspect
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from tensortutor.worker import access
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.snapshots import LearnerFunction, ModuleRef, TensorSnapshot
from tensortutor.worker.lens.statements import OWN_SCOPE, Path, way

ARITHMETIC: dict[type, tuple[str, Callable[..., Any]]] = {
    ast.Add: ("+", operator.add), ast.Sub: ("-", operator.sub), ast.Mult: ("*", operator.mul),
    ast.Div: ("/", operator.truediv), ast.FloorDiv: ("//", operator.floordiv),
    ast.Mod: ("%", operator.mod), ast.Pow: ("**", operator.pow), ast.BitAnd: ("&", operator.and_),
    ast.BitOr: ("|", operator.or_), ast.BitXor: ("^", operator.xor),
    ast.MatMult: ("@", operator.matmul), ast.Eq: ("==", operator.eq),
    ast.NotEq: ("!=", operator.ne), ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le),
    ast.Gt: (">", operator.gt), ast.GtE: (">=", operator.ge),
}  # fmt: skip
UNARY: dict[type, Callable[..., Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert,
}  # fmt: skip
LARGEST_NUMBER = 1 << 40
"""Of plain numbers that are computed with."""
TWO_SIDED = (
    "add", "sub", "subtract", "mul", "multiply", "div", "divide", "true_divide", "floor_divide",
    "remainder", "fmod", "pow", "maximum", "minimum", "fmax", "fmin", "atan2", "hypot", "eq", "ne",
    "lt", "le", "gt", "ge", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
    "logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor",
    "copysign", "logaddexp", "isclose",
)  # fmt: skip
"""Functions and methods whose first two arguments broadcast."""
LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
"""As well, but what they give is reduced."""
LOSS_MODULES = {
    torch.nn.MSELoss: "mse_loss", torch.nn.L1Loss: "l1_loss",
    torch.nn.SmoothL1Loss: "smooth_l1_loss", torch.nn.HuberLoss: "huber_loss",
}  # fmt: skip
HOMES: dict[str, Any] = {
    "torch": torch, "torch.nn.functional": torch.nn.functional, "torch.linalg": torch.linalg,
    "torch.special": torch.special, "torch.fft": torch.fft, "torch.Tensor": torch.Tensor,
}  # fmt: skip
"""Modules whose functions may be called here."""
OWN_MODULES = ("torch.functional", "torch.nn.functional", "torch._jit_internal", "torch._tensor")
"""Where functions written in Python come from that only compute."""
NOT_CALLED = (
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "set_",
    "share_memory_", "requires_grad_", "numpy", "tolist", "item", "data_ptr", "from_file", "apply_",
    "map_", "storage", "untyped_storage", "seed", "initial_seed", "from_dlpack", "record_stream",
)  # fmt: skip
TO_DEVICE = {"cpu": "cpu", "cuda": "cuda:0", "to": ""}
NOT_OF_SHAPES = ("device", "generator", "requires_grad")
"""Keywords of functions that have nothing to do with shapes."""
LARGEST = {"meta": 1 << 40, "cpu": 1 << 16}
"""Elements of a tensor that is made here."""
KNOWN = (torch.Tensor, int, float, bool, str, type(None), torch.dtype, slice)
"""What a call may give, or several of it."""


class Unknown(Exception):
    """It cannot be told what this is."""


class Mismatch(Exception):
    """torch raises here."""


@dataclass(frozen=True, eq=False)
class Value:
    """A tensor that stands for the program's, and the device that the program's is on."""

    tensor: torch.Tensor
    device: str = "cpu"

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes."""
        return tuple(self.tensor.shape)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype."""
        return self.tensor.dtype

    def resized(self, shape: tuple[int, ...]) -> "Value":
        """The same with another shape."""
        return replace(self, tensor=blank(shape, self.dtype, self.tensor.device.type))


class Pair(NamedTuple):
    """Two sides that met. result: None if they cannot; then the dimension, from the right."""

    node: ast.expr
    operator: str
    left: tuple[ast.expr, Any]
    right: tuple[ast.expr, Any]
    result: Value | None
    mismatch: int | None


class FailedCall(NamedTuple):
    """A call that raises. arguments, keywords: as for `function`, their tensors as Values.

    texts: what stands for each argument, by its position or its keyword. fixed: tensors that the
    call computes with too, by their names. numbers: sizes that a module was made with.
    """

    node: ast.expr
    name: str
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    texts: dict[int | str, ast.expr]
    fixed: tuple[tuple[str, Value], ...] = ()
    numbers: tuple[int, ...] = ()


class ExpressionShapes:
    """One statement. pairs: what was found, outer expressions after the inner ones.

    failed: the first call that raises. known: what the names are. returned: what the learner's
    functions gave back here. modules: names that stand for torch or a part of it. on: the device to
    compute on, "meta" or "cpu".
    """

    def __init__(
        self,
        known: dict[Path, Any],
        returned: dict[Any, TensorSnapshot],
        modules: dict[str, str],
        budget: Budget,
        on: str = "meta",
    ) -> None:
        self.pairs: list[Pair] = []
        self.failed: FailedCall | None = None
        self._known = known
        self._returned = returned
        self._modules = modules
        self._budget = budget
        self._on = on

    def value(self, node: ast.AST) -> Any:
        """The value of an expression. Raises Unknown and Mismatch."""
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
            path = way(node)
            if path is not None and path in self._known:
                return self._as_value(self._known[path])
        visit = getattr(self, f"visit_{type(node).__name__}", None)
        if visit is None:
            self._visit_children(node)
            raise Unknown
        return visit(node)

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

    def visit_Constant(self, node: ast.Constant) -> Any:
        """A literal."""
        return node.value

    def visit_Tuple(self, node: ast.Tuple | ast.List) -> Any:
        """All of a tuple or a list, which must be known to the last."""
        items = [self.attempt(item) for item in node.elts]
        if Unknown in items:
            raise Unknown
        return tuple(items) if isinstance(node, ast.Tuple) else items

    visit_List = visit_Tuple

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """`-x`, `~x`."""
        value = self.value(node.operand)
        if type(node.op) not in UNARY:
            raise Unknown
        return self._compute(node, UNARY[type(node.op)], (value,))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> Any:
        """`(y := x)`."""
        return self.value(node.value)

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """`a + b`."""
        if type(node.op) not in ARITHMETIC:
            raise Unknown
        sign, function = ARITHMETIC[type(node.op)]
        if getattr(node, "in_place", False):
            function = getattr(operator, f"i{function.__name__.rstrip('_')}")
        return self._meet(node, sign, function, (node.left, node.right))

    def visit_Compare(self, node: ast.Compare) -> Any:
        """`a < b`."""
        if len(node.ops) > 1 or type(node.ops[0]) not in ARITHMETIC:
            self._visit_children(node)
            raise Unknown
        sign, function = ARITHMETIC[type(node.ops[0])]
        return self._meet(node, sign, function, (node.left, node.comparators[0]))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        """`x.T`, `x.shape`, `torch.float32`, `x.max(1).values`."""
        home, name = self._in_torch(node)
        if home is not None:
            constant = getattr(home, name, None)
            if isinstance(constant, (torch.dtype, float)):
                return constant
            raise Unknown
        value = self.value(node.value)
        if isinstance(value, tuple) and isinstance(getattr(value, node.attr, None), Value):
            return getattr(value, node.attr)  # of several tensors that one call gave
        if not isinstance(value, Value) or node.attr.startswith("_"):
            raise Unknown
        if node.attr.startswith("is_") or node.attr in ("device", "grad", "requires_grad"):
            raise Unknown
        return self._compute(node, lambda x: getattr(x, node.attr), (value,))

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """`x[0, :, None]`."""
        value, index = self.value(node.value), self.attempt(node.slice)
        if index is Unknown:
            raise Unknown
        if isinstance(value, Value):
            return self._compute(node, operator.getitem, (value, index), (node.value, node.slice))
        try:
            return value[index]
        except (TypeError, LookupError):
            raise Unknown from None

    def visit_Slice(self, node: ast.Slice) -> Any:
        """`a:b`."""
        ends = (node.lower, node.upper, node.step)
        values = [None if end is None else self.value(end) for end in ends]
        if any(type(one) not in (int, type(None)) for one in values):
            raise Unknown
        return slice(*values)

    # --- calls ---

    def visit_Call(self, node: ast.Call) -> Any:
        """A method, a function of torch, a module, a function of the learner's."""
        if any(isinstance(a, ast.Starred) for a in node.args) or any(
            k.arg is None for k in node.keywords
        ):
            self._visit_children(node)
            raise Unknown
        path = way(node.func)
        target = self._known.get(path) if path is not None else None
        if isinstance(target, LearnerFunction):
            self._visit_children(node)
            if target.code not in self._returned:
                raise Unknown
            return self._as_value(self._returned[target.code])
        if isinstance(target, ModuleRef):
            return self._module(node, target)
        home, name = self._in_torch(node.func)
        if home is not None:
            return self._function(node, home, name, node.args)
        if isinstance(node.func, ast.Attribute):
            if isinstance(self.attempt(node.func.value), Value):
                return self._function(
                    node, torch.Tensor, node.func.attr, [node.func.value, *node.args]
                )
        elif isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
            return self._compute(node, len, (self.value(node.args[0]),))
        self._visit_children(node)
        raise Unknown

    def _function(self, node: ast.Call, home: Any, name: str, places: list[ast.expr]) -> Any:
        """`f(x, y)` and `x.f(y)` alike."""
        find = inspect.getattr_static if home is torch.Tensor else getattr
        if not only_computes(home, name, find(home, name, None)):
            self._visit_children(node)
            raise Unknown
        function = getattr(home, name)
        if len(places) >= 2 and (name.removesuffix("_") in TWO_SIDED or name in LOSSES):
            label = ast.unparse(node.func)
            return self._meet(node, label, function, places, is_loss=name in LOSSES)
        if name == "where" and len(places) == 3:
            condition = self.attempt(places[0])
            if condition is Unknown:
                raise Unknown
            mask = unwrapped(condition)
            return self._meet(node, "torch.where", lambda a, b: function(mask, a, b), places[1:])
        keywords = {str(k.arg): k.value for k in node.keywords}
        device = self.value(keywords["device"]) if "device" in keywords else None
        values, more = self._arguments(places, node.keywords, NOT_OF_SHAPES)
        if home is torch.Tensor and name in TO_DEVICE and isinstance(values[0], Value):
            return to_device(values[0], name, (*values[1:], *more.values(), device))
        is_tensors = has_value((values, more))
        if not is_tensors:
            more["device"] = self._on  # a factory: zeros, arange, tensor
        result = self._compute(node, function, values, places, more)
        if not is_tensors and isinstance(result, Value):
            return replace(result, device=str(device) if device is not None else "cpu")
        return result

    def _arguments(
        self, places: Iterable[ast.expr], keywords: Iterable[ast.keyword], but: Sequence[str] = ()
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The values of a call's arguments. Raises Unknown if one is not known."""
        values = tuple(self.attempt(place) for place in places)
        more = {str(k.arg): self.attempt(k.value) for k in keywords if k.arg not in but}
        if Unknown in (*values, *more.values()):
            raise Unknown
        return values, more

    def _module(self, node: ast.Call, target: ModuleRef) -> Any:
        """One of torch's own modules, with parameters on the meta device."""
        module = target.module()
        kind = type(module)
        if module is None or not is_torchs_own(module):
            self._visit_children(node)
            raise Unknown
        if kind in LOSS_MODULES and len(node.args) == 2:
            name = LOSS_MODULES[kind]
            function = getattr(torch.nn.functional, name)
            reduction = str(access.attributes(module).get("reduction"))
            return self._meet(
                node, ast.unparse(node.func), lambda a, b: function(a, b, reduction=reduction),
                node.args, is_loss=True,
            )  # fmt: skip
        values, keywords = self._arguments(node.args, node.keywords)
        if not has_value((values, keywords)):
            raise Unknown
        if kind is torch.nn.Sequential and len(values) == 1:
            value = values[0]
            inner = access.attributes(module)["_modules"]
            for key, layer in inner.items():
                value = self._layer(node, f"{ast.unparse(node.func)}[{key}]", layer, (value,), {})
            return value
        return self._layer(node, ast.unparse(node.func), module, values, keywords)

    def _layer(
        self, node: ast.Call, name: str, module: Any, values: tuple[Any, ...], keywords: Any
    ) -> Any:
        tensors = parameters_on(module, self._on)
        fixed = tuple(
            (f"{name}.{key}", Value(tensor)) for key, tensor in tensors.items() if tensor.dim()
        )
        own = [one for one in access.attributes(module).values() if type(one) in (int, tuple)]

        def run(*arguments: Any, **more: Any) -> Any:
            return torch.func.functional_call(module, tensors, arguments, more)

        label = f"{name}: {type(module).__name__}"
        return self._compute(
            node, run, values, node.args, keywords, label, fixed, tuple(numbers_in(own))
        )

    def _in_torch(self, node: ast.AST) -> tuple[Any, str]:
        """The module of torch and the name in it that `torch.f`, `F.f` mean; (None, "") else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self._modules:
            return None, ""
        if (node.id,) in self._known:
            return None, ""  # a variable of that name hides the module
        whole = ".".join([self._modules[node.id], *reversed(parts)])
        home, _, name = whole.rpartition(".")
        return HOMES.get(home), name

    # --- computing ---

    def _compute(
        self,
        node: ast.expr,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        texts: Sequence[ast.expr] = (),
        keywords: dict[str, Any] | None = None,
        name: str = "",
        fixed: tuple[tuple[str, Value], ...] = (),
        numbers: tuple[int, ...] = (),
    ) -> Any:
        """What torch gives for tensors of these shapes. Raises Mismatch, Unknown.

        texts: what stands for the arguments; name, fixed, numbers: as in FailedCall.
        """
        if not self._budget.left():
            raise Unknown
        more = keywords or {}
        try:
            result = function(*unwrapped(arguments), **unwrapped(more))
        except Exception as error:
            if not may_be_shapes(error) or not has_value((arguments, more)):
                raise Unknown from None
            if self.failed is None:
                places: dict[int | str, ast.expr] = dict(enumerate(texts))
                label = name or ast.unparse(node.func if isinstance(node, ast.Call) else node)
                if isinstance(node, ast.Call):
                    places.update({str(k.arg): k.value for k in node.keywords})
                self.failed = FailedCall(
                    node, label, function, arguments, more, places, fixed, numbers
                )
            raise Mismatch from None
        return wrapped(result, device_of((arguments, more)))

    def _meet(
        self,
        node: ast.expr,
        sign: str,
        function: Callable[..., Any],
        places: Sequence[ast.expr],
        *,
        is_loss: bool = False,
    ) -> Any:
        """An operation whose first two arguments broadcast. Raises Mismatch, Unknown."""
        further = node.keywords if isinstance(node, ast.Call) else ()
        (a, b, *others), keywords = self._arguments(places, further, ("out",))
        if not has_value((a, b)) and not are_small(a, b):
            raise Unknown
        try:
            result = self._compute(node, function, (a, b, *others), places, keywords)
        except Mismatch:
            if isinstance(a, Value) and isinstance(b, Value):
                wrong = -1 if sign == "@" else disagreeing(a.shape, b.shape)
                if getattr(node, "in_place", False) or sign.endswith("_"):
                    wrong = wrong or first_difference(a.shape, b.shape)
                if wrong is not None:
                    self.pairs.append(Pair(node, sign, (places[0], a), (places[1], b), None, wrong))
            raise
        if isinstance(result, Value):
            both = result
            if is_loss:
                sides = (blank(shape_of(one), result.dtype, self._on) for one in (a, b))
                both = Value(sum(sides, torch.zeros((), device=self._on)), result.device)
            self.pairs.append(Pair(node, sign, (places[0], a), (places[1], b), both, None))
        return result

    def _as_value(self, known: Any) -> Any:
        """What was noted, as something to compute with. Raises Unknown."""
        if isinstance(known, TensorSnapshot):
            return Value(blank(known.shape, known.dtype, self._on), str(known.device))
        if type(known) is tuple and any(isinstance(item, TensorSnapshot) for item in known):
            return tuple(map(self._as_value, known))
        if isinstance(known, (ModuleRef, LearnerFunction)) or callable(known):
            raise Unknown
        return known


def blank(shape: Any, dtype: torch.dtype, on: str) -> torch.Tensor:
    """A tensor that stands for one of this shape. Raises Unknown where it would be too large."""
    try:
        if math.prod(shape) > LARGEST[on]:
            raise Unknown
        return torch.zeros(tuple(map(int, shape)), dtype=dtype, device=on)
    except (TypeError, RuntimeError):  # a symbolic shape, a dtype without numbers
        raise Unknown from None


def unwrapped(value: Any) -> Any:
    """Values as tensors, inside lists, tuples and dicts too."""
    return tree_map_only(Value, lambda one: one.tensor, value)


def wrapped(result: Any, device: str) -> Any:
    """What torch gave, with the device. Raises Unknown."""
    if isinstance(result, torch.Size):
        return tuple(result)
    if not all(isinstance(one, KNOWN) for one in tree_leaves(result)):
        raise Unknown
    return tree_map_only(torch.Tensor, lambda tensor: Value(tensor, device), result)


def values_in(value: Any) -> list[Value]:
    """The tensors of an argument, in order."""
    return [one for one in tree_leaves(value) if isinstance(one, Value)]


def has_value(value: Any) -> bool:
    """There is a tensor in it."""
    return bool(values_in(value))


def numbers_in(value: Any, *, negative: bool = False) -> list[int]:
    """The whole numbers of arguments, in order; those below 1 only if they are asked for."""
    return [one for one in tree_leaves(value) if type(one) is int and (negative or one > 0)]


def device_of(value: Any) -> str:
    """The device of the first tensor in it that is not a number; "cpu" without one."""
    found = values_in(value)
    whole = [one for one in found if one.shape]
    return (whole or found)[0].device if found else "cpu"


def to_device(value: Value, name: str, arguments: tuple[Any, ...]) -> Value:
    """`.to(...)`, `.cpu()`, `.cuda()`."""
    device = None
    for one in arguments:
        if isinstance(one, Value):
            value = Value(value.tensor.to(one.dtype), one.device)
        elif isinstance(one, torch.dtype):
            value = replace(value, tensor=value.tensor.to(one))
        elif isinstance(one, (str, torch.device)):
            device = one
    where = str(device) if device is not None else TO_DEVICE[name] or value.device
    return replace(value, device=where)


def only_computes(home: Any, name: str, function: Any) -> bool:
    """It is an operator, or written in Python in a place where all do nothing but compute."""
    if not callable(function) or name.startswith("_") or name in NOT_CALLED:
        return False
    if isinstance(function, type):
        return False
    if home is torch and hasattr(torch._C._VariableFunctions, name):
        return True
    own = getattr(function, "__module__", None)
    if inspect.isfunction(function):
        return own in OWN_MODULES
    return home is not torch  # a built-in function of linalg, functional, or a method


def is_torchs_own(module: Any) -> bool:
    """It and all inside it are modules of torch, without hooks, as they were made."""
    for one in module.modules():
        own = access.attributes(one)
        if not str(type(one).__module__).startswith("torch.nn.modules") or "forward" in own:
            return False
        if own.get("_forward_hooks") or own.get("_forward_pre_hooks"):
            return False
    return True


def parameters_on(module: Any, on: str) -> dict[str, torch.Tensor]:
    """What stands for a module's parameters and buffers. Raises Unknown."""
    try:
        tensors = (*module.named_parameters(), *module.named_buffers())
        return {name: blank(tensor.shape, tensor.dtype, on) for name, tensor in tensors}
    except RuntimeError:  # not yet initialised
        raise Unknown from None


def may_be_shapes(error: Exception) -> bool:
    """It is what torch raises where shapes do not fit, and not because there are no values."""
    if isinstance(error, NotImplementedError) or "meta" in str(error).lower():
        return False
    return isinstance(error, (RuntimeError, ValueError, IndexError, AssertionError, TypeError))


def are_small(a: Any, b: Any) -> bool:
    """These are numbers, and their power is none of astronomic size."""
    numbers = all(type(one) in (int, float) and abs(one) <= LARGEST_NUMBER for one in (a, b))
    return numbers and (b <= 64 or abs(a) <= 2)


def shape_of(value: Any) -> tuple[int, ...]:
    """() for a number."""
    return value.shape if isinstance(value, Value) else ()


def disagreeing(left: tuple[int, ...], right: tuple[int, ...]) -> int | None:
    """The first dimension, from the right, in which two shapes differ and neither is 1."""
    for index in range(1, min(len(left), len(right)) + 1):
        if left[-index] != right[-index] and 1 not in (left[-index], right[-index]):
            return -index
    return None


def first_difference(shape: tuple[int, ...], other: tuple[int, ...]) -> int:
    """In place: the first dimension, from the right, in which `shape` would have to grow."""
    for index in range(1, len(other) + 1):
        if index > len(shape) or (shape[-index] != other[-index] != 1):
            return -index
    return -1
