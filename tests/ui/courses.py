"""A course of three lessons, built without files."""

from pathlib import Path

from tensortutor.course.check_file import CheckFile, Declared, Variant
from tensortutor.course.material import Failure, Pane, Prose, Quiz, Step
from tensortutor.course.model import Chapter, Course, Lesson

CHECK_FILE = """\
@mutant("clears the gradients between batches", caught_by=equal)
def accumulate(model, batches, loss_fn):
    clear_and_add(model, batches, loss_fn)


@mutant("weighs every batch alike", caught_by=smaller)
def accumulate(model, batches, loss_fn):
    for inputs, targets in batches:
        (loss_fn(model(inputs), targets) / len(batches)).backward()


def clear_and_add(model, batches, loss_fn):
    for inputs, targets in batches:
        model.zero_grad()
"""
CHECKS = ("equal batches act as one large batch", "a smaller last batch counts for less")
MUTANTS = (
    Variant("clears the gradients between batches", "accumulate", 1, CHECKS[0]),
    Variant("weighs every batch alike", "accumulate", 6, CHECKS[1]),
)
STARTER = '''\
def accumulate(model, batches, loss_fn):
    """Leave the gradient of the mean loss over all samples in .grad."""
    for inputs, targets in batches:
        model.zero_grad()
        loss_fn(model(inputs), targets).backward()
'''
SOLUTION = """\
def accumulate(model, batches, loss_fn):
    total = sum(len(inputs) for inputs, _ in batches)
    model.zero_grad()
    for inputs, targets in batches:
        loss = loss_fn(model(inputs), targets)
        (loss * len(inputs) / total).backward()   # frees this graph
"""
WALK = """\
import torch

w = torch.tensor(3.0, requires_grad=True)
for step in range(3):
    loss = 2 * w              # d(loss)/dw is 2, every time
    loss.backward()
    print(step, w.grad)
"""
PREDICT = """\
import torch

x = torch.tensor(2.0, requires_grad=True)
y = x * x + 3 * x
y.backward()
first = x.grad.item()
"""
INSIGHT = """\
`backward()` does not set `.grad`. It adds to it.

Reverse-mode differentiation adds by nature. When one tensor feeds two
places, its gradient is the sum of what comes back from both. PyTorch keeps
the same rule across calls: every `backward()` is one more use of the
parameter, and its share lands on top of the shares before it.

Two things follow. Forget to clear, and each step walks along the sum of
all gradients so far: the loss still moves, only not where you think. Clear
late, on purpose, and eight small batches act as one large batch that would
never have fitted into memory. See [views](01_shapes.md).
"""
NUMBER = Quiz(
    "number", "What is `first`?", 7.0, "first",
    "`x * x` uses x twice and sends back 2 + 2, `3 * x` sends back 3.", 1,
    wrong=(("4", "That is the share of `x * x` alone."),),
)  # fmt: skip
TRUTH = Quiz(
    "truth", "After `optimizer.zero_grad()`, `x.grad` is a tensor of zeros.", False, "False",
    "It is None: the memory is given back.", 1,
)  # fmt: skip
CHOICE = Quiz(
    "choice", "What does `x.T` give?", "a view", "'a view'", "It shares storage.", 1,
    choices=("a copy", "a view", "an error"),
)  # fmt: skip
SHAPE = Quiz("shape", "The shape of `x.T`?", [3, 2], "x.T.shape", "Reversed.", 1)
TEXT = Quiz("text", "The dtype of `x`?", "torch.float32", "str(x.dtype)", "The default.", 1)
ORDER = Quiz(
    "order", "Put one training step into order.", ["forward", "backward", "step"], "",
    "Gradients come before the step that uses them.", 1, choices=("step", "forward", "backward"),
)  # fmt: skip


def accumulation() -> Lesson:
    """All kinds of steps."""
    return Lesson(
        id="autograd/accumulation",
        title="Gradients accumulate",
        goal="Explain why .grad adds up, and use it on purpose.",
        requires=("tensors/shapes",),
        minutes=12,
        device="any",
        steps=(
            Step("Insight", (Prose(INSIGHT, 1),), 1),
            Step(
                "See it run",
                (
                    Prose("Three identical losses, no clearing in between.", 1),
                    Pane("run", WALK, 1, "0 tensor(2.)\n1 tensor(4.)\n2 tensor(6.)"),
                    Prose("`w` never changed, and neither did the true gradient.", 1),
                ),
                1,
            ),
            Step(
                "Predict",
                (
                    Prose("One tensor, used three times in one expression.", 1),
                    Pane("predict", PREDICT, 1),
                    NUMBER,
                    TRUTH,
                ),
                1,
            ),
            Step(
                "Practice",
                (
                    Prose(
                        "Your model fits 8 samples on the device. The recipe asks for the "
                        "gradient of 256. Write `accumulate`.",
                        1,
                    ),
                    Pane("exercise", STARTER, 1),
                ),
                1,
                ("How many times may the gradients be cleared?", "Weight each batch."),
                SOLUTION,
            ),
            Step(
                "Debugging",
                (
                    Prose("*A second backward through the same graph.*", 1),
                    Failure(
                        "loss.backward()\nloss.backward()",
                        "RuntimeError: Trying to backward through the graph a second time",
                        1,
                    ),
                    Prose("The first pass freed what the graph had saved.", 1),
                ),
                1,
            ),
            Step("In the wild", (Prose("Every large training run does this.", 1),), 1),
        ),
        judge=CheckFile(
            Path("checks/05_autograd/03_accumulation.py"), CHECK_FILE, CHECKS, MUTANTS, ()
        ),
        path=Path("/course/lessons/05_autograd/03_accumulation.md"),
    )


def small(
    id: str, title: str, requires: tuple[str, ...] = (), shows: tuple[str, ...] = ()
) -> Lesson:
    """Questions of the other kinds, then one exercise."""
    return Lesson(
        id=id,
        title=title,
        goal=f"Know what {title.lower()} means.",
        requires=requires,
        minutes=10,
        device="any",
        steps=(
            Step("Insight", (Prose("A tensor has a shape.", 1), CHOICE, SHAPE, TEXT, ORDER), 1),
            Step(
                "Practice",
                (Prose("Write `f`.", 1), Pane("exercise", "def f(x):\n    ...\n", 1)),
                1,
                ("Return it.",),
                "def f(x):\n    return x\n",
            ),
        ),
        judge=CheckFile(
            Path("checks/01_tensors/01_shapes.py"),
            "",
            ("returns x",),
            (),
            (),
            shows=tuple(Declared(id, 1) for id in shows),
        ),
        path=Path(f"/course/lessons/{id}.md"),
    )


def course() -> Course:
    """Shapes opens accumulation, accumulation opens hooks. Hooks is evidence for shapes."""
    shapes = small("tensors/shapes", "Shapes")
    hooks = small("autograd/hooks", "Hooks", ("autograd/accumulation",), ("tensors/shapes",))
    return Course(
        "A course",
        (
            Chapter("tensors", 1, "Tensors", "What a tensor is.", (shapes,)),
            Chapter("autograd", 2, "Autograd", "How gradients flow.", (accumulation(), hooks)),
        ),
        Path("/course"),
    )
