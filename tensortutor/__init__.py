"""tensortutor: a terminal tutor that shows what PyTorch does."""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# By its name: what it needs (torch, IPython) is for a learner's process, never for the app.
EXTENSION = "tensortutor.in_process.extension"


def load_ipython_extension(ipython: Any) -> None:
    """`%load_ext tensortutor`: errors are explained from now on, and there is `%%lens`."""
    import_module(EXTENSION).load(ipython)


def unload_ipython_extension(ipython: Any) -> None:
    """`%unload_ext tensortutor`: the shell is as it was."""
    import_module(EXTENSION).unload(ipython)
