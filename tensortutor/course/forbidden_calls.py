"""Programs that take a forbidden shortcut, to see that it is refused."""

import ast

TRIES = '''
import torch as _torch

_m = _torch.tensor([[2.0, 1.0], [1.0, 3.0]])
_n = _torch.tensor([[0, 1], [1, 0]])
_property = type(_torch.Tensor.T)
_ARGUMENTS = (
    (_m,), (_m, 0), (_m, _m), (_m, _n), (_m[0], _n[0]), (_m, _m[0]), (_m, 0, _n), (_m, _m, _m),
    (_n.bool(), _m, _m), ([_m, _m],), ((_m, _m), 0), (_m, (2, 2)), (_m, 2, 0), (_m, 0, 1),
    (_m, 0, _n, _m), (_m, 0, _n[0], _m), (_m, 0, 1, 1), (_m, (_n[0],), _m[0]), (_m, (2,), (1,)),
    ("ij,jk->ik", _m, _m), (2,), (2, 2), (0, 2), ((2, 2), 1.0), (_n, 2), (_m[0].sum(), _m),
)


def _shortcut():
    """Call the function with one list of arguments after the other until one fits."""
    for root in (_torch, _torch.Tensor, _torch.nn.functional, _torch.linalg, _torch.special):
        function = root
        for part in {parts!r}:
            function = getattr(function, part, None)
        function = getattr(function, "__get__", None) if type(function) is _property else function
        if callable(function):
            for arguments in _ARGUMENTS:
                try:
                    function(*arguments)
                    return
                except Exception as error:
                    if type(error).__name__ == "Forbidden":
                        return


'''


def takes_shortcut(solution: str, path: str) -> str:
    """The solution, with a call of torch's function `path` in each of its functions.

    The results stay those of the solution, so only a rule against the call can fail it. Raises
    SyntaxError if the solution is not Python.
    """
    parts = path.removeprefix("torch.").split(".")
    tree = _Inserts().visit(ast.parse(solution))
    return TRIES.replace("{parts!r}", repr(tuple(parts))) + ast.unparse(tree) + "\n"


class _Inserts(ast.NodeTransformer):
    """Puts a call of `_shortcut` at the beginning of each function."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        call = ast.Expr(ast.Call(ast.Name("_shortcut", ast.Load()), [], []))
        node.body.insert(0, ast.fix_missing_locations(ast.copy_location(call, node.body[0])))
        return node
