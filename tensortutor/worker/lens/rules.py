"""Methods of tensors and functions of torch by name: what each does to shapes and dtypes."""

import math
from typing import Any

import torch

from tensortutor.worker.lens import shapes
from tensortutor.worker.lens.shapes import Mismatch, Rule, Unknown, Value

SAME = (
    "abs", "neg", "negative", "clamp", "clip", "round", "floor", "ceil", "trunc", "sign", "square",
    "clone", "contiguous", "detach", "detach_", "data", "requires_grad_", "relu", "relu_", "relu6",
    "softmax", "log_softmax", "cumsum", "cumprod", "dropout", "flip", "roll", "triu", "tril",
    "nan_to_num", "masked_fill", "masked_fill_", "fill_", "zero_", "leaky_relu", "elu", "gelu",
    "silu", "normalize", "layer_norm", "batch_norm", "cpu", "cuda", "hardtanh", "softplus", "tanh_",
    "sigmoid_", "exp_", "normal_", "uniform_", "fliplr", "flipud", "conj", "bernoulli", "copy_",
)  # fmt: skip
FLOATING = (
    "sigmoid", "tanh", "exp", "expm1", "log", "log1p", "log2", "log10", "sqrt", "rsqrt", "sin",
    "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "erf", "erfc", "reciprocal",
    "logsigmoid",
)  # fmt: skip
ARITHMETIC = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "maximum": "maximum",
    "minimum": "minimum", "fmod": "%", "remainder": "%", "pow": "**", "floor_divide": "//",
    "atan2": "atan2", "hypot": "hypot", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
}  # fmt: skip
DIVISION = ("div", "divide", "true_divide")
COMPARISONS = {
    "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "less": "<",
    "greater": ">", "logical_and": "and", "logical_or": "or", "logical_xor": "xor",
    "isclose": "isclose",
}  # fmt: skip
BROADCASTING_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
TWO_SIDED = (*ARITHMETIC, *DIVISION, *COMPARISONS, *BROADCASTING_LOSSES)
"""Functions of two tensors that broadcast; `evaluate` does them, for it reports them."""
REDUCTIONS = (
    "sum", "mean", "prod", "std", "var", "norm", "logsumexp", "amax", "amin", "nansum", "nanmean",
    "vector_norm", "median",
)  # fmt: skip
CASTS = {
    "float": torch.float32, "double": torch.float64, "half": torch.float16, "long": torch.int64,
    "bfloat16": torch.bfloat16, "int": torch.int32, "short": torch.int16, "bool": torch.bool,
}  # fmt: skip
FACTORIES = ("zeros", "ones", "empty", "randn", "rand")
LIKE = ("zeros_like", "ones_like", "empty_like", "randn_like", "rand_like", "full_like")


def same(value: Value, *_: Any, **__: Any) -> Value:
    """Shape and dtype stay."""
    return value


def floating(value: Value, *_: Any, **__: Any) -> Value:
    """Integers become floating point numbers."""
    if value.dtype.is_floating_point or value.dtype.is_complex:
        return value
    return value._replace(dtype=torch.get_default_dtype())


def reduction(value: Value, dim: Any = None, keepdim: bool = False, **more: Any) -> Value:
    """`sum` and its like."""
    dim = more.pop("axis", dim)
    if more and set(more) - {"dtype", "unbiased", "correction"}:
        raise Unknown
    result = shapes.reduced(value, dim, keepdim)
    if isinstance(more.get("dtype"), torch.dtype):
        return result._replace(dtype=more["dtype"])
    return result


def total(value: Value, dim: Any = None, keepdim: bool = False, **more: Any) -> Value:
    """`sum`, `prod`: of integers and truth values, an int64."""
    result = reduction(value, dim, keepdim, **more)
    is_count = shapes.rank(value.dtype) < 2 and "dtype" not in more
    return result._replace(dtype=torch.int64) if is_count else result


def place(value: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`argmax`, `argmin`."""
    return shapes.reduced(value, dim, keepdim)._replace(dtype=torch.int64)


def truth(value: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """`any`, `all`."""
    return shapes.reduced(value, dim, keepdim)._replace(dtype=torch.bool)


def question(value: Value) -> Value:
    """`isnan` and its like."""
    return value._replace(dtype=torch.bool)


def extreme(value: Value, dim: Any = None, keepdim: bool = False) -> Any:
    """`max`, `min`: along a dimension they give the places too."""
    if isinstance(dim, Value):
        raise Unknown
    result = shapes.reduced(value, dim, keepdim)
    return result if dim is None else (result, result._replace(dtype=torch.int64))


def norm(value: Value, p: Any = 2, dim: Any = None, keepdim: bool = False) -> Value:
    """`Tensor.norm`."""
    del p
    return shapes.reduced(value, dim, keepdim)


def view(value: Value, *wanted: Any) -> Value:
    """`view`, `reshape`."""
    return shapes.with_size(value, shapes.sizes(wanted))


def permute(value: Value, *order: Any) -> Value:
    """`permute`."""
    return shapes.permuted(value, shapes.sizes(order))


def expand(value: Value, *wanted: Any) -> Value:
    """`expand`, `broadcast_to`."""
    return shapes.expanded(value, shapes.sizes(wanted))


def turned(value: Value) -> Value:
    """`t`, `T`: of two dimensions at most."""
    if len(value.shape) > 2:
        raise Unknown
    return value._replace(shape=tuple(reversed(value.shape)))


def repeat(value: Value, *times: Any) -> Value:
    """`repeat`."""
    times = shapes.sizes(times)
    if len(times) < len(value.shape) or not all(type(n) is int for n in times):
        raise Unknown
    padded = (1,) * (len(times) - len(value.shape)) + value.shape
    return value._replace(shape=tuple(n * t for n, t in zip(padded, times, strict=True)))


def to(value: Value, *where: Any, **more: Any) -> Value:
    """`to`, `type`: a dtype, a device, another tensor."""
    for one in (*where, *more.values()):
        if isinstance(one, torch.dtype):
            value = value._replace(dtype=one)
        elif isinstance(one, Value):
            value = value._replace(dtype=one.dtype)
        elif not isinstance(one, (torch.device, str, bool)):
            raise Unknown
    return value


def made(*size: Any, dtype: Any = None, **_: Any) -> Value:
    """`zeros` and its like."""
    wanted = shapes.sizes(size)
    if not all(type(n) is int for n in wanted):
        raise Unknown
    return Value(tuple(wanted), dtype or torch.get_default_dtype())


def full(size: Any, fill: Any, dtype: Any = None, **_: Any) -> Value:
    """`full`."""
    if dtype is None:
        dtype = {int: torch.int64, bool: torch.bool}.get(type(fill), torch.get_default_dtype())
    return Value(tuple(shapes.sizes((size,))), dtype)


def arange(*bounds: Any, dtype: Any = None, **_: Any) -> Value:
    """`arange`."""
    if not 1 <= len(bounds) <= 3 or not all(type(n) in (int, float) for n in bounds):
        raise Unknown
    start, end, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    whole = all(type(n) is int for n in bounds)
    kind = dtype or (torch.int64 if whole else torch.get_default_dtype())
    return Value((max(0, math.ceil((end - start) / step)),), kind)


def tensor(data: Any, dtype: Any = None, **_: Any) -> Value:
    """`torch.tensor` of numbers in nested lists."""
    shape: list[int] = []
    while isinstance(data, (list, tuple)) and not isinstance(data, Value):
        shape.append(len(data))
        if not data:
            return Value(tuple(shape), dtype or torch.get_default_dtype())
        data = data[0]
    if type(data) not in shapes.NUMBERS:
        raise Unknown
    kinds = {bool: torch.bool, int: torch.int64, complex: torch.complex64}
    return Value(tuple(shape), dtype or kinds.get(type(data), torch.get_default_dtype()))


def linear(value: Value, weight: Value, bias: Any = None) -> Value:
    """`F.linear`."""
    del bias
    if not value.shape or value.shape[-1] != weight.shape[-1]:
        raise Mismatch
    return value._replace(shape=(*value.shape[:-1], *weight.shape[:-1]))


def cross_entropy(value: Value, _target: Value, **more: Any) -> Value:
    """The mean over the batch."""
    if more:
        raise Unknown
    return value._replace(shape=())


def one_hot(value: Value, classes: Any = None, **more: Any) -> Value:
    """`F.one_hot` with a known number of classes."""
    count = more.get("num_classes", classes)
    if type(count) is not int or count < 0:
        raise Unknown
    return value._replace(shape=(*value.shape, count))


def gather(_value: Value, _dim: Any, index: Value, **_: Any) -> Value:
    """`gather`: of the index's shape."""
    return _value._replace(shape=index.shape)


def cast(dtype: torch.dtype) -> Rule:
    """`float`, `long` and their like."""
    return lambda value, *_: value._replace(dtype=dtype)


RULES: dict[str, Rule] = {
    **dict.fromkeys(SAME, same), **dict.fromkeys(FLOATING, floating),
    **dict.fromkeys(REDUCTIONS, reduction), **dict.fromkeys(("sum", "prod"), total),
    **dict.fromkeys(("argmax", "argmin"), place), **dict.fromkeys(("any", "all"), truth),
    **dict.fromkeys(("isnan", "isinf", "isfinite", "logical_not"), question),
    **dict.fromkeys(("max", "min"), extreme), **dict.fromkeys(FACTORIES, made),
    **dict.fromkeys(LIKE, same), **{name: cast(dtype) for name, dtype in CASTS.items()},
    **dict.fromkeys(("view", "reshape"), view), **dict.fromkeys(("expand", "broadcast_to"), expand),
    **dict.fromkeys(("transpose", "swapaxes", "swapdims"), shapes.transposed),
    **dict.fromkeys(("cat", "concat", "concatenate"), shapes.joined),
    **dict.fromkeys(("matmul", "mm", "bmm", "mv", "dot"), shapes.matmul),
    **dict.fromkeys(("to", "type", "type_as"), to),
    "norm": norm, "permute": permute, "t": turned, "repeat": repeat, "stack": shapes.stacked,
    "unsqueeze": shapes.unsqueezed, "squeeze": shapes.squeezed, "flatten": shapes.flattened,
    "full": full, "arange": arange, "tensor": tensor, "linear": linear, "gather": gather,
    "cross_entropy": cross_entropy, "one_hot": one_hot,
}  # fmt: skip
ATTRIBUTES: dict[str, Rule] = {
    "T": turned, "mT": lambda v: shapes.transposed(v, -2, -1), "data": same, "grad": same,
    "shape": lambda v: v.shape, "ndim": lambda v: len(v.shape), "dtype": lambda v: v.dtype,
    "real": same, "values": same, "device": lambda v: torch.device(v.device),
}  # fmt: skip
QUESTIONS: dict[str, Rule] = {
    "size": lambda v, dim=None: v.shape if dim is None else v.shape[dim],
    "dim": lambda v: len(v.shape), "numel": lambda v: math.prod(v.shape),
}  # fmt: skip
"""Methods that answer with numbers."""
