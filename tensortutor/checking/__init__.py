"""What a check file imports: the declarations and the expectations.

    from tensortutor.checking import check, mutant, accepted, expect_close

A check is a function `(answer, rng, device)`. `answer` is the learner's program: its functions
and classes as attributes, and `.source`, `.output`, `.calls`. `rng` is a `random.Random` of the
run's seed; torch's global generator is seeded from it before each check. `device` is the
`torch.device` that the learner chose.
"""

from tensortutor.checking.answer import Answer, recorded
from tensortutor.checking.declare import (
    accepted,
    background,
    check,
    equivalent,
    hinted,
    key_line_shown,
    mutant,
)
from tensortutor.checking.expect import (
    Unmet,
    advising,
    expect_close,
    expect_copy,
    expect_dtype,
    expect_equal,
    expect_raises,
    expect_shape,
    expect_true,
    expect_unchanged,
    expect_view,
    fail,
)

__all__ = [
    "Answer",
    "Unmet",
    "accepted",
    "advising",
    "background",
    "check",
    "equivalent",
    "expect_close",
    "expect_copy",
    "expect_dtype",
    "expect_equal",
    "expect_raises",
    "expect_shape",
    "expect_true",
    "expect_unchanged",
    "expect_view",
    "fail",
    "hinted",
    "key_line_shown",
    "mutant",
    "recorded",
]
