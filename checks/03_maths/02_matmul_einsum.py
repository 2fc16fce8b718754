"""Judges lessons/03_maths/02_matmul_einsum.md."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_true,
    hinted,
    mutant,
)

background(
    "A parser scores every pair of words for every kind of relation.",
    "Is word j the subject of word i",
    "Write bilinear.",
)


class Largest(TorchDispatchMode):
    """Remembers the largest block of memory behind any tensor that is made, in bytes."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self.bytes = max(self.bytes, leaf.untyped_storage().nbytes())
        return out


def problem(device, b, r, q, k, d, e, dtype=torch.float32):
    """The three operands, the queries not contiguous."""
    queries = torch.randn(d, q, b, device=device).permute(2, 1, 0)
    keys = torch.randn(b, k, e, device=device)
    weight = torch.randn(r, d, e, device=device)
    return queries.to(dtype), weight.to(dtype), keys.to(dtype)


def wanted(q, W, k):
    """One text and one relation at a time, in float64."""
    q, W, k = (x.detach().double() for x in (q, W, k))
    texts = [torch.stack([a @ w @ b.mT for w in W]) for a, b in zip(q, k, strict=True)]
    return torch.stack(texts)


def compare(answer, operands, tolerance=1e-4, **hints):
    q = operands[0]
    got = answer.bilinear(*operands)
    right = wanted(*operands)
    expect_close(got, right, dtype=q.dtype, rtol=tolerance, atol=tolerance, **hints)


WHICH_MEET = (
    "d is the last of q and the second of W, e the last of W and the last of k. Those meet: D with "
    "D, E with E, and here no two sizes are equal."
)


def six(rng):
    """B, R, Q, K, D and E, all different."""
    return rng.sample(range(2, 9), 6)


@check(
    "one score for each relation and each pair of places",
    holds="A score for each pair of places and each relation.",
    both_sides=True,
)
def shape(answer, rng, device):
    b, r, q, k, d, e = six(rng)
    with advising(RuntimeError, hint=WHICH_MEET):
        got = answer.bilinear(*problem(device, b, r, q, k, d, e))
    expect_shape(
        got,
        (b, r, q, k),
        hint="b, r, q and k stay, in this order. d and e are added up and disappear.",
    )


@check("a text meets only itself", holds="A sentence meets only itself", side="a sentence")
def texts_apart(answer, rng, device):
    b, r, q, k, d, e = six(rng)
    queries, weight, keys = problem(device, b, r, q, k, d, e)
    before = answer.bilinear(queries, weight, keys)
    expect_shape(before, (b, r, q, k))
    expect_true(
        bool(before.any()),
        "every score is zero",
        hint="The task's formula is two contractions: over d and over e.",
    )
    other, broken = keys.clone(), keys.clone()
    other[1:] += 1
    broken[1:] = torch.nan
    zero = "0 times NaN is NaN: do not multiply with the other texts and cross them out afterwards."
    after = answer.bilinear(queries, weight, other)
    expect_close(
        after[0],
        before[0],
        name="text 0, after the keys of the other texts were changed,",
        rtol=0.0,
        atol=1e-4,
        hint="A letter that is not in the result is added up. The batch needs the same letter in "
        "the queries, in the keys and in the result. And reshape swaps no dimensions: it would "
        "mix the texts, where permute keeps them apart.",
    )
    after = answer.bilinear(queries, weight, broken)
    name = "text 0, after the keys of the other texts became NaN,"
    expect_close(after[0], before[0], name=name, rtol=0.0, atol=1e-4, nan_hint=zero)


@check(
    "each relation uses its own matrix",
    holds=["Each relation has a matrix of its own", "and each relation uses only its own matrix"],
    both_sides=True,
)
def relations_apart(answer, rng, device):
    b, r, q, k, d, e = six(rng)
    hint = "The relation's letter belongs to W and to the result. It must not be added up. And "
    hint += "reshape swaps no dimensions: it would mix the relations, where permute keeps them."
    for chosen in (0, r - 1):
        queries, weight, keys = problem(device, b, r, q, k, d, e)
        before = answer.bilinear(queries, weight, keys)
        expect_shape(before, (b, r, q, k))
        weight = weight.clone()
        weight[chosen] = 0
        got = answer.bilinear(queries, weight, keys)
        expect_shape(got, (b, r, q, k))
        others = [i for i in range(r) if i != chosen]
        expect_close(
            got[:, others],
            before[:, others],
            name=f"the other relations, after the matrix of relation {chosen} became zero,",
            rtol=0.0,
            atol=1e-4,
            hint=hint,
        )
        expect_close(
            got[:, chosen],
            torch.zeros(b, q, k, device=device),
            name=f"relation {chosen}, whose matrix is zero,",
            hint=hint,
        )


@check(
    "D meets the queries and E the keys",
    holds=["W: (R, D, E), one matrix for each relation", "k: (B, K, E)", "q: (B, Q, D)"],
    both_sides=True,
)
def values(answer, rng, device):
    hint = "Row d of a matrix belongs to entry d of the query, column e to entry e of the key."
    operands = problem(device, *six(rng))
    got, right = answer.bilinear(*operands), wanted(*operands)
    if isinstance(got, torch.Tensor) and got.shape == right.shape:
        factor = ((got * right).sum() / (right * right).sum()).item()
        if torch.allclose(got.double(), factor * right, rtol=1e-3, atol=1e-3):
            hint = f"Every score is {factor:.3g} times what the formula says: it scales nothing."
    expect_close(got, right, dtype=torch.float32, rtol=1e-4, atol=1e-4, hint=hint)
    hint = "Row d of a matrix belongs to entry d of the query, column e to entry e of the key."
    queries, weight, keys = problem(device, *six(rng))
    weight = weight.mT.contiguous().mT.requires_grad_()
    compare(answer, (queries, weight, keys.expand(2, *keys.shape)[1]), hint=hint)


@check("equal sizes hide no mistake", holds="A sentence meets only itself", side="equal sizes")
def cube(answer, rng, device):
    n = rng.randrange(3, 6)
    compare(
        answer,
        problem(device, n, n, n, n, n, n),
        hint="All sizes are equal, so a matrix that lies the wrong way round, or a `.T` that "
        "reverses all dimensions where `.mT` swaps two, raises nothing.",
    )


@check("sizes of 1 and 0 stay", holds="All sizes may be 1, Q and K may be 0.")
def small(answer, rng, device):
    n = rng.randrange(2, 6)
    for sizes in ((1, n, 3, 4, 5, 2), (n, 1, 1, 3, 1, 4), (2, 3, n, 1, 4, 1), (1,) * 6):
        compare(
            answer,
            problem(device, *sizes),
            shape_hint="A dimension of size 1 is still a dimension: no squeeze().",
        )
    hint = "A text without words has no pairs: an empty result, of four dimensions."
    for sizes in ((2, n, 0, 3, 4, 5), (2, n, 3, 0, 4, 5)):
        with advising(RuntimeError, hint=hint):
            compare(answer, problem(device, *sizes), shape_hint=hint)


@check(
    "nothing on the way is larger than the result",
    holds=[
        "Texts are long: Q and K are larger than D and E.",
        "Nothing on the way may take more memory than the result.",
    ],
)
def lean(answer, rng, device):
    operands = problem(device, 2, rng.randrange(2, 5), 40, 50, 12, 10)
    with Largest() as most:
        got = answer.bilinear(*operands)
    expect_shape(got, wanted(*operands).shape)
    size = got.numel() * got.element_size()
    expect_true(
        most.bytes <= size,
        f"the result takes {size:,} bytes, the largest tensor on the way {most.bytes:,}",
        hint="`a * b` followed by `sum` stores every product, `@` and `einsum` add as they "
        "multiply. And `einsum` goes from left to right: q and k first have no letter in common "
        "to add up, so W comes between them.",
    )


@check(
    "the result has the dtype and the precision of the inputs",
    holds="the dtype and precision of q",
)
def dtypes(answer, rng, device):
    hint = "Somewhere a fixed dtype got in. The operands agree: leave them as they are."
    sizes = six(rng)
    compare(answer, problem(device, *sizes, torch.float64), tolerance=1e-10, dtype_hint=hint)
    got = answer.bilinear(*problem(device, *sizes, torch.bfloat16))
    expect_dtype(got, torch.bfloat16, hint=hint)


@mutant("puts the relations last", caught_by=shape)
def bilinear(q, W, k):
    return torch.einsum("bqd,rde,bke->bqkr", q, W, k)


@mutant("takes the matrices the wrong way round", caught_by=cube)
def bilinear(q, W, k):
    return torch.einsum("bqd,red,bke->brqk", q, W, k)


@mutant("reverses all dimensions of the keys", caught_by=cube)
def bilinear(q, W, k):
    return q[:, None] @ W @ k.permute(2, 1, 0)[:, None]


@mutant("pairs texts with relations", caught_by=cube)
def bilinear(q, W, k):
    return (q @ W)[:, None] @ k.mT


@mutant("gives the keys a batch of their own", caught_by=texts_apart)
def bilinear(q, W, k):
    return torch.einsum("bqd,rde,cke->brqk", q, W, k)


@mutant("meets all texts, and crosses out the others", caught_by=texts_apart)
def bilinear(q, W, k):
    every = torch.einsum("bqd,rde,cke->bcrqk", q, W, k)
    own = torch.eye(len(q), dtype=q.dtype, device=q.device)
    return torch.einsum("bcrqk,bc->brqk", every, own)


@mutant("adds up the relations", caught_by=relations_apart)
def bilinear(q, W, k):
    out = torch.einsum("bqd,rde,bke->bqk", q, W, k)
    return out[:, None].expand(-1, W.shape[0], -1, -1)


@mutant("uses the first matrix for all", caught_by=relations_apart)
def bilinear(q, W, k):
    W = W[:1].expand_as(W)
    return torch.einsum("bqd,rde,bke->brqk", q, W, k)


@mutant("leaves the matrices out", caught_by=values)
def bilinear(q, W, k):
    n = min(q.shape[2], k.shape[2])
    out = q[..., :n] @ k[..., :n].mT
    return out[:, None].repeat(1, W.shape[0], 1, 1)


@mutant("squeezes", caught_by=small)
def bilinear(q, W, k):
    return torch.einsum("bqd,rde,bke->brqk", q, W, k).squeeze()


@mutant("stores every product", caught_by=lean)
def bilinear(q, W, k):
    products = q[:, None, :, None, :, None] * W[:, None, None] * k[:, None, None, :, None, :]
    return products.sum((-2, -1))


@mutant("stores the products of the second step", caught_by=lean)
def bilinear(q, W, k):
    half = q[:, None] @ W
    return (half[:, :, :, None] * k[:, None, None]).sum(-1)


@mutant("meets queries and keys before the matrices", caught_by=lean)
def bilinear(q, W, k):
    return torch.einsum("bqd,bke,rde->brqk", q, k, W)


@mutant("divides by the root of D, as attention does", caught_by=values)
def bilinear(q, W, k):
    return torch.einsum("bqd,rde,bke->brqk", q, W, k) / q.shape[-1] ** 0.5


@mutant("stacks the places of the queries", caught_by=small)
def bilinear(q, W, k):
    return torch.stack([torch.einsum("bd,rde,bke->brk", x, W, k) for x in q.unbind(1)], 2)


@mutant("works in float32", caught_by=dtypes)
def bilinear(q, W, k):
    return torch.einsum("bqd,rde,bke->brqk", q.float(), W.float(), k.float())


@hinted(1, reaches=lean)
def bilinear(q, W, k):
    half = torch.einsum("bqd,rde->brqe", q, W)
    return torch.einsum("brqe,bke->brqk", half, k)


@accepted("two products with @")
def bilinear(q, W, k):
    return q[:, None] @ W @ k.mT[:, None]


@accepted("the keys first")
def bilinear(q, W, k):
    half = torch.einsum("rde,bke->brdk", W, k)
    return q.unsqueeze(1) @ half


@accepted("contracts with tensordot")
def bilinear(q, W, k):
    half = torch.tensordot(q, W, dims=([2], [1]))  # (B, Q, R, E)
    return half.transpose(1, 2) @ k.mT[:, None]


@accepted("maps over texts and relations")
def bilinear(q, W, k):
    one = torch.vmap(lambda a, w, b: a @ w @ b.mT, in_dims=(None, 0, None))
    return torch.vmap(one, in_dims=(0, None, 0))(q, W, k)


@accepted("relation by relation")
def bilinear(q, W, k):
    return torch.stack([q @ w @ k.transpose(1, 2) for w in W], dim=1)


@accepted("two formulas in other letters")
def bilinear(q, W, k):
    half = torch.einsum("xay,zyw->xzaw", q, W)
    return torch.einsum("xzaw,xcw->xzac", half, k)
