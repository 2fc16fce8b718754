"""What a program that is judged may not do, since nothing could put it right before its checks.

`integrity` puts back what was replaced. Audit hooks and kernels of the dispatcher stay until
the process ends: `refuse_irreversible` closes the ways to them.
"""

import ctypes
import os
import sys
from typing import Any, NoReturn

import torch

KEPT = "aten"
"""The namespace of torch's own operators."""
OWN = os.path.dirname(torch.__file__)
"""torch registers kernels itself, when parts of it are imported and at the first `vmap`."""
HARMLESS = ("Meta", "MPS", "FuncTorchBatched", "FuncTorchBatchedDecomposition")
"""The keys of these: shapes without values, GPUs of Macs, `vmap`. Nothing is judged there."""
ADDS_HOOK = "PySys_AddAuditHook"
NO_HOOK = "a program that is checked cannot add a hook for audits: it would stay for the checks"
NO_KERNEL = (
    "a program that is checked cannot replace torch's own kernels: they would stay replaced for "
    "the checks. Operators in a namespace of your own can be registered"
)


def refuse_irreversible() -> None:
    """From here on these raise RuntimeError in this process."""
    sys.addaudithook = add_no_hook  # type: ignore[assignment]
    ctypes.CDLL.__getitem__ = find_no_hook  # type: ignore[method-assign]
    torch._C._dispatch_library = own_library(torch._C._dispatch_library)


def add_no_hook(_hook: object) -> NoReturn:
    """In the place of `sys.addaudithook`."""
    raise RuntimeError(NO_HOOK)


def find_no_hook(library: ctypes.CDLL, name_or_ordinal: Any) -> Any:
    """In the place of `ctypes.CDLL.__getitem__`, through which attributes go as well."""
    if name_or_ordinal == ADDS_HOOK:
        raise RuntimeError(NO_HOOK)
    function = library._FuncPtr((name_or_ordinal, library))  # as in ctypes
    if not isinstance(name_or_ordinal, int):
        function.__name__ = name_or_ordinal  # type: ignore[attr-defined]
    return function


def own_library(make_library: Any) -> Any:
    """In the place of `torch._C._dispatch_library`. make_library: that function."""
    # As a number: what a function holds can be taken out of it.
    ctypes.pythonapi["Py_IncRef"](ctypes.py_object(make_library))
    address = id(make_library)
    del make_library

    def make_own_library(kind: str, space: str, key: str, file: str = "", line: int = 0) -> Any:
        if space == KEPT and not (kind == "IMPL" and key in HARMLESS and file.startswith(OWN)):
            raise RuntimeError(NO_KERNEL)
        make = ctypes.cast(address, ctypes.py_object).value
        return make(kind, space, key, file, line)

    return make_own_library
