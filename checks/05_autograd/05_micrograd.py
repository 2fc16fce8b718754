"""Judges lessons/05_autograd/05_micrograd.md."""

import itertools
import math
import sys

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Write `Value`, a number that records",
    "What you keep in a node",
    "Two things that a small engine often gets wrong.",
)

shows = ["autograd/chain_rule"]

COMPUTES = "The operations compute as usual. They only write down how."
ADDS = (
    "Each use of a node is a path, and paths add: += where a share arrives. And a node sends after "
    "all its shares have come, not before."
)
ORDER = (
    "A node multiplies what it has and sends it on. It may do so only when all nodes on the "
    "ways from the result to it have sent. Put the nodes behind self in order first."
)


def near(got, right):
    """The two numbers agree."""
    is_number = isinstance(got, (int, float)) and not isinstance(got, bool)
    return is_number and math.isclose(got, right, rel_tol=1e-9, abs_tol=1e-9)


def expect_number(got, right, name, hint):
    if not near(got, right):
        found = f"{got:.9g}" if isinstance(got, (int, float)) else repr(got)
        fail(f"{name} is {found}, it should be {right:.9g}", hint=hint)


def torch_grads(f, numbers):
    """The value and the gradients of f by PyTorch, in float64."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in numbers]
    result = f(*leaves)
    grads = torch.autograd.grad(result, leaves, allow_unused=True)
    return result.item(), [0.0 if g is None else g.item() for g in grads]


def compare(answer, f, text, numbers, hint):
    """The value and the gradients of f, which takes as many Values as there are numbers."""
    leaves = [answer.Value(x) for x in numbers]
    result = f(*leaves)
    value, grads = torch_grads(f, numbers)
    expect_number(result.data, value, f"the value of {text}", COMPUTES)
    result.backward()
    for letter, leaf, x, grad in zip("abcde", leaves, numbers, grads):
        at = ", ".join(f"{n:.3g}" for n in numbers)
        expect_number(leaf.grad, grad, f"d/d{letter} of {text} at {at}", hint)
        expect_number(leaf.data, x, f"the data of {letter}", "backward() leaves the data alone.")


def points(rng, n):
    """Numbers of both signs, none near 0, no two alike."""
    return [rng.uniform(0.3, 1.2) * sign for sign in rng.sample((1, -1, 1, -1), n)]


@check("the values are right, before any backward")
def values(answer, rng, device):
    x, y = points(rng, 2)
    a, b = answer.Value(x), answer.Value(y)
    hint = COMPUTES
    for result, right, text in (
        (a + b, x + y, "a + b"),
        (a * b, x * y, "a * b"),
        (a.tanh(), math.tanh(x), "a.tanh()"),
        ((a * b + a).tanh() * b, math.tanh(x * y + x) * y, "(a * b + a).tanh() * b"),
    ):
        is_value = isinstance(result, answer.Value)
        expect_true(is_value, f"{text} is a {type(result).__name__}, not a Value", hint=hint)
        expect_number(result.data, right, text, hint)
        grads = (a.grad, b.grad)
        expect_true(grads == (0, 0), "a gradient has come before backward()", hint=hint)


@check("a sum passes the gradient on, a product multiplies it")
def locals_(answer, rng, device):
    hint = "For a sum the local derivatives are 1 and 1. For a product each factor gets the other "
    hint += "one's value. The result itself starts with 1."
    p = points(rng, 2)
    compare(answer, lambda a, b: a + b, "a + b", p, hint)
    compare(answer, lambda a, b: a * b, "a * b", p, hint)
    compare(answer, lambda a, b, c: a * b + c, "a * b + c", points(rng, 3), hint)
    compare(answer, lambda a, b, c: (a + b) * c, "(a + b) * c", points(rng, 3), hint)


@check("a node that is used twice gets both shares")
def twice_used(answer, rng, device):
    p = points(rng, 1)
    compare(answer, lambda a: a + a, "a + a", p, ADDS)
    compare(answer, lambda a: a * a, "a * a", p, ADDS)
    compare(answer, lambda a: a * a * a, "a * a * a", p, ADDS)
    compare(answer, lambda a, b: a * b + a, "a * b + a", points(rng, 2), ADDS)


@check("tanh has the derivative 1 - t * t of its own result t")
def tanh(answer, rng, device):
    hint = "t is the result of tanh, and not what went into it."
    compare(answer, lambda a: a.tanh(), "a.tanh()", [rng.uniform(0.5, 2)], hint)
    compare(answer, lambda a: a.tanh(), "a.tanh()", [-rng.uniform(0.5, 2)], hint)
    compare(answer, lambda a: a.tanh().tanh(), "a.tanh().tanh()", points(rng, 1), hint)


@check(
    "a node waits until its gradient is complete",
    holds="Add d self / d leaf to the grad of each leaf behind self.",
    both_sides=True,
)
def complete(answer, rng, device):
    p = points(rng, 2)

    def below(shared, first):
        """A node used at two depths, the shallow use first or last; then a chain below it."""

        def f(a, b):
            h = (a * b).tanh() if shared == "tanh" else a * b
            deep = (h * h + b) * h
            return h + deep if first else deep + h

        return f

    for shared, first in itertools.product(("tanh", "product"), (True, False)):
        text = "h + (h * h + b) * h" if first else "(h * h + b) * h + h"
        compare(answer, below(shared, first), f"{text}, h a {shared} of a and b,", p, ORDER)
    compare(answer, lambda a, b: (a * b + a) * (a * b + a), "(a * b + a) twice", p, ORDER)

    def squared(a, b):
        d = a * b + a
        return d * d

    compare(answer, squared, "d * d, d = a * b + a,", [2.0, 3.0], ORDER)


@check("leaves of equal value are different leaves")
def equal_values(answer, rng, device):
    x = rng.uniform(0.5, 2)
    hint = "A node is itself, and not its number. Tell nodes apart by the object."
    compare(answer, lambda a, b: a * b + b, "a * b + b", [x, x], hint)
    compare(answer, lambda a, b: (a + b) * (b + a) + a, "(a + b) * (b + a) + a", [x, x], hint)


@check(
    "plain numbers may stand on either side",
    holds=["Operands may be Values or plain numbers.", "2 + self works too."],
    both_sides=True,
)
def plain_numbers(answer, rng, device):
    k = rng.randint(2, 9)
    hint = "2 + a calls a.__radd__(2), 2 * a calls a.__rmul__(2). sum() begins with 0 + a."
    cases = {
        f"a + {k}": lambda a: a + k,
        f"{k} + a": lambda a: k + a,
        f"a * {k}": lambda a: a * k,
        f"{k} * a": lambda a: k * a,
        f"a * {k}.5": lambda a: a * (k + 0.5),
        f"-1 * a * a + {k}": lambda a: -1 * a * a + k,
        "sum([a, a * a, 1])": lambda a: sum([a, a * a, 1]),
    }
    for text, f in cases.items():
        with advising(TypeError, hint=hint), advising(AttributeError, hint=hint):
            compare(answer, f, text, points(rng, 1), ADDS)


@check("any expression agrees with PyTorch", forbid=("torch.Tensor.backward",))
def anything(answer, rng, device):
    for _ in range(5):
        plan = [(rng.choice("+*+*t"), rng.random(), rng.random()) for _ in range(14)]

        def f(*leaves, plan=plan):
            nodes = list(leaves)
            for kind, one, other in plan:
                x, y = nodes[int(one * len(nodes))], nodes[int(other * len(nodes))]
                leaf = leaves[int(other * len(leaves))]  # so that no value grows very large
                nodes.append({"+": x + leaf, "*": x * leaf, "t": (x + y).tanh()}[kind])
            return sum(nodes[-4:]).tanh() + nodes[0]

        compare(answer, f, "an expression of 19 operations", points(rng, 3), ORDER)


@check(
    "a chain of 5,000 operations is no deeper than one",
    holds="A loop of a few thousand steps makes a chain of as many nodes",
)
def deep(answer, rng, device):
    a, b = answer.Value(rng.uniform(0.5, 1)), answer.Value(0.5)
    y = a * b
    for _ in range(5000):
        y = y + a
    hint = "One call inside the other, once per node: Python allows about 1000. Keep the nodes "
    hint += "that are still to visit in a list."
    with advising(RecursionError, hint=hint):
        y.backward()
    expect_number(a.grad, 5000.5, "d/da of a * b + a + a + ..., with b = 0.5,", ORDER)


class TooLong(Exception):
    """A call has executed more lines than it may."""


def within(lines, call):
    """The lines of Python that `call` executes, or None if they are more than that many."""
    left = lines

    def tracer(frame, event, arg):
        nonlocal left
        left -= 1
        if left < 0:
            raise TooLong
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    except TooLong:
        return None
    finally:
        sys.settrace(before)
    return lines - left


@check(
    "a shared node is visited once, not once for each path",
    holds="A node that is used many times is visited once in a pass",
)
def paths(answer, rng, device):
    def doubled(n):
        a = answer.Value(1.5)
        x = a
        for _ in range(n):
            x = x + x
        return a, x

    few = within(1_000_000, doubled(3)[1].backward) or 1_000_000  # a tape holds all since the start
    n, most = rng.randint(30, 40), 2 * few + 20_000
    a, x = doubled(n)
    expect_true(
        within(most, x.backward) is not None,
        f"backward() of {n} doublings x = x + x takes more than {most:,} lines",
        hint=f"There are 2**{n} paths from the result to the leaf, and {n + 1} nodes. Remember "
        "which nodes you have met.",
    )
    expect_number(a.grad, 2.0**n, f"d/da of {n} doublings", ADDS)


@check(
    "a second backward adds to the leaves, and to them alone",
    holds=[
        "And `backward()` may come twice.",
        "Gradients of leaves add up over calls, as in PyTorch.",
        "What one pass left in the inner nodes must not be sent again by the next.",
    ],
)
def second(answer, rng, device):
    x, y = points(rng, 2)
    hint = "Leaves add up over calls. But an inner node that still holds the gradient of the "
    hint += "last pass would send it once more: each pass needs sums of its own."

    def first(a, b):
        return (a * b).tanh() * a

    a, b = answer.Value(x), answer.Value(y)
    grads = torch_grads(first, (x, y))[1]
    result = first(a, b)
    for times in (1, 2, 3):
        result.backward()
        name = f"after {times} backward() of one result, d/d"
        expect_number(a.grad, times * grads[0], name + "a", hint)
        expect_number(b.grad, times * grads[1], name + "b", hint)

    a, b = answer.Value(x), answer.Value(y)
    h = (a * b).tanh()
    both = (h * a, h * h + b)
    for result in both:
        result.backward()
    wanted = [torch_grads(lambda a, b, k=k: two(a, b)[k], (x, y))[1] for k in (0, 1)]
    for letter, leaf, one, other in zip("ab", (a, b), *wanted):
        expect_number(leaf.grad, one + other, f"after two results over one h, d/d{letter}", hint)


def two(a, b):
    h = (a * b).tanh()
    return h * a, h * h + b


@check("backward from the middle goes down only")
def middle(answer, rng, device):
    x, y = points(rng, 2)
    a, b, c = answer.Value(x), answer.Value(y), answer.Value(0.5)
    h = a * b
    h * c  # made from h: no concern of h.backward()
    (c + a).tanh()
    h.backward()
    hint = "backward() is about what self was computed from. Results that were computed from self, "
    hint += "and other expressions, have no part in it."
    expect_number(a.grad, y, "d/da of h = a * b", hint)
    expect_number(b.grad, x, "d/db of h = a * b", hint)
    expect_number(c.grad, 0.0, "the grad of c, which h does not depend on,", hint)
    a.backward()
    hint = "A leaf's grad adds up over calls, also where the leaf is the result itself: its 1 is "
    hint += "added to what it has. `self.grad = 1.0` throws that away."
    expect_number(a.grad, y + 1, "after a.backward() of a leaf itself, its grad", hint)


class Engine:
    """A right one, whose parts the mutants replace."""

    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, 0.0, parents

    def of(self, x):
        return x if isinstance(x, Engine) else type(self)(x)

    def __add__(self, other):
        other = self.of(other)
        return type(self)(self.data + other.data, [(self, 1.0), (other, 1.0)])

    def __mul__(self, other):
        other = self.of(other)
        both = [(self, other.data), (other, self.data)]
        return type(self)(self.data * other.data, both)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def tanh(self):
        t = math.tanh(self.data)
        return type(self)(t, [(self, 1 - t * t)])

    def order(self):
        """The nodes behind self, reverse topological, without recursion."""
        done, found, waiting = [], set(), [(self, False)]
        while waiting:
            node, parents_done = waiting.pop()
            if parents_done:
                done.append(node)
            elif node not in found:
                found.add(node)
                waiting.append((node, True))
                waiting += [(parent, False) for parent, _ in node.parents]
        return done[::-1]

    def backward(self):
        order = self.order()
        for node in order:
            if node.parents:
                node.grad = 0.0
        self.grad += 1.0
        for node in order:
            node.send()

    def send(self):
        for parent, local in self.parents:
            parent.grad += self.grad * local


@mutant("assigns the 1 to a leaf that has a gradient", caught_by=middle)
class Value(Engine):
    def backward(self):
        order = self.order()
        for node in order:
            if node.parents:
                node.grad = 0.0
        self.grad = 1.0
        for node in order:
            node.send()


@mutant("adds into its left operand", caught_by=values)
class Value(Engine):
    def __add__(self, other):
        self.data += self.of(other).data
        return self


@mutant("records nothing", caught_by=locals_)
class Value(Engine):
    def __add__(self, other):
        return Value(self.data + self.of(other).data)


@mutant(
    "gives each factor its own value",
    caught_by=locals_,
    misconception="autograd/chain_rule",
    like="multiplies by w",
)
class Value(Engine):
    def __mul__(self, other):
        other = self.of(other)
        return type(self)(self.data * other.data, [(self, self.data), (other, other.data)])


@mutant("starts with the value of the result", caught_by=locals_)
class Value(Engine):
    def backward(self):
        self.grad = self.data
        for node in self.order():
            node.send()


@mutant("overwrites what has arrived", caught_by=twice_used)
class Value(Engine):
    def send(self):
        for parent, local in self.parents:
            parent.grad = self.grad * local


@mutant("takes the input of tanh for its result", caught_by=tanh)
class Value(Engine):
    def tanh(self):
        return type(self)(math.tanh(self.data), [(self, 1 - self.data**2)])


@mutant("sends as soon as a node is met, depth first", caught_by=complete)
class Value(Engine):
    def order(self):
        order, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            if node not in order:
                order.append(node)
                waiting += [parent for parent, _ in node.parents]
        return order


@mutant("sends as soon as a node is met, level by level", caught_by=complete)
class Value(Engine):
    def order(self):
        order = [self]
        for node in order:
            order += [p for p, _ in node.parents if p not in order]
        return order


@mutant("sends all it has at each arrival", caught_by=complete)
class Value(Engine):
    def backward(self):
        self.grad = 1.0
        waiting = [self]
        while waiting:
            node = waiting.pop()
            node.send()
            waiting += [parent for parent, _ in node.parents]


@mutant("knows nodes by their value", caught_by=equal_values)
class Value(Engine):
    def order(self):
        return list({node.data: node for node in super().order()}.values())


@mutant("knows no number on the left", caught_by=plain_numbers)
class Value(Engine):
    __radd__ = None


@mutant("knows no plain numbers", caught_by=plain_numbers)
class Value(Engine):
    def of(self, x):
        return x


@mutant("calls itself for each parent", caught_by=deep)
class Value(Engine):
    def order(self):
        order, found = [], set()

        def visit(node):
            if node not in found:
                found.add(node)
                for parent, _ in node.parents:
                    visit(parent)
                order.append(node)

        visit(self)
        return order[::-1]


@mutant("follows every path on its own", caught_by=paths)
class Value(Engine):
    def backward(self):
        waiting = [(self, 1.0)]
        while waiting:
            node, share = waiting.pop()
            node.grad += share
            waiting += [(parent, share * local) for parent, local in node.parents]


@mutant("sends again what the last pass left", caught_by=second)
class Value(Engine):
    def backward(self):
        self.grad = 1.0
        for node in self.order():
            node.send()


@mutant("clears the leaves as well", caught_by=second)
class Value(Engine):
    def backward(self):
        order = self.order()
        for node in order:
            node.grad = 0.0
        self.grad = 1.0
        for node in order:
            node.send()


@mutant("sends along everything that was ever made", caught_by=middle)
class Value(Engine):
    tape = []  # noqa: RUF012  (shared by all, on purpose)

    def __init__(self, data, parents=()):
        super().__init__(data, parents)
        if not parents:
            self.tape.clear()
        self.tape.append(self)

    def backward(self):
        self.tape[-1].grad = 1.0
        for node in reversed(self.tape):
            node.send()


@hinted(1, reaches=values)
class Value(Engine):
    def backward(self):
        self.grad += 1.0


@accepted("counts the users of each node")
class Value(Engine):
    def backward(self):
        users, waiting = {self: 0}, [self]
        while waiting:
            for parent, _ in waiting.pop().parents:
                if parent not in users:
                    users[parent] = 0
                    waiting.append(parent)
                users[parent] += 1
        received = dict.fromkeys(users, 0.0)
        received[self], ready = 1.0, [self]
        while ready:
            node = ready.pop()
            node.grad += received[node]
            for parent, local in node.parents:
                received[parent] += local * received[node]
                users[parent] -= 1
                if users[parent] == 0:
                    ready.append(parent)


@accepted("keeps a function in each node and raises the recursion limit")
class Value:
    def __init__(self, data, parents=()):
        self.data, self.grad = float(data), 0.0
        self.parents, self.send = parents, lambda: None

    def __add__(self, other):
        other = other if isinstance(other, type(self)) else type(self)(other)
        out = type(self)(self.data + other.data, (self, other))

        def send():
            self.grad += out.grad
            other.grad += out.grad

        out.send = send
        return out

    def __mul__(self, other):
        other = other if isinstance(other, type(self)) else type(self)(other)
        out = type(self)(self.data * other.data, (self, other))

        def send():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out.send = send
        return out

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        e = math.exp(2 * self.data)
        out = type(self)((e - 1) / (e + 1), (self,))

        def send():
            self.grad += (1 - out.data**2) * out.grad

        out.send = send
        return out

    def backward(self):
        order, found = [], set()

        def visit(node):
            if id(node) not in found:
                found.add(id(node))
                for parent in node.parents:
                    visit(parent)
                order.append(node)

        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(100_000)
        visit(self)
        sys.setrecursionlimit(limit)
        for node in order:
            if node.parents:
                node.grad = 0.0
        self.grad += 1.0
        for node in reversed(order):
            node.send()


@accepted("keeps one tape of all that was ever made, and reads it backwards")
class Value:
    tape = []  # noqa: RUF012

    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, 0.0, parents
        self.place = len(self.tape)
        self.tape.append(self)

    def of(self, x):
        return x if isinstance(x, type(self)) else type(self)(x)

    def __add__(self, other):
        other = self.of(other)
        return type(self)(self.data + other.data, [(self, 1), (other, 1)])

    def __mul__(self, other):
        other = self.of(other)
        both = [(self, other.data), (other, self.data)]
        return type(self)(self.data * other.data, both)

    __radd__, __rmul__ = __add__, __mul__

    def tanh(self):
        t = math.tanh(self.data)
        return type(self)(t, [(self, 1 - t**2)])

    def backward(self):
        sums = {self.place: 1.0}
        for place in range(self.place, -1, -1):
            if place in sums:
                node = self.tape[place]
                node.grad += sums[place]
                for parent, local in node.parents:
                    sums[parent.place] = sums.get(parent.place, 0.0) + sums[place] * local


@accepted("clears the inner nodes before it sends")
class Value(Engine):
    pass
