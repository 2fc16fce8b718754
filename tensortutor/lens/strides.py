"""The walk through a storage that shape, stride and offset describe."""

import itertools
from collections.abc import Iterator

from tensortutor.protocol.lens import TensorInfo


def cells_of(tensor: TensorInfo) -> Iterator[int]:
    """The cell of the storage at which each element lies, in the order of the indices.

    In units of the tensor's own elements. Only for the layout "strided".
    """
    ranges = (range(0, size * stride, stride) if stride else (0,) * size
              for size, stride in zip(tensor.shape, tensor.stride, strict=True))  # fmt: skip
    for steps in itertools.product(*ranges):
        yield tensor.offset + sum(steps)


def bytes_of(tensor: TensorInfo, most: int = 1 << 16) -> set[int]:
    """The bytes of the storage that it looks at, of its first `most` elements."""
    first = itertools.islice(cells_of(tensor), most)
    size = tensor.itemsize
    return {byte for cell in first for byte in range(cell * size, (cell + 1) * size)}


def shared(one: TensorInfo, other: TensorInfo) -> set[int]:
    """The bytes that two tensors have in common; none if their storages differ."""
    if not one.storage or one.storage != other.storage:
        return set()
    return bytes_of(one) & bytes_of(other)
