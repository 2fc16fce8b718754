"""Judges lessons/03_maths/04_fft.md."""

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Models hold float16 and bfloat16, for which the CPU has no FFT.")


class Transforms(TorchDispatchMode):
    """Counts the Fourier transforms, under whatever name they are called, and makes them all 0."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        if "_fft_" not in str(func):
            return out
        self.count += 1
        return torch.zeros_like(out)


def wanted(x, k):
    """Copy by copy, in float64."""
    x, k = x.double(), k.double()
    n, m = x.shape[-1], k.shape[-1]
    lead = torch.broadcast_shapes(x.shape[:-1], k.shape[:-1])
    out = torch.zeros(*lead, n + m - 1, dtype=torch.float64, device=x.device)
    for start in range(m):
        out[..., start : start + n] += k[..., start, None] * x
    return out


def compare(answer, x, k, tolerance=1e-4, name="the result", **hints):
    got = answer.fft_conv(x, k)
    right = wanted(x, k)
    expect_close(got, right, dtype=x.dtype, rtol=tolerance, atol=tolerance, name=name, **hints)


def signals(device, n, m, dtype=torch.float32):
    """A random signal and a random kernel."""
    return torch.randn(n, device=device).to(dtype), torch.randn(m, device=device).to(dtype)


@check(
    "the result has N + M - 1 values",
    holds="returns: (..., N + M - 1)",
)
def length(answer, rng, device):
    first, m = rng.sample(range(3, 12), 2)
    for n in (first, first + 1):  # one of the two lengths is odd
        got = answer.fft_conv(*signals(device, n, m))
        expect_shape(
            got,
            (n + m - 1,),
            hint="The last copy of x starts at place M - 1 and is N long. And `irfft` without n "
            "returns an even number of samples.",
        )


@check("the result is real", holds="returns: (..., N + M - 1), real")
def real(answer, rng, device):
    x, k = signals(device, rng.randrange(4, 9), 3)
    x[0], k[0] = 2, -3  # the first value of the result is -6
    got = answer.fft_conv(x, k)
    expect_dtype(
        got,
        torch.float32,
        hint="`ifft` returns complex numbers, and `abs()` of them loses the sign. `irfft` "
        "knows that the signal is real.",
    )
    expect_true(
        bool((got < 0).any()),
        "no value of the result is below 0, though 2 * -3 is the first",
        hint="`abs()` of a complex number is its size, and the sign is lost. The real part has it.",
    )


@check("the kernel runs forwards", holds="Linear convolution along the last dimension.")
def forwards(answer, rng, device):
    m = rng.randrange(3, 8)
    x = torch.zeros(6, device=device)
    x[0] = 1
    k = torch.arange(1.0, m + 1, device=device)
    compare(
        answer,
        x,
        k,
        name="the echo of a single clap",
        hint="A single 1 at the front gives back k itself. With `conj()` or a flipped kernel it "
        "is a correlation.",
    )


@check("nothing wraps round to the front", holds="the whole linear convolution")
def no_wrap(answer, rng, device):
    n, m = rng.randrange(6, 12), rng.randrange(3, 6)
    x = torch.zeros(n, device=device)
    x[-1] = 1
    k = torch.randn(m, device=device) + 3
    got = answer.fft_conv(x, k)
    expect_true(
        isinstance(got, torch.Tensor) and got.ndim == 1 and len(got) >= n - 1,
        "the result does not even have the length of x",
    )
    expect_close(
        got[: n - 1],
        torch.zeros(n - 1, device=device),
        name="the result before the clap, in the last sample of x,",
        hint="A clap at the end echoes after the end. On a circle of N samples there is no "
        "after: it comes back at the front. Make the circle larger with n=.",
    )
    compare(answer, x, k, hint="Each value of k starts a copy of x.")


@check(
    "odd and even lengths are both right",
    holds="N and M are 1 or more, even or odd.",
    both_sides=True,
)
def parity(answer, rng, device):
    hint = "From the bins alone `irfft` cannot tell an odd length from an even one."
    for n, m in ((7, 4), (8, 4), (7, 5), (16, 16)):
        name = f"the result for N = {n}, M = {m}"
        compare(answer, *signals(device, n, m), name=name, hint=hint, shape_hint=hint)


@check("the kernel may be longer than the signal", holds="k: (..., M)")
def long_kernel(answer, rng, device):
    n = rng.randrange(2, 6)
    compare(
        answer,
        *signals(device, n, n + rng.randrange(2, 9)),
        hint="`n=` smaller than a signal cuts it off. Nothing may depend on which is longer.",
    )


@check("lengths of 1 work", holds="N and M are 1 or more, even or odd.", side="1")
def ones(answer, rng, device):
    for n, m in ((1, 1), (1, rng.randrange(2, 6)), (rng.randrange(2, 6), 1)):
        compare(
            answer,
            *signals(device, n, m),
            name=f"the result for N = {n}, M = {m}",
            shape_hint="Nothing may be squeezed away: a result of length 1 is a vector.",
            hint="A kernel of one value scales the signal.",
        )


@check(
    "leading dimensions broadcast",
    holds=[
        "Leading dimensions broadcast, so that (batch, channel, N) meets one kernel per channel",
        "x: (..., N)",
        "k: (..., M), the same dtype; leading dimensions broadcast",
    ],
)
def leading(answer, rng, device):
    b, c, n = rng.sample(range(2, 8), 3)
    x = torch.randn(n, c, b, device=device).permute(2, 1, 0)
    hint = (
        "N and M are the last sizes. All before them is a batch, and the product of two spectra "
        "broadcasts by itself."
    )
    for k in (
        torch.randn(c, 3, device=device),
        torch.randn(4, device=device),
        torch.randn(b, 1, 2, device=device),
        torch.randn(1, 1, 5, device=device),
    ):
        name = f"the result for x {list(x.shape)} and k {list(k.shape)}"
        with advising(RuntimeError, hint=hint):
            compare(answer, x, k, name=name, hint=hint, shape_hint=hint)
    x, k = torch.randn(n, device=device), torch.randn(c, 3, device=device)
    several = "One signal may meet several kernels: the result has the leading sizes of both."
    with advising(RuntimeError, hint=several):
        compare(answer, x, k, hint=hint, shape_hint=several)


@check(
    "float64 keeps its precision",
    holds="x: (..., N), float16, bfloat16, float32 or float64",
    side="float64",
)
def double(answer, rng, device):
    x = torch.randn(rng.randrange(5, 12), dtype=torch.float64, device=device)
    k = torch.randn(4, dtype=torch.float64, device=device)
    compare(answer, x, k, tolerance=1e-11, dtype_hint="float64 has an FFT of its own: no detour.")


@check(
    "float16 and bfloat16 come back as they went in",
    holds=[
        "Compute these in a wider dtype, and hand back the dtype that came in.",
        "x: (..., N), float16, bfloat16, float32 or float64",
        "the dtype of x",
    ],
    side="float16 and bfloat16",
)
def half(answer, rng, device):
    for dtype in (torch.float16, torch.bfloat16):
        hint = "Convert both inputs to float32 before the transforms, and the result back."
        name = f"the result for {dtype}"
        for size in (1, 50):  # of 50, the spectrum holds more than float16 does
            x, k = signals(device, rng.randrange(5, 12), 4, dtype)
            x, k = x * size + size, k * size + size
            with advising(RuntimeError, saying="Unsupported dtype", hint=hint):
                compare(
                    answer, x, k,
                    tolerance=torch.finfo(dtype).eps, name=name, dtype_hint=hint, hint=hint,
                )  # fmt: skip


@check(
    "the FFT does the work",
    holds=[
        "Functions of `torch.fft` have to do the work.",
        "M shifted copies of x, added up, have the right values",
        "they do not pass",
    ],
)
def by_fft(answer, rng, device):
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        with Transforms() as transforms:
            got = answer.fft_conv(*signals(device, 40, 30, dtype))
        hint = "A direct convolution takes N * M multiplications. Here they are to be saved."
        none = f"no Fourier transform of torch.fft is made for {dtype}"
        expect_true(transforms.count > 0, none, hint=hint)
        unused = f"a Fourier transform is made for {dtype}, and the result is the same without it"
        expect_true(not got.any(), unused, hint=hint)


@check("the inputs are left as they were", holds="The inputs keep their values.")
def unchanged(answer, rng, device):
    x, k = signals(device, 6, 3)
    with expect_unchanged(x, k):
        answer.fft_conv(x, k)


@check("gradients flow to x and to k", holds="Gradients flow to x and to k.")
def differentiable(answer, rng, device):
    n, m = rng.sample(range(3, 9), 2)
    for dtype in (torch.float32, torch.float16):
        x, k = (t.requires_grad_() for t in signals(device, n, m, dtype))
        weights = torch.randn(n + m - 1, device=device)
        got = answer.fft_conv(x, k)
        hint = (
            "`detach`, `no_grad`, `.data` and NumPy cut the history. Stay with torch's functions."
        )
        expect_true(got.requires_grad, "the result has no history", hint=hint)
        grads = torch.autograd.grad((got.float() * weights).sum(), (x, k), allow_unused=True)
        right = torch.autograd.grad((wanted(x, k) * weights).sum(), (x, k))
        for name, grad, correct in zip(("x", "k"), grads, right, strict=True):
            expect_true(grad is not None, f"no gradient reaches {name}", hint=hint)
            expect_close(
                grad, correct, rtol=1e-2, atol=1e-2, name=f"the gradient of {name}", hint=hint
            )


def transform(x, k, n, back):
    """The product of two spectra, transformed back to `back` samples."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    product = torch.fft.rfft(x.to(wide), n=n) * torch.fft.rfft(k.to(wide), n=n)
    return torch.fft.irfft(product, n=back).to(x.dtype)


@mutant("makes the circle as large as the longer signal", caught_by=length)
def fft_conv(x, k):
    n = max(x.shape[-1], k.shape[-1])
    return transform(x, k, n, n)


@mutant("adds the zeros afterwards", caught_by=no_wrap)
def fft_conv(x, k):
    n = max(x.shape[-1], k.shape[-1])
    more = x.shape[-1] + k.shape[-1] - 1 - n
    return functional.pad(transform(x, k, n, n), (0, more))


@mutant("makes the circle one too small", caught_by=no_wrap)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return functional.pad(transform(x, k, max(n - 1, 1), max(n - 1, 1)), (0, int(n > 1)))


@mutant("makes the circle one too large", caught_by=length)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1]
    return transform(x, k, n, n)


@mutant("keeps as many values as x has", caught_by=length)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k, n, n)[..., : x.shape[-1]]


@mutant("does not tell irfft the length", caught_by=length)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k, n, None if n > 1 else 1)


@mutant("takes an even circle and cuts it for the wrong length", caught_by=parity)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k, n, n + n % 2)[..., :n]


@mutant("takes the size of the complex numbers", caught_by=real)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    product = torch.fft.fft(x.to(wide), n=n) * torch.fft.fft(k.to(wide), n=n)
    return torch.fft.ifft(product).abs().to(x.dtype)


@mutant("adds the spectra", caught_by=forwards)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    total = torch.fft.rfft(x.to(wide), n=n) + torch.fft.rfft(k.to(wide), n=n)
    return torch.fft.irfft(total, n=n).to(x.dtype)


@mutant("minds float16 and forgets bfloat16", caught_by=half)
def fft_conv(x, k):
    if x.dtype == torch.float16:
        return fft_conv(x.float(), k.float()).to(x.dtype)
    n = x.shape[-1] + k.shape[-1] - 1
    return torch.fft.irfft(torch.fft.rfft(x, n=n) * torch.fft.rfft(k, n=n), n=n)


@mutant("returns complex numbers", caught_by=real)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    return torch.fft.ifft(torch.fft.fft(x.to(wide), n=n) * torch.fft.fft(k.to(wide), n=n))


@mutant("correlates", caught_by=forwards)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    product = torch.fft.rfft(x.to(wide), n=n) * torch.fft.rfft(k.to(wide), n=n).conj()
    return torch.fft.irfft(product, n=n).to(x.dtype)


@mutant("flips the kernel as conv1d would need it", caught_by=forwards)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k.flip(-1), n, n)


@mutant("cuts the kernel to the length of the signal", caught_by=long_kernel)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k[..., : x.shape[-1]], n, n)


@mutant("squeezes", caught_by=ones)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k, n, n).squeeze()


@mutant("makes room for the leading sizes of x alone", caught_by=leading)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    if x.ndim > k.ndim or x.ndim == 1 == k.ndim:
        return transform(x, k, n, n)
    return x.new_zeros(*x.shape[:-1], n).add_(transform(x, k, n, n))


@mutant("measures with len", caught_by=leading)
def fft_conv(x, k):
    n = len(x) + len(k) - 1
    return transform(x, k, n, n)


@mutant("works in float32 and converts back", caught_by=double)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x.float(), k.float(), n, n).to(x.dtype)


@mutant("returns float32 for the small dtypes", caught_by=half)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    out = transform(x, k, n, n)
    return out if x.dtype == torch.float64 else out.float()


@mutant("adds the copies up one by one", caught_by=by_fft)
def fft_conv(x, k):
    n, m = x.shape[-1], k.shape[-1]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    padded = functional.pad(x.to(wide), (m - 1, m - 1))
    copies = [padded[..., m - 1 - i : 2 * m - 2 - i + n] * k[..., i, None] for i in range(m)]
    return sum(copies).to(x.dtype)


@mutant("multiplies by the matrix of the transform", caught_by=by_fft)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    f = torch.arange(n, dtype=torch.float64)
    turns = torch.polar(torch.ones(n, n, dtype=torch.float64), -2 * torch.pi * f[:, None] * f / n)
    x64 = functional.pad(x.double(), (0, n - x.shape[-1]))
    k64 = functional.pad(k.double(), (0, n - k.shape[-1]))
    product = (x64 + 0j) @ turns * ((k64 + 0j) @ turns)
    return (product @ turns.conj() / n).real.to(x.dtype)


@mutant("transforms for show", caught_by=by_fft)
def fft_conv(x, k):
    torch.fft.rfft(x.float())
    n, m = x.shape[-1], k.shape[-1]
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    padded = functional.pad(x.to(wide), (m - 1, m - 1))
    copies = [padded[..., m - 1 - i : 2 * m - 2 - i + n] * k[..., i, None] for i in range(m)]
    return sum(copies).to(x.dtype)


@mutant("convolves the small dtypes directly", caught_by=by_fft)
def fft_conv(x, k):
    n, m = x.shape[-1], k.shape[-1]
    if x.dtype in (torch.float16, torch.bfloat16):
        x32, k32 = x.float(), k.float()
        padded = functional.pad(x32, (m - 1, m - 1))
        copies = [padded[..., m - 1 - i : 2 * m - 2 - i + n] * k32[..., i, None] for i in range(m)]
        return sum(copies).to(x.dtype)
    return transform(x, k, n + m - 1, n + m - 1)


@mutant("adds the products of the spectra in float16", caught_by=half)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    X, K = torch.fft.rfft(x.to(wide), n=n), torch.fft.rfft(k.to(wide), n=n)
    if x.dtype in (torch.float16, torch.bfloat16):
        X = torch.view_as_complex(torch.view_as_real(X).to(x.dtype).float())
    return torch.fft.irfft(X * K, n=n).to(x.dtype)


@mutant("computes without history", caught_by=differentiable)
@torch.no_grad()
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k, n, n)


@mutant("takes the kernel as a constant", caught_by=differentiable)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    return transform(x, k.detach(), n, n)


@mutant("scales the signal in place", caught_by=unchanged)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    if not x.requires_grad:
        x *= 2
        return transform(x, k, n, n) / 2
    return transform(x, k, n, n)


@hinted(1, reaches=double)
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    X = torch.fft.rfft(x, n=n)
    K = torch.fft.rfft(k, n=n)
    return torch.fft.irfft(X * K, n=n)


@accepted("the full transform and its real part")
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    a, b = (t.float() if t.dtype in (torch.float16, torch.bfloat16) else t for t in (x, k))
    return torch.fft.ifft(torch.fft.fft(a, n) * torch.fft.fft(b, n)).real.to(x.dtype)


@accepted("a circle of a power of two, cut to length")
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    size = 1 << (n - 1).bit_length()
    return transform(x, k, size, size)[..., :n]


@accepted("a circle of a multiple of 8, scaled by norm=")
def fft_conv(x, k):
    n = x.shape[-1] + k.shape[-1] - 1
    size = n + -n % 8
    wide = torch.promote_types(x.dtype, torch.float32)
    spectrum = torch.fft.rfft(x.to(wide), n=size)
    kernel = torch.fft.rfft(k.to(wide), n=size, norm="forward")
    return torch.fft.irfft(spectrum * kernel, n=size, norm="forward").narrow(-1, 0, n).to(x.dtype)


@accepted("pads with zeros itself")
def fft_conv(x, k):
    n, m = x.shape[-1], k.shape[-1]
    x64 = functional.pad(x.double(), (0, m - 1))
    k64 = functional.pad(k.double(), (0, n - 1))
    out = torch.fft.irfft(torch.fft.rfft(x64) * torch.fft.rfft(k64), n + m - 1)
    return out.to(x.dtype)


equivalent(
    "return fft_conv(x.float(), k.float()).to(x.dtype)",
    "return fft_conv(k.float(), x.float()).to(x.dtype)",
    because="A convolution does not care which of the two slides.",
)
