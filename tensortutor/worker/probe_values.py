"""Values of a program as JSON, for a quiz's proof."""

import ast
from typing import Any

import torch


def evaluate(code: str, namespace: dict[str, Any]) -> Any:
    """Run the statements of `code` in `namespace` and return its last expression's value.

    Raises whatever the code raises, and ValueError if it does not end in an expression.
    """
    tree = ast.parse(code, "<proof>")
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise ValueError("a proof must end in an expression")
    last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, "<proof>", "exec"), namespace)
    return eval(compile(last, "<proof>", "eval"), namespace)


def json_value(value: Any) -> Any:
    """Tensors and sequences as lists, numbers, bools, strings and None as they are, else text."""
    if isinstance(value, torch.Tensor):
        return value.detach().cpu().tolist()
    if isinstance(value, (list, tuple)):
        return [json_value(item) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)
