"""The walk through a storage that shape, stride and offset describe."""

import itertools
from collections.abc import Iterator

from tensortutor.protocol.lens import TensorInfo

LARGEST_ELEMENT = 16
"""Bytes of the largest dtype, complex128."""


def cells_of(tensor: TensorInfo, most: int) -> Iterator[int]:
    """The cell of the storage at which each of the first `most` elements lies, index by index.

    In units of the tensor's own elements. Only for the layout "strided".
    """
    # No index of the first elements is beyond `most`; `product` keeps what it is given, and an
    # expanded tensor may have more elements than fit in memory.
    ranges = ([index * stride for index in range(min(size, most))]
              for size, stride in zip(tensor.shape, tensor.stride, strict=False))  # fmt: skip
    for steps in itertools.islice(itertools.product(*ranges), most):
        yield tensor.offset + sum(steps)


def bytes_of(tensor: TensorInfo, most: int = 1 << 16) -> set[int]:
    """The bytes of the storage that it looks at, of its first `most` elements."""
    first = cells_of(tensor, most)
    size = tensor.itemsize
    return {cell * size + byte for cell in first for byte in range(min(size, LARGEST_ELEMENT))}


def shared(one: TensorInfo, other: TensorInfo) -> set[int]:
    """The bytes that two tensors have in common; none if their storages differ."""
    if not one.storage or one.storage != other.storage:
        return set()
    return bytes_of(one) & bytes_of(other)
