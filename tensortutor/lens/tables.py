"""Tables of tensors, optimizers, time and memory: a head and rows of text."""

from collections.abc import Iterable
from dataclasses import dataclass

from tensortutor.protocol.lens import Optimizers, Profile, Storage, TensorInfo, Tensors

BAR_CELLS = 12
"""The longest bar."""
BLOCKS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉", "█")
UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class Table:
    """columns: their heads; right: which of them are numbers. below: sentences under the table."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[int, ...] = ()
    below: tuple[str, ...] = ()


def tensor_table(tensors: Tensors) -> Table:
    """A row for each name. Names that share storage have the same letter in `shares`."""
    letters = shared_letters(tensors.storages)
    rows = tuple(tensor_row(one, letters.get(one.storage, "")) for one in tensors.tensors)
    below = [
        f"{letter}: {', '.join(storage.names)} share {size(storage.bytes)}."
        for storage in tensors.storages
        if (letter := letters.get(storage.id))
    ]
    below += [
        f"{scope.name}: seen at call {scope.call:,} of {scope.calls:,}."
        for scope in tensors.scopes
        if scope.call < scope.calls
    ]
    if tensors.left_out:
        below.append(f"{tensors.left_out:,} more tensors were left out.")
    columns = (
        "name", "tensor", "stride", "offset", "memory", "grad", "min", "mean", "max", "NaN/Inf",
        "shares", "",
    )  # fmt: skip
    return Table(columns, rows, (3, 4, 6, 7, 8, 9), (*below, *notes(tensors.note)))


def tensor_row(one: TensorInfo, letter: str) -> tuple[str, ...]:
    """One name."""
    stats = one.stats
    numbers = ("", "", "") if stats is None else (
        number(stats.minimum), number(stats.mean), number(stats.maximum)
    )  # fmt: skip
    counts = () if stats is None else ((stats.nan, "NaN"), (stats.inf, "Inf"))
    odd = ", ".join(f"{count:,} {what}" for count, what in counts if count)
    stride = "" if one.layout != "strided" else f"({', '.join(map(str, one.stride))})"
    contiguous = "" if one.contiguous or one.layout != "strided" else "not contiguous"
    remark = one.word or contiguous
    if stats is not None and 0 < stats.count < elements(one):
        remark = f"{remark}; " * bool(remark) + f"values: {stats.count:,} of {elements(one):,}"
    return (
        full_name(one), one.words, stride, str(one.offset) if stride else "", memory(one),
        grad_word(one), *numbers, odd, letter, remark,
    )  # fmt: skip


def memory(one: TensorInfo) -> str:
    """`48 B`; `12 B for 48 B` where several elements lie in one cell."""
    return size(one.bytes) if not is_repeated(one) else f"{size(one.held)} for {size(one.bytes)}"


def is_repeated(one: TensorInfo) -> bool:
    """Its elements hold less memory than they would need apart."""
    return 0 < one.held < one.bytes


def full_name(one: TensorInfo) -> str:
    """`x`, or `train: x` for a name of a function."""
    return f"{one.scope}: {one.name}" if one.scope else one.name


def elements(one: TensorInfo) -> int:
    """How many there are."""
    return one.bytes // one.itemsize if one.itemsize else 0


def grad_word(one: TensorInfo) -> str:
    """Its place in the graph: `leaf`, `leaf, .grad 0.31`, `AddBackward0`, or nothing."""
    if one.grad_fn:
        return one.grad_fn
    if not one.requires_grad:
        return ""
    if not one.grad:
        return "leaf"
    norm = "" if one.grad_norm is None else f" {number(one.grad_norm)}"
    return f"leaf, .grad{norm}"


def shared_letters(storages: Iterable[Storage]) -> dict[int, str]:
    """A letter for each storage that several names look at: A to Z, then A1 to Z1, ..."""
    shared = [storage.id for storage in storages if len(storage.names) > 1]
    return {
        id: chr(ord("A") + index % 26) + (str(index // 26) if index >= 26 else "")
        for index, id in enumerate(shared)
    }


def optimizer_table(optimizers: Optimizers) -> Table:
    """A row for each parameter group, and one for each kind of state."""
    rows: list[tuple[str, ...]] = []
    for one in optimizers.optimizers:
        steps = "" if one.steps is None else f", {one.steps:,} steps"
        for index, group in enumerate(one.groups):
            settings = ", ".join(f"{s.name}={s.value}" for s in group.settings[:6])
            name = f"{one.name}: {one.type}{steps}" if not index else ""
            rows.append((name, f"group {index}", f"{group.tensors}", f"{group.count:,}", settings))
        for state in one.state:
            norm = "" if state.norm is None else f"norm {number(state.norm)}"
            rows.append(("", state.name, f"{state.tensors}", size(state.bytes), norm))
    columns = ("optimizer", "part", "tensors", "size", "")
    return Table(columns, tuple(rows), (2, 3), notes(optimizers.note))


def profile_table(profile: Profile, by_memory: bool = False) -> Table:
    """Operators, each with a bar for its own time, or for its own memory."""
    device = any(row.device_self_ms for row in profile.rows)
    amounts = [abs(row.self_bytes) if by_memory else row.self_ms for row in profile.rows]
    columns = ["operator", "calls", "self", "total", "memory"] + ["device"] * device
    rows = []
    for row, amount in zip(profile.rows, amounts, strict=True):
        cells = [row.name, f"{row.calls:,}", time(row.self_ms), time(row.total_ms),
                 size(row.self_bytes) if row.self_bytes else ""]  # fmt: skip
        cells += [time(row.device_self_ms)] * device
        rows.append((*cells, bar(amount / (max(amounts) or 1))))
    more = (f"{profile.left_out} more operators were left out.",) if profile.left_out else ()
    right = tuple(range(1, len(columns)))
    columns.append("")
    return Table(tuple(columns), tuple(rows), right, (*more, *notes(profile.note)))


def share_table(profile: Profile) -> Table:
    """The parts of the training steps."""
    rows = tuple(
        (
            share.part,
            time(share.ms),
            f"{share.fraction:.0%}",
            "█" * round(fraction(share.fraction) * 30),
        )
        for share in profile.shares
    )
    below = (f"{profile.steps:,} training steps.",) if rows else ()
    return Table(("part", "time", "share", ""), rows, (1, 2), below)


def bar(share: float) -> str:
    """From 0 to 1 as a bar; what is not 0 has at least a thin one."""
    share = fraction(share)
    eighths = max(round(BAR_CELLS * 8 * share), share > 0)
    return BLOCKS[8] * (eighths // 8) + BLOCKS[eighths % 8]


def fraction(value: float) -> float:
    """The value, from 0 to 1: a program can claim any other number, NaN too."""
    return min(value, 1.0) if value > 0 else 0.0


def memory_table(profile: Profile) -> Table:
    """Peaks, and CUDA's allocator."""
    rows = [(f"{peak.name}, peak", size(peak.bytes), "") for peak in profile.peaks]
    for one in profile.allocators:
        rows.append((f"{one.device} allocated", size(one.allocated), "when the program ended"))
        rows.append((f"{one.device} peak", size(one.peak_allocated), "the most at once"))
        rows.append(
            (f"{one.device} reserved", size(one.peak_reserved), "the most taken from the driver")
        )
    below = tuple(f"{peak.name}: {peak.what}" for peak in profile.peaks)
    return Table(("", "bytes", ""), tuple(rows), (1,), below)


def number(value: float | None) -> str:
    """Four digits; nothing for None."""
    return "" if value is None else f"{value:.4g}"


def size(count: int) -> str:
    """`12 B`, `1.5 KiB`, `-3 MiB`."""
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit < len(UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.4g} {UNITS[unit]}"


def time(ms: float) -> str:
    """`12 µs`, `3.4 ms`, `1.2 s`."""
    if ms >= 1000:
        return f"{ms / 1000:.3g} s"
    return f"{ms:.3g} ms" if ms >= 1 else f"{ms * 1000:.3g} µs"


def notes(note: str) -> tuple[str, ...]:
    """A sentence, if there is one."""
    return (note,) if note else ()
