"""What the program's names hold when it ends: tensors, modules, optimizers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Stats:
    """The values of a tensor in numbers.

    count: how many were looked at; below the number of elements, they are a sample taken evenly
    over the tensor. nan, inf: of those. minimum, mean, maximum: of the finite ones (of a complex
    tensor, of the absolute values).
    """

    count: int
    nan: int = 0
    inf: int = 0
    minimum: float | None = None
    mean: float | None = None
    maximum: float | None = None


@dataclass(frozen=True)
class Sample:
    """Values of a 2-D slice, row by row: len(rows) * len(columns) of them.

    rows, columns: which ones of the slice, evenly chosen where there are more than SIDE. slice: how
    to write the slice of a tensor of more dimensions, as `[0, 0]`, or "". A 0-d or 1-d tensor is
    one row. values: as Python writes numbers, "nan" and "inf" among them; float() reads them, but
    for a complex tensor's.
    """

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    values: tuple[str, ...]
    slice: str = ""


@dataclass(frozen=True)
class TensorInfo:
    """A tensor and the name that holds it.

    name: `x`, or a way to it as `batch["x"]`, `losses[0]`, `net.w`. scope: "" for the program's own
    names, or the function whose local it is (see `Scope`). kind: its class. dtype: as
    torch names it, without "torch.". layout: "strided", "sparse_coo", "nested", ... offset, stride:
    in elements; stride is () where the layout has none. bytes: what its elements would need apart;
    held: what they hold, less where several lie in one cell (`expand`). storage: the id
    of its storage in this event, 0 if it has none that can be told. version: how often it was
    changed in place (its version counter), -1 if it keeps none. grad: words of `.grad`, or "".
    word: why something is missing here, "" if nothing is.
    """

    name: str
    words: str
    kind: str
    dtype: str
    shape: tuple[int, ...]
    device: str
    scope: str = ""
    layout: str = "strided"
    stride: tuple[int, ...] = ()
    offset: int = 0
    contiguous: bool = True
    itemsize: int = 0
    bytes: int = 0
    storage: int = 0
    held: int = 0
    requires_grad: bool = False
    leaf: bool = True
    grad_fn: str = ""
    grad: str = ""
    grad_norm: float | None = None
    version: int = 0
    stats: Stats | None = None
    sample: Sample | None = None
    word: str = ""


@dataclass(frozen=True)
class Storage:
    """Memory that one or more of the names look at.

    names: the tensors', qualified by their scope as `train: x`. cells: the values of its first
    cells, read as `dtype`; () where they cannot be read. bytes: of the whole storage.
    """

    id: int
    device: str
    bytes: int
    names: tuple[str, ...]
    dtype: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Scope:
    """A function whose locals are in the table: as it returned from, or raised in, its Nth call.

    calls: how often it was called in all; 0 where that was not counted.
    """

    name: str
    line: int
    call: int = 1
    calls: int = 0
    raised: bool = False


@dataclass(frozen=True)
class Tensors:
    """The program's names that hold tensors, when it ended. left_out: names beyond the limit."""

    tensors: tuple[TensorInfo, ...]
    storages: tuple[Storage, ...] = ()
    scopes: tuple[Scope, ...] = ()
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class ParameterInfo:
    """A parameter or buffer of a module. name: within its module.

    trainable: not frozen. norm, grad_norm: Euclidean. tied: the full path under which the same
    tensor came before, or "".
    """

    name: str
    words: str
    count: int
    trainable: bool = False
    norm: float | None = None
    grad_norm: float | None = None
    tied: str = ""


@dataclass(frozen=True)
class ModuleInfo:
    """One module of a tree. path: `model.0.attention`; the first part is the learner's name for it.

    depth: 0 for a root. detail: what it says of itself, as `in_features=3, out_features=1`. count:
    elements of all parameters below, each once; trainable: of those not frozen.
    """

    path: str
    depth: int
    type: str
    detail: str = ""
    training: bool = True
    count: int = 0
    trainable: int = 0
    parameters: tuple[ParameterInfo, ...] = ()
    buffers: tuple[ParameterInfo, ...] = ()


@dataclass(frozen=True)
class Modules:
    """The trees of the program's modules, each module followed by its children."""

    modules: tuple[ModuleInfo, ...]
    left_out: int = 0
    note: str = ""


@dataclass(frozen=True)
class Setting:
    """A name and its value in a few words."""

    name: str
    value: str


@dataclass(frozen=True)
class Group:
    """A parameter group. parameters: the learner's names where known; tensors: how many in all."""

    settings: tuple[Setting, ...]
    parameters: tuple[str, ...]
    tensors: int
    count: int


@dataclass(frozen=True)
class State:
    """What an optimizer remembers under one key, over all parameters. bytes: of its tensors."""

    name: str
    tensors: int
    bytes: int
    norm: float | None = None


@dataclass(frozen=True)
class OptimizerInfo:
    """An optimizer. steps: the largest step counter in its state, None if it keeps none."""

    name: str
    type: str
    groups: tuple[Group, ...]
    state: tuple[State, ...] = ()
    steps: int | None = None


@dataclass(frozen=True)
class Optimizers:
    """The program's optimizers."""

    optimizers: tuple[OptimizerInfo, ...]
    left_out: int = 0
    note: str = ""
