"""What is easily written for what: the tables behind the single edits. Names are libcst's."""

OPERATORS = {
    "Add": "Subtract",
    "Subtract": "Add",
    "Multiply": "Divide",
    "Divide": "Multiply",
    "FloorDivide": "Divide",
    "Modulo": "FloorDivide",
    "Power": "Multiply",
    "MatrixMultiply": "Multiply",
    "BitAnd": "BitOr",
    "BitOr": "BitAnd",
    "BitXor": "BitOr",
    "LeftShift": "RightShift",
    "RightShift": "LeftShift",
}
OPERATORS |= {f"{name}Assign": f"{twin}Assign" for name, twin in OPERATORS.items()}

ORDERED = ("Subtract", "Divide", "FloorDivide", "Modulo", "MatrixMultiply")
"""Operators whose operands are often mistaken for one another."""

BOUNDARIES = {
    "LessThan": "LessThanEqual",
    "LessThanEqual": "LessThan",
    "GreaterThan": "GreaterThanEqual",
    "GreaterThanEqual": "GreaterThan",
}
INVERSES = {
    "LessThan": "GreaterThanEqual",
    "LessThanEqual": "GreaterThan",
    "GreaterThan": "LessThanEqual",
    "GreaterThanEqual": "LessThan",
    "Equal": "NotEqual",
    "NotEqual": "Equal",
    "Is": "IsNot",
    "IsNot": "Is",
    "In": "NotIn",
    "NotIn": "In",
}

PAIRS = (
    ("max", "min"),
    ("amax", "amin"),
    ("argmax", "argmin"),
    ("maximum", "minimum"),
    ("sum", "mean"),
    ("any", "all"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("new_zeros", "new_ones"),
    ("floor", "ceil"),
    ("triu", "tril"),
    ("train", "eval"),
    ("no_grad", "enable_grad"),
    ("cat", "stack"),
    ("softmax", "log_softmax"),
    ("exp", "log"),
    ("sin", "cos"),
    ("add_", "sub_"),
    ("mul_", "div_"),
    ("float16", "bfloat16"),
    ("float32", "float64"),
    ("int64", "int32"),
)
TWINS = {one: other for pair in PAIRS for one, other in (pair, pair[::-1])}
BUILTINS = ("max", "min", "any", "all")
"""The functions of Python itself among them."""

WORDS = {"mean": "sum", "sum": "mean", "none": "mean", "ij": "xy", "xy": "ij"}
"""Strings that choose what a function of torch does."""

SYMMETRIC = (
    "transpose", "swapaxes", "swapdims", "add", "mul", "max", "min", "maximum", "minimum", "equal",
    "mse_loss", "l1_loss",
)  # fmt: skip
"""Functions that give the same with two arguments the other way round."""

EVEN = ("abs", "square", "norm")
"""Methods that give the same for a difference and for the opposite one."""

BOILERPLATE = ("print", "range", "len", "isinstance", "enumerate", "zip", "super", "type", "iter")
"""Functions without which a program only crashes; nothing is learnt from their absence."""

MODULES = ("torch", "nn", "F", "optim", "dist", "math", "random", "copy", "functools", "np")
"""What a function hangs on that is no value."""
