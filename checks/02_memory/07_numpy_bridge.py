"""Judges lessons/02_memory/07_numpy_bridge.md."""

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

shows = ["memory/views_copies"]

background(
    "Write the two conversions that a project needs once",
    "a.dtype.kind is a letter",
    "a.astype(d) is a new array of dtype d",
    "t.detach() is t without its record for gradients",
)

OWN = "`from_numpy`, `as_tensor`, `.float()`, `.to()` copy only if they must. What copies always?"
OUT = "`detach()`, `cpu()` and `numpy()` all stay in the same block when they can. Copy at the end."


class Remote(torch.Tensor):
    """A stand-in for a GPU's tensor: it says so, and has to come to the CPU before numpy()."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = func.__name__
        if name == "__get__":
            found = getattr(func.__self__, "__name__", "")
            if found in ("device", "is_cuda", "is_cpu"):
                return {"device": torch.device("cuda:0"), "is_cuda": True}.get(found, False)
        forced = name == "numpy" and (kwargs.get("force") or args[1:] == (True,))
        if name in ("numpy", "__array__") and not forced:
            message = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy "
            raise TypeError(message + "the tensor to host memory first.")
        places = [str(place) for place in (*args[1:], *kwargs.values())]
        if name == "cpu" or forced or (name == "to" and "cpu" in places):
            plain = [a.as_subclass(torch.Tensor) if isinstance(a, Remote) else a for a in args]
            with torch._C.DisableTorchFunctionSubclass():
                result = func(*plain, **kwargs)
                same = isinstance(result, torch.Tensor) and result is plain[0]
                return result.clone() if same else result
        return super().__torch_function__(func, types, args, kwargs)


REVERSED = "PyTorch has no negative strides. A copy made by NumPy lays the numbers out anew."
KINDS = {
    "f": (torch.float32, "NumPy's floats are float64 by default. Models are float32."),
    "i": (torch.int64, "Labels and indices are int64, whatever the width of the ints."),
    "u": (torch.int64, "Unsigned ints of every width become int64, too."),
    "b": (torch.bool, "A mask of 0 and 1 picks positions 0 and 1 when it indexes."),
}
STAYS = "The array is what the tensor is: nothing is converted but bfloat16."
BRAIN = "NumPy has no bfloat16. float32 holds each of its values exactly."
RECORD = "NumPy cannot record gradients, so PyTorch wants to hear that you know: `detach()`."


def tensor_of(answer, a):
    """What to_tensor makes of the array."""
    with advising(ValueError, saying="negative", hint=REVERSED):
        return answer.to_tensor(a)


def array_of(answer, t):
    """What to_numpy makes of the tensor."""
    with (
        advising(TypeError, saying="BFloat16", hint=BRAIN),
        advising(RuntimeError, saying="requires grad", hint=RECORD),
        advising(RuntimeError, saying="detach", hint="t is the caller's, and stays what it is. "
                 "`detach()`, without the underscore, makes another tensor."),
        advising(TypeError, saying="cuda", hint="NumPy reads the CPU's memory alone. `cpu()` "
                 "brings a tensor there."),
    ):  # fmt: skip
        return answer.to_numpy(t)


def expect_tensor_of(answer, a, hint=""):
    """The values of the array, in the dtype that the task wants for it."""
    dtype, dtype_hint = KINDS[a.dtype.kind]
    wanted = torch.tensor(a.tolist(), dtype=dtype).reshape(a.shape)
    name = f"the tensor of an array {a.shape} of {a.dtype}"
    expect_equal(
        tensor_of(answer, a), wanted, name=name, hint=hint, shape_hint=hint, dtype_hint=dtype_hint
    )


def expect_array(got, wanted, name, dtype_hint=STAYS):
    """An array of exactly this shape, dtype and these values."""
    kind = type(got).__name__
    expect_true(isinstance(got, np.ndarray), f"{name} is of type {kind}, an array is wanted")
    wanted = wanted.detach().cpu()
    shape, dtype = tuple(wanted.shape), str(wanted.dtype).removeprefix("torch.")
    sizes = "Every dimension of t is a dimension of the array, and () stays ()."
    expect_true(got.shape == shape, f"{name} has the shape {got.shape}, not {shape}", hint=sizes)
    message = f"{name} is of dtype {got.dtype}, {dtype} is wanted"
    expect_true(str(got.dtype) == dtype, message, hint=dtype_hint)
    values = torch.tensor(got.tolist(), dtype=wanted.dtype).reshape(shape)
    expect_equal(values, wanted, name=name, hint=STAYS)


def numbers(rng, *shape):
    """An array of float64 with values that float32 cannot hold exactly."""
    count = int(np.prod(shape))
    return np.array([rng.gauss(0, 100) for _ in range(count)]).reshape(shape)


@check(
    "floats arrive as float32",
    holds=["float32 for floats", "array of floats, ints or bools"],
    side="floats",
)
def floats(answer, rng, device):
    n = rng.randint(2, 9)
    for dtype in (np.float64, np.float32, np.float16):
        expect_tensor_of(answer, numbers(rng, n, 3).astype(dtype))


@check(
    "ints arrive as int64, with every digit",
    holds=["int64 for ints", "array of floats, ints or bools"],
    side="ints",
)
def ints(answer, rng, device):
    n = rng.randint(2, 9)
    hint = (
        "A float32 on the way has 24 bits for digits, an int32 has 32 bits. Large ints need more."
    )
    for dtype in (np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint16):
        top = min(np.iinfo(dtype).max, 2**60)
        values = [rng.randint(top // 2, top) for _ in range(n)]
        expect_tensor_of(answer, np.array(values, dtype=dtype), hint)


@check("bools stay bools", holds=["bool for bools", "array of floats, ints or bools"], side="bools")
def bools(answer, rng, device):
    a = np.array([rng.random() < 0.5 for _ in range(12)]).reshape(3, 4)
    expect_tensor_of(answer, a)


@check(
    "writing to the array later does not change the tensor",
    holds=["Neither shares memory, whatever comes in.", "with a's values, in a block of its own"],
    side="to_tensor",
)
def own_block(answer, rng, device):
    n = rng.randint(3, 9)
    for dtype in (np.float32, np.int64, np.bool_, np.float64, np.uint8):
        a = np.ones((n, 2), dtype=dtype)
        got = tensor_of(answer, a)
        a[...] = 0
        changed = f"an array of {a.dtype} was filled with 0, and the tensor changed with it"
        expect_true(bool((got == 1).all()), changed, hint=OWN)


@check(
    "writing to the tensor does not change the array",
    holds="Neither shares memory, whatever comes in.",
    side="to_tensor",
)
def array_untouched(answer, rng, device):
    n = rng.randint(3, 9)
    for a in (np.ones((n, 2), dtype=np.float32), np.ones((2, n), dtype=np.int64).T):
        tensor_of(answer, a).zero_()
        said = f"the tensor was filled with 0, and the array of {a.dtype} changed with it"
        expect_true(bool((a == 1).all()), said, hint=OWN)


@check("reversed arrays keep their order", holds="sliced, transposed, reversed")
def backwards(answer, rng, device):
    m, n = rng.randint(2, 6), rng.randint(2, 6)
    hint = "Each place of the tensor holds what NumPy shows at that place, read backwards or not."
    for dtype in (np.float64, np.float32, np.int64):
        a = (100 * numbers(rng, m, n)).astype(dtype)
        for view in (a[::-1], a[:, ::-1], a[::-1, ::-1], a[::-1].T):
            expect_tensor_of(answer, view, hint)


@check(
    "any layout and any shape will do",
    holds=[
        "Any shape, () too; any layout: sliced, transposed",
        "reversed, read-only, a field of records",
    ],
)
def layouts(answer, rng, device):
    m, n = rng.sample(range(2, 8), 2)
    a = numbers(rng, m, n).astype(np.float32)
    locked = a.copy()
    locked.flags.writeable = False
    hint = "Values and shape are those that NumPy shows, however the block is laid out."
    for view in (a.T, a[:, ::2], a[1:, :1], np.asfortranarray(a), locked, a[:0], a[:1, :1]):
        expect_tensor_of(answer, view, hint)
    expect_tensor_of(answer, np.broadcast_to(a[0], (3, n)), hint)
    records = np.zeros(m, dtype=[("key", np.int8), ("value", np.float32)])
    records["value"] = a[:, 0]
    expect_tensor_of(answer, records["value"], hint)
    hint = "An array of shape () holds one number, and so does a tensor of shape ()."
    expect_tensor_of(answer, np.array(rng.gauss(0, 1)), hint)
    expect_tensor_of(answer, np.array(rng.randint(0, 99)), hint)


@check(
    "shape, dtype and values come back to NumPy",
    holds=["array of t's shape and dtype", "tensor of any shape, () too"],
)
def comes_back(answer, rng, device):
    m, n = rng.sample(range(2, 8), 2)
    x = 100 * torch.randn(m, n, device=device)
    for dtype in (torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8):
        t = x.abs().to(dtype)
        expect_array(array_of(answer, t), t, f"the array of a tensor of {t.dtype}")
    for t in (x > 0, x.T, x[:, ::2], x[:0], x[0, 0]):
        expect_array(array_of(answer, t), t, f"the array of a tensor {list(t.shape)}")


@check(
    "writing to the tensor later does not change the array",
    holds=["Neither shares memory, whatever comes in.", "with t's values, in a block of its own"],
    side="to_numpy",
)
def array_of_its_own(answer, rng, device):
    n = rng.randint(3, 9)
    for dtype in (torch.float32, torch.int64, torch.bool, torch.bfloat16):
        t = torch.ones(n, 2, dtype=dtype, device=device)
        got = array_of(answer, t)
        t.zero_()
        said = f"a tensor of {t.dtype} was filled with 0, and the array changed with it"
        expect_true(bool((got == 1).all()), said, hint=OUT)


@check(
    "writing to the array does not change a tensor",
    holds="Neither shares memory, whatever comes in.",
    side="to_numpy",
)
def tensor_untouched(answer, rng, device):
    t = torch.randn(rng.randint(3, 9), device=device)
    with expect_unchanged(t, hint=OUT):
        array_of(answer, t)[...] = 0
    wide = torch.randn(1, 3, device=device).expand(4, 3)
    got = array_of(answer, wide)
    got[0] = 99.0
    said = "writing to one row of the array of an expanded tensor changed the others"
    expect_true(bool((got[1:] != 99).all()), said, hint=OUT)


@check(
    "bfloat16 leaves as float32",
    holds=["bfloat16 does not exist in NumPy", "float32 for bfloat16"],
)
def brain(answer, rng, device):
    t = torch.randn(rng.randint(2, 9), 3, device=device).to(torch.bfloat16)
    expect_array(array_of(answer, t), t.float(), "the array of a bfloat16 tensor", BRAIN)


@check("tensors that require a gradient can leave", holds="it may require a gradient")
def with_gradient(answer, rng, device):
    n = rng.randint(2, 9)
    leaf = torch.randn(n, device=device, requires_grad=True)
    weight = torch.nn.Parameter(leaf.detach().clone())
    for t in (leaf, leaf * 2, leaf.to(torch.bfloat16).float(), weight):
        expect_array(array_of(answer, t), t, "the array of a tensor with a gradient")
    hint = "`detach()` gives another tensor. `requires_grad_(False)` changes the caller's."
    expect_true(leaf.requires_grad, "the tensor no longer requires a gradient", hint=hint)


@check("tensors on a GPU can leave", holds="on any device")
def from_gpu(answer, rng, device):
    values = torch.randn(rng.randint(2, 9), 2)
    for t in (values, values.to(torch.bfloat16), values > 0):
        remote = t.clone().as_subclass(Remote)
        wanted = t.float() if t.dtype == torch.bfloat16 else t
        expect_array(array_of(answer, remote), wanted, "the array of a GPU's tensor")


def numpy_dtype(a):
    """What the task wants, as NumPy's dtype."""
    return {"f": np.float32, "i": np.int64, "u": np.int64, "b": np.bool_}[a.dtype.kind]


@mutant("makes float32 of everything", caught_by=ints)
def to_tensor(a):
    return torch.from_numpy(a.astype(np.float32))


@mutant("keeps float64", caught_by=floats)
def to_tensor(a):
    return torch.tensor(a.copy())


@mutant("converts float64 and leaves other floats", caught_by=floats)
def to_tensor(a):
    return torch.from_numpy(a.astype(np.float16 if a.dtype == np.float16 else numpy_dtype(a)))


@mutant("forgets the unsigned", caught_by=ints)
def to_tensor(a):
    return torch.from_numpy(a.astype(a.dtype if a.dtype.kind == "u" else numpy_dtype(a)))


@mutant("counts bools among the ints", caught_by=bools)
def to_tensor(a):
    return torch.from_numpy(a.astype(np.float32 if a.dtype.kind == "f" else np.int64))


@mutant(
    "shares where the dtype fits",
    caught_by=own_block,
    misconception="memory/views_copies",
    like="converts to the dtype that it has",
)
def to_tensor(a):
    if min(a.strides, default=0) < 0 or not a.flags.writeable:
        a = a.copy()
    return torch.from_numpy(a).to(torch.from_numpy(np.zeros(0, numpy_dtype(a))).dtype)


@mutant("uses as_tensor", caught_by=array_untouched)
def to_tensor(a):
    dtype = torch.from_numpy(np.zeros(0, numpy_dtype(a))).dtype
    return torch.as_tensor(np.asarray(a, order="C"), dtype=dtype)


@mutant("lets PyTorch copy a reversed array", caught_by=backwards)
def to_tensor(a):
    return torch.tensor(a, dtype=torch.from_numpy(np.zeros(0, numpy_dtype(a))).dtype)


@mutant("makes a vector of a single number", caught_by=layouts)
def to_tensor(a):
    return torch.from_numpy(np.array(np.ascontiguousarray(a), dtype=numpy_dtype(a)))


@mutant("reads the block instead of the array", caught_by=layouts)
def to_tensor(a):
    plain = np.array(a, dtype=numpy_dtype(a), order="K")
    return torch.from_numpy(plain.ravel(order="K").reshape(a.shape))


@mutant("hands out the tensor's block", caught_by=array_of_its_own)
def to_numpy(t):
    t = t.detach().cpu()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy()


@mutant("copies only what is converted", caught_by=tensor_untouched)
def to_numpy(t):
    t = t.detach().cpu()
    return t.float().numpy().copy() if t.dtype == torch.bfloat16 else t.contiguous().numpy()


@mutant("makes float32 of all", caught_by=comes_back)
def to_numpy(t):
    return t.detach().cpu().float().numpy().copy()


@mutant("has never met bfloat16", caught_by=brain)
def to_numpy(t):
    return t.detach().cpu().numpy().copy()


@mutant("forgets the record for gradients", caught_by=with_gradient)
def to_numpy(t):
    t = t.cpu()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy().copy()


@mutant("stays on the device", caught_by=from_gpu)
def to_numpy(t):
    t = t.detach()
    return (t.float() if t.dtype == torch.bfloat16 else t).numpy().copy()


@mutant("hands every layout to PyTorch before it copies", caught_by=layouts)
def to_tensor(a):
    if min(a.strides, default=0) < 0:
        a = a.copy()
    t = torch.from_numpy(a).clone()
    if t.is_floating_point():
        return t.to(torch.float32)
    return t if t.dtype == torch.bool else t.to(torch.int64)


@hinted(1, reaches=layouts)
def to_tensor(a):
    wanted = {"f": np.float32, "i": np.int64, "u": np.int64, "b": np.bool_}[a.dtype.kind]
    return torch.from_numpy(a.astype(wanted))


@accepted("copies with np.array")
def to_tensor(a):
    return torch.from_numpy(np.array(a, dtype=numpy_dtype(a), copy=True))


@accepted("copies twice, with copy and tensor")
def to_tensor(a):
    t = torch.tensor(a.copy())
    if t.is_floating_point():
        return t.to(torch.float32)
    return t if t.dtype == torch.bool else t.to(torch.int64)


@accepted("forces and copies")
def to_numpy(t):
    if t.dtype == torch.bfloat16:
        t = t.to(torch.float32)
    return t.numpy(force=True).copy()


@accepted("copies on PyTorch's side")
def to_numpy(t):
    if t.is_cuda:
        t = t.to("cpu")
    t = t.detach().clone(memory_format=torch.contiguous_format)
    return t.to(torch.float32).numpy() if t.dtype is torch.bfloat16 else t.numpy()
