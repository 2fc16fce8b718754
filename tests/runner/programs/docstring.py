# says = "A docstring and a __future__ import work."
"""The docstring."""

from __future__ import annotations


def scale(x: Tensor) -> Tensor:  # noqa: F821
    return x


print(__doc__, scale.__annotations__)
