"""What the host asks a worker to do."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one run may use. A lesson may raise them, a learner may set them."""

    wall_s: float = 60.0
    memory_bytes: int = 8 << 30
    processes: int = 64
    file_bytes: int = 1 << 30
    output_bytes: int = 5_000_000


@dataclass(frozen=True)
class Judge:
    """The check file to put to the program, as text.

    seeds: each check runs once per seed, and fails with the first that it fails on. checks: the
    names that must all report for the judging to count; () for whatever reports. variant: the
    name of a mutant or an accepted alternative of the check file that replaces the program's
    function of the same name (the author's gate uses it), or "".

    every: of wrong answers: a check fails only if it fails with every seed. until: the judging
    ends as soon as one of these checks has failed; those behind it do not report.
    """

    source: str
    filename: str
    seeds: tuple[int, ...] = (0,)
    checks: tuple[str, ...] = ()
    variant: str = ""
    every: bool = False
    until: tuple[str, ...] = ()


@dataclass(frozen=True)
class Look:
    """What the lens is to look at (see protocol/lens.py).

    trace: lines and broadcasting. names: tensors, modules, optimizers, the autograd graph. profile:
    time and memory; the program runs slower under it. What is off is neither imported nor run.
    everything: lines are followed in all their executions, not only in the first ones.
    """

    trace: bool = False
    names: bool = False
    profile: bool = False
    everything: bool = False


@dataclass(frozen=True)
class Job:
    """A program to run, and what to do with its names afterwards.

    filename: as the learner knows it, without folders. probes: quiz proofs, evaluated in the
    program's namespace when it has run. judge: checks to put to it. scratch: a name (an id, safe
    as a folder's name) under which files survive from one run to the next; "" for none. ranks:
    run it as that many cooperating processes (0: as one, as ever). device: the one that this job
    needs, whatever the learner chose; "" for theirs. look: what the lens is to report at the end.
    types: report the types of the program's names (see protocol/assist.py). folder: where the
    program lies and works, absolute, and whose modules it may import; "" for its scratch folder.
    """

    source: str
    filename: str = "program.py"
    arguments: tuple[str, ...] = ()
    scratch: str = ""
    probes: tuple[str, ...] = ()
    judge: Judge | None = None
    ranks: int = 0
    device: str = ""
    limits: Limits = Limits()
    look: Look = Look()
    types: bool = False
    folder: str = ""
