"""What a program that is judged may not do, since nothing could put it right before its checks.

`integrity` puts back what was replaced. Audit hooks and kernels of the dispatcher stay until
the process ends: `refuse` closes the two ways to them.
"""

import os
import sys
from typing import Any, NoReturn

import torch

KEPT = "aten"
"""The namespace of torch's own operators."""
OWN = os.path.dirname(torch.__file__)
"""torch registers kernels itself, when parts of it are imported and at the first `vmap`."""
NO_HOOK = "a program that is checked cannot add a hook for audits: it would stay for the checks"
NO_KERNEL = (
    "a program that is checked cannot replace torch's own kernels: they would stay replaced for "
    "the checks. Operators in a namespace of your own can be registered"
)


def refuse() -> None:
    """From here on both raise RuntimeError in this process."""
    make_library = torch._C._dispatch_library

    def add_no_hook(_hook: object) -> NoReturn:
        raise RuntimeError(NO_HOOK)

    def make_own_library(kind: str, space: str, key: str, file: str = "", line: int = 0) -> Any:
        if space == KEPT and not file.startswith(OWN):
            raise RuntimeError(NO_KERNEL)
        return make_library(kind, space, key, file, line)

    sys.addaudithook = add_no_hook  # type: ignore[assignment]
    torch._C._dispatch_library = make_own_library  # type: ignore[assignment]
