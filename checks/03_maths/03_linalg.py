"""Judges lessons/03_maths/03_linalg.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "What does a network know in its hidden layers?",
    "Fit a linear probe to each",
)

DIAGONAL = (
    "The penalty belongs to each w on its own: lam stands on the diagonal of X^T X and nowhere "
    "else."
)
IN_PLACE = "`*=`, `-=` and names that end in _, `unsqueeze_` too, change the caller's tensor."
STRENGTH = "The formula has lam itself: not its square, not lam times N, and not no lam."


def problem(device, *shape, dtype=torch.float64):
    """Samples (..., N, D), not contiguous, and targets (..., N)."""
    X = torch.randn(*shape[:-1], 2 * shape[-1], dtype=torch.float64, device=device)[..., ::2]
    y = torch.randn(*shape[:-1], dtype=torch.float64, device=device)
    return X.to(dtype), y.to(dtype)


def wanted(X, y, lam):
    """From the singular values, in float64: another way than the task's."""
    U, s, Vh = torch.linalg.svd(X.cpu().double(), full_matrices=False)
    along = (U.mT @ y.cpu().double()[..., None])[..., 0]
    return (Vh.mT @ (s / (s * s + lam) * along)[..., None])[..., 0].to(X.device)


def compare(answer, X, y, lam, tolerance=1e-7, name="w", **hints):
    got = answer.ridge(X, y, lam)
    right = wanted(X, y, lam)
    expect_close(got, right, dtype=X.dtype, rtol=tolerance, atol=tolerance, name=name, **hints)


@check("the gradient is zero at w", holds="w minimises")
def stationary(answer, rng, device):
    n, d = rng.randrange(12, 30), rng.randrange(2, 7)
    X, y = problem(device, n, d)
    lam = rng.uniform(0.5, 0.9)
    with expect_unchanged(X, y, hint=IN_PLACE):
        w = answer.ridge(X, y, lam)
    expect_shape(w, (d,), name="w", hint="A column was added to y, and is to be taken away again.")
    pull = X.mT @ (y - X @ w.double())  # of the data; lam * w holds against it
    off = lam * w - pull
    used = (pull @ w.double() / (w.double() @ w.double())).item()  # the penalty that w answers to
    hint = DIAGONAL
    if off.abs().max() < 1e-4 * pull.abs().max():
        hint = "w is nearly right: digits were lost, in a dtype or by stopping too early."
    elif torch.allclose(used * w.double(), pull):
        hint = f"lam is {lam:.3g}, and this w answers to a penalty of {used:.3g}. {STRENGTH}"
    elif torch.allclose(w.double(), wanted(X - X.mean(0), y - y.mean(), lam)):
        hint = "This w belongs to X and y less their means. The task fits X and y as they are."
    expect_close(off, torch.zeros_like(w), name="X^T (X w - y) + lam w", atol=1e-7, hint=hint)


@check(
    "lam is as strong as the formula says",
    holds=["Setting the gradient to zero leaves a square system", "a number, larger than 0"],
)
def strength(answer, rng, device):
    X, y = problem(device, rng.randrange(8, 15), 4)
    for lam in (rng.uniform(0.05, 0.2), rng.uniform(3, 9), 1000):
        compare(
            answer,
            X,
            y,
            lam,
            name=f"w for lam = {lam:.3g}",
            hint=STRENGTH,
        )


@check(
    "fewer samples than features",
    holds=["more features than you have samples", "N may be smaller than D"],
    side="few samples",
)
def wide(answer, rng, device):
    n = rng.randrange(2, 5)
    X, y = problem(device, n, n + rng.randrange(2, 6))
    compare(
        answer,
        X,
        y,
        rng.uniform(0.2, 2.0),
        hint="Without the penalty there would be many answers, and the shortest of them is not "
        "the ridge answer.",
    )


@check(
    "as many samples as features",
    holds=["for one layer", "with I the identity matrix"],
    side="one layer",
)
def square(answer, rng, device):
    n = rng.randrange(3, 7)
    X, y = problem(device, n, n)
    compare(
        answer,
        X,
        y,
        rng.uniform(0.2, 2.0),
        hint="X is square here, so X X^T fits as well as X^T X, and X y as well as X^T y.",
    )


@check(
    "columns that repeat each other cost no digits",
    holds=[
        "features repeat each other",
        "without inverting anything: put back into the system, w fits up to rounding, "
        "even where columns repeat",
    ],
    side="equal columns",
)
def repeated(answer, rng, device):
    X, _ = problem(device, rng.randrange(10, 15), rng.randrange(3, 6))
    X = torch.cat([X, X[:, :1]], 1)
    y = X @ torch.randn(X.shape[1], dtype=X.dtype, device=device)
    lam = 1e-8
    w = answer.ridge(X, y, lam)
    expect_shape(w, X.shape[1:], name="w")
    A = X.mT @ X + lam * torch.eye(X.shape[1], dtype=X.dtype, device=device)
    b = X.mT @ y
    size = A.norm() * w.norm() + b.norm()
    off = ((A @ w - b).norm() / size).item()
    expect_true(
        off < 1e-12,
        f"put back into its equation, w misses by {off:.0e} of the numbers in it",
        hint="kappa is about 1e10 here. A solver's residual stays near 1e-16 all the same. An "
        "inverse loses about as many digits as kappa has.",
    )


@check(
    "a batch is one system for each leading index",
    holds=["or for a batch of them", "the same leading sizes"],
    side="batch",
)
def batches(answer, rng, device):
    n, d = rng.randrange(5, 9), rng.randrange(2, 5)
    hint = (
        "Each layer has its own X and its own y. Transpose the last two dimensions only, and "
        "give y a column: without it, a batch of vectors reads as one matrix."
    )
    for lead in ((3,), (n,), (d,), (2, 3), (1,)):
        X, y = problem(device, *lead, n, d)
        name = f"w for X of {list(X.shape)}"
        with advising(RuntimeError, hint=hint):
            compare(answer, X, y, 0.5, name=name, hint=hint, shape_hint=hint)


@check("sizes of 1 and 0 work", holds="N and D may be 1, N may be 0.")
def small(answer, rng, device):
    d = rng.randrange(2, 6)
    for shape in ((1, d), (d, 1), (1, 1), (2, 1, 1), (0, d), (2, 0, d)):
        X, y = problem(device, *shape)
        compare(
            answer,
            X,
            y,
            0.5,
            name=f"w for X of {list(shape)}",
            shape_hint="One feature is still a vector of one.",
            hint="Without samples only the penalty speaks: w is 0.",
        )


@check("float32 and float64 stay what they are", holds="w has the dtype and the device of X.")
def dtypes(answer, rng, device):
    hint = "Somewhere a fixed dtype got in. `torch.eye` takes dtype= and device=."
    shape = (rng.randrange(20, 30), 3)
    lam = 20.1  # in float32, this is another number
    X, y = problem(device, *shape, dtype=torch.float32)
    compare(answer, X, y, lam, tolerance=1e-3, dtype_hint=hint)
    X, y = problem(device, *shape)
    expect_dtype(answer.ridge(X, y, lam), torch.float64, name="w", hint=hint)
    compare(answer, X, y, lam, tolerance=1e-10, dtype_hint=hint)


@check("everything is made where X lives", holds="w has the dtype and the device of X.")
def devices(answer, rng, device):
    X, y = problem(torch.device("meta"), 2, 5, rng.randrange(2, 5))
    hint = "A factory that is told no device builds on the CPU. `torch.eye` takes device=X.device."
    try:
        with advising(RuntimeError, saying="device", hint=hint):
            got = answer.ridge(X, y, 0.5)
    except RuntimeError:
        return  # not every solver runs on meta, which has shapes and no numbers
    expect_shape(got, (2, X.shape[2]), name="w for X on the device meta")
    expect_true(got.device.type == "meta", f"w is on {got.device}, X on meta", hint=hint)


@check("X and y are left as they were", holds="X and y stay as they were.")
def unchanged(answer, rng, device):
    X, y = problem(device, 6, 3)
    with expect_unchanged(X, y, hint=IN_PLACE):
        answer.ridge(X, y, 0.5)


def identity(X):
    """The identity that fits X."""
    return torch.eye(X.shape[-1], dtype=X.dtype, device=X.device)


@mutant("adds lam to every entry", caught_by=stationary)
def ridge(X, y, lam):
    return torch.linalg.solve(X.mT @ X + lam, X.mT @ y[..., None])[..., 0]


@mutant("centres X and y first", caught_by=stationary)
def ridge(X, y, lam):
    if X.shape[-2]:
        X, y = X - X.mean(-2, keepdim=True), y - y.mean(-1, keepdim=True)
    A = X.mT @ X + lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("gives y its column for good", caught_by=stationary)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y.unsqueeze_(-1))[..., 0]


@mutant("subtracts the penalty", caught_by=stationary)
def ridge(X, y, lam):
    A = X.mT @ X - lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("ignores lam", caught_by=strength)
def ridge(X, y, lam):
    return torch.linalg.lstsq(X, y[..., None]).solution[..., 0]


@mutant("takes the derivative of the penalty twice", caught_by=stationary)
def ridge(X, y, lam):
    A = X.mT @ X + 2 * lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("leaves the first feature without a penalty", caught_by=stationary)
def ridge(X, y, lam):
    free = identity(X)
    free[0, 0] = 0
    return torch.linalg.solve(X.mT @ X + lam * free, X.mT @ y[..., None])[..., 0]


@mutant("squares lam", caught_by=strength)
def ridge(X, y, lam):
    A = X.mT @ X + lam**2 * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("takes the mean over the samples", caught_by=strength)
def ridge(X, y, lam):
    n = max(X.shape[-2], 1)
    A = X.mT @ X / n + lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None] / n)[..., 0]


@mutant("gives the shortest answer without a penalty", caught_by=wide)
def ridge(X, y, lam):
    if X.shape[-2] >= X.shape[-1]:
        A = X.mT @ X + lam * identity(X)
        return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]
    return (X.mT @ torch.linalg.solve(X @ X.mT, y[..., None]))[..., 0]


@mutant("multiplies X by its transpose", caught_by=square)
def ridge(X, y, lam):
    A = X @ X.mT
    A = A + lam * identity(A)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("does not transpose X on the right", caught_by=square)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return torch.linalg.solve(A, X @ y[..., None])[..., 0]


@mutant("inverts", caught_by=repeated)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return (torch.linalg.inv(A) @ (X.mT @ y[..., None]))[..., 0]


@mutant("uses the pseudo-inverse", caught_by=repeated)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return (torch.linalg.pinv(A) @ (X.mT @ y[..., None]))[..., 0]


@mutant("solves for the inverse", caught_by=repeated)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return (torch.linalg.solve(A, identity(X).expand_as(A)) @ (X.mT @ y[..., None]))[..., 0]


@mutant("solves for all layers together", caught_by=batches)
def ridge(X, y, lam):
    flat, target = X.reshape(-1, X.shape[-1]), y.reshape(-1)
    w = torch.linalg.solve(flat.mT @ flat + lam * identity(X), flat.mT @ target)
    return w.expand(*X.shape[:-2], -1)


@mutant("squeezes", caught_by=small)
def ridge(X, y, lam):
    A = X.mT @ X + lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None]).squeeze()


@mutant("works in float64 and stays there", caught_by=dtypes)
def ridge(X, y, lam):
    X, y = X.double(), y.double()
    A = X.mT @ X + lam * identity(X)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("works in float32", caught_by=dtypes)
def ridge(X, y, lam):
    Z, z = X.float(), y.float()
    A = Z.mT @ Z + lam * identity(Z)
    return torch.linalg.solve(A, Z.mT @ z[..., None])[..., 0].to(X.dtype)


@mutant("makes the identity in float32", caught_by=dtypes)
def ridge(X, y, lam):
    A = X.mT @ X + lam * torch.eye(X.shape[-1], device=X.device)
    return torch.linalg.solve(A, (X.mT @ y[..., None]).to(A.dtype))[..., 0]


@mutant("makes the identity on the CPU", caught_by=devices)
def ridge(X, y, lam):
    A = X.mT @ X + lam * torch.eye(X.shape[-1], dtype=X.dtype)
    return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]


@mutant("scales X in place", caught_by=unchanged)
def ridge(X, y, lam):
    X /= lam**0.5
    w = torch.linalg.solve(X.mT @ X + identity(X), X.mT @ y[..., None])[..., 0]
    return w / lam**0.5


@hinted(1, reaches=square)
def ridge(X, y, lam):
    return torch.linalg.solve(X.mT @ X + lam * torch.eye(X.shape[-1]).to(X), X.mT @ y)


@accepted("Cholesky")
def ridge(X, y, lam):
    A = X.mT @ X
    A.diagonal(dim1=-2, dim2=-1).add_(lam)
    C = torch.linalg.cholesky(A)
    return torch.cholesky_solve(X.mT @ y.unsqueeze(-1), C).squeeze(-1)


@accepted("least squares with the penalty as extra samples")
def ridge(X, y, lam):
    D = X.shape[-1]
    extra = (identity(X) * lam**0.5).expand(*X.shape[:-2], D, D)
    tall = torch.cat([X, extra], -2)
    target = torch.cat([y, y.new_zeros(*y.shape[:-1], D)], -1)
    return torch.linalg.lstsq(tall, target[..., None]).solution[..., 0]


@accepted("through the singular values")
def ridge(X, y, lam):
    U, s, Vh = torch.linalg.svd(X, full_matrices=False)
    along = (U.mT @ y[..., None])[..., 0] * s / (s**2 + lam)
    return (Vh.mT @ along[..., None])[..., 0]


@accepted("through the eigenvalues")
def ridge(X, y, lam):
    s, V = torch.linalg.eigh(X.mT @ X)
    right = torch.einsum("...nd,...n->...d", X, y)
    along = (V.mT @ right[..., None])[..., 0] / (s + lam)
    return (V @ along[..., None])[..., 0]


@accepted("the smaller of the two systems")
def ridge(X, y, lam):
    if X.shape[-2] >= X.shape[-1]:
        A = X.mT @ X + lam * identity(X)
        return torch.linalg.solve(A, X.mT @ y[..., None])[..., 0]
    K = X @ X.mT + lam * identity(X.mT)
    return (X.mT @ torch.linalg.solve(K, y[..., None]))[..., 0]


@accepted("layer by layer")
def ridge(X, y, lam):
    if X.ndim > 2:
        return torch.stack([ridge(x, t, lam) for x, t in zip(X, y, strict=True)])
    return torch.linalg.solve(X.T @ X + lam * identity(X), X.T @ y)
