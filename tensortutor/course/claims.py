"""What a lesson claims, and the runs that show whether it is so."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from tensortutor.course.claim_checks import (
    Fault,
    answers,
    caught,
    comes_of,
    completes,
    fails,
    passes,
    prints,
    raises,
    reaches,
    refused,
    rejected,
    reveals,
    seen,
)
from tensortutor.course.fences import CUDA
from tensortutor.course.forbidden_calls import takes_shortcut
from tensortutor.course.jobs import check_job, limits_for, program_job
from tensortutor.course.material import Pane, Quiz, Step, Try
from tensortutor.course.model import Lesson
from tensortutor.course.run_record import Record
from tensortutor.course.steps import PRINTING
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.protocol.jobs import Look as LensLook

NEEDS_CUDA = "it needs a CUDA device"
WRONG_SEEDS = (0, 1, 2)
"""A wrong answer must be caught with each of these: a learner's check uses one seed only."""
ACCEPTED_SHARE = 4
"""An accepted answer passes with a quarter as many seeds as the solution, with seeds of its own.

They are the larger part of what proving a course costs, and the solution has shown by then that
the checks refuse no input.
"""


@dataclass(frozen=True)
class Claim:
    """One thing that a lesson says. fault: what a run shows against it, or None.

    line: in the first of the trial's files, or, if `judge`, in the second.
    """

    line: int
    what: str
    fault: Callable[[Record], Fault | None]
    judge: bool = False


@dataclass(frozen=True)
class Trial:
    """A run, and the claims that it must bear out.

    of: the lesson's id, or "atlas". files: where the claims stand, the lesson and its judge. job:
    None if it cannot be run here; `skipped` says why.
    """

    of: str
    files: tuple[Path, ...]
    job: Job | None
    claims: tuple[Claim, ...]
    skipped: str = ""


def trial_of(lesson: Lesson, job: Job | None, *claims: Claim, skipped: str = "") -> Trial:
    """A trial of a lesson."""
    return Trial(lesson.id, (lesson.path, lesson.judge.path), job, claims, skipped)


def trials(lesson: Lesson, seeds: int, base: Limits, device: str = "cpu") -> Iterator[Trial]:
    """All that `lesson` claims, in the order of its file, then of its check file.

    seeds: how many seeds the solution must pass with; ACCEPTED_SHARE says how many other right
    answers. base: the limits of a run, which the lesson may raise. device: the one that the
    runner uses.
    """
    has_cuda = device.startswith("cuda")
    maker = _Maker(lesson, tuple(range(seeds)), limits_for(lesson, base), has_cuda)
    for step in lesson.steps:
        yield from maker.shown(step)
        yield from maker.looked(step)
        for experiment in step.tries:
            yield maker.tried(step, experiment)
        for failure in step.failures:
            claim = Claim(failure.line, "the error is the one that is shown", raises(failure))
            yield maker.needing(failure.needs, maker.program(failure.source), claim)
    yield from maker.judged(lesson.task)


class _Maker:
    """Makes the trials of one lesson."""

    def __init__(
        self, lesson: Lesson, seeds: tuple[int, ...], limits: Limits, has_cuda: bool
    ) -> None:
        self.lesson = lesson
        self.seeds = seeds
        self.limits = limits
        self.has_cuda = has_cuda
        self.filename = f"{lesson.slug}.py"

    def trial(self, job: Job, *claims: Claim) -> Trial:
        return trial_of(self.lesson, job, *claims)

    def needing(self, needs: str, job: Job, *claims: Claim) -> Trial:
        """A trial of claims that need a device: not made where it is not there."""
        if needs and not self.has_cuda:
            return trial_of(self.lesson, None, *claims, skipped=NEEDS_CUDA)
        return self.trial(job, *claims)

    def looked(self, step: Step) -> Iterator[Trial]:
        """The instruments show what the step's looks say, all of them after one run."""
        pane = step.pane
        for needs in ("", CUDA):
            looks = [look for look in step.looks if pane and (pane.needs or look.needs) == needs]
            if pane is None or not looks:
                continue
            profile = any(look.tab == "profile" for look in looks)
            names = any(look.tab in ("tensors", "modules", "graph", "notes") for look in looks)
            job = replace(self.program(pane.source), look=LensLook(names, names, profile))
            claims = (
                Claim(look.line, f"{look.place} shows {look.expect!r}", seen(look, pane))
                for look in looks
            )
            yield self.needing(needs, job, *claims)

    def tried(self, step: Step, experiment: Try) -> Trial:
        """The edited program does what the experiment says."""
        assert step.pane is not None  # a try without a program was reported when it was read
        job = self.program(experiment.edited(step.pane.source))
        said = experiment.say.split("\n")[0]
        claim = Claim(experiment.line, f"the experiment {said!r} ends so", comes_of(experiment))
        return self.needing(step.pane.needs or experiment.needs, job, claim)

    def program(self, source: str, probes: tuple[str, ...] = ()) -> Job:
        job = program_job(self.lesson, source, self.filename, self.limits, probes=probes)
        return replace(job, scratch="")  # what one pane left behind must not help another

    def check(self, source: str, seeds: tuple[int, ...], variant: str = "") -> Job:
        """Several seeds in one run get the time of as many runs."""
        limits = replace(self.limits, wall_s=self.limits.wall_s * len(seeds))
        job = check_job(
            self.lesson, source, self.filename, limits=limits, seeds=seeds, variant=variant
        )
        return replace(job, scratch="")

    def shown(self, step: Step) -> Iterator[Trial]:
        """The step's program does what the text says, and its quizzes' proofs hold."""
        pane = step.pane
        shown = pane is not None and pane.kind in PRINTING
        source = pane.source if pane is not None and shown else "import torch\n"
        needs = pane.needs if pane is not None and shown else ""
        for device in ("", CUDA):
            quizzes = tuple(quiz for quiz in step.quizzes if (needs or quiz.needs) == device)
            claims = list(self._proofs(quizzes))
            if pane is not None and shown:
                claims[:0] = self._shown(pane, device)
            if claims:
                proofs = tuple(quiz.proof for quiz in quizzes)
                yield self.needing(device, self.program(source, proofs), *claims)
        if pane is not None and pane.kind == "fix":
            claim = Claim(pane.line, "the program to fix fails", fails)
            yield self.trial(self.program(pane.source), claim)

    def judged(self, task: Step) -> Iterator[Trial]:
        """The starter fails, the solution passes, variants and shortcuts are told apart."""
        pane = task.pane
        if pane is None or task.solution is None:
            return  # a lesson without them was reported when it was read
        judge, solution = self.lesson.judge, self.lesson.solution
        starter = Claim(pane.line, "the starter fails a check", rejected)
        yield self._wrong(starter, self.lesson.program(pane.source), judge.checks)
        yield self._right(task.solution_line, "the solution", solution, self.seeds)
        for mutant in judge.mutants:
            what = f"the mutant {mutant.name!r} is caught by {mutant.caught_by!r}"
            if mutant.like and mutant.misconception in {shown.text for shown in judge.shows}:
                what += f", which is evidence for {mutant.misconception}"
            claim = Claim(mutant.line, what, caught(mutant.caught_by), judge=True)
            yield self._wrong(claim, solution, (mutant.caught_by,), mutant.name)
        for index, other in enumerate(judge.accepted):
            what = f"the accepted answer {other.name!r}"
            yield self._right(other.line, what, solution, self._others(index), other.name)
        for answer in judge.hinted:
            what = f"the answer that {answer.name} passes {answer.reaches!r}"
            claim = Claim(answer.line, what, reaches(answer.reaches, judge.checks), judge=True)
            yield self.trial(self.check(solution, self._others(0), answer.name), claim)
        for shortcut in judge.shortcuts:
            for path in shortcut.forbids:
                holds = refused(shortcut.check, path)
                claim = Claim(shortcut.line, f"the shortcut {path} is refused", holds, judge=True)
                job = self.check(takes_shortcut(solution, path), (0,))
                yield self.trial(_until(job, (shortcut.check,)), claim)

    def _wrong(self, claim: Claim, source: str, until: tuple[str, ...], variant: str = "") -> Trial:
        """A wrong answer: `until` one of these checks fails with every seed, all are tried."""
        return self.trial(_until(self.check(source, WRONG_SEEDS, variant), until), claim)

    def _others(self, index: int) -> tuple[int, ...]:
        """Seeds of the right answer `index`, from 0, beside the solution: none has them twice."""
        count = -(-len(self.seeds) // ACCEPTED_SHARE)
        first = len(self.seeds) + index * count
        return tuple(range(first, first + count))

    def _right(
        self, line: int, what: str, source: str, seeds: tuple[int, ...], variant: str = ""
    ) -> Trial:
        """A right answer, with all seeds in one run. A variant stands in the check file."""
        # Lines of a program that goes on with another lesson's are not those of the fence.
        elsewhere = variant or self.lesson.continued is not None
        holds = passes(0 if elsewhere else line)
        count = f"{len(seeds)} seed{'s' if len(seeds) != 1 else ''}"
        claim = Claim(line, f"{what} passes with {count}", holds, bool(variant))
        return self.trial(self.check(source, seeds, variant), claim)

    def _shown(self, pane: Pane, needs: str) -> Iterator[Claim]:
        """What the program's run shows, as far as it needs this device to be proved."""
        if pane.needs == needs:
            printed = pane if pane.output_needs in ("", pane.needs) else replace(pane, output=None)
            yield self._shows(printed)
        elif needs and pane.output_needs == needs:
            yield self._shows(pane)

    def _shows(self, pane: Pane) -> Claim:
        if pane.kind == "predict" and pane.output is None:
            return Claim(pane.line, "the run reveals what was asked", reveals(pane))
        if pane.output is None:
            return Claim(pane.line, "the program ends without an error", completes(pane))
        return Claim(pane.line, "the program prints what is shown", prints(pane))

    def _proofs(self, quizzes: tuple[Quiz, ...]) -> tuple[Claim, ...]:
        return tuple(self._proof(quiz, index) for index, quiz in enumerate(quizzes))

    def _proof(self, quiz: Quiz, index: int) -> Claim:
        ask = quiz.ask.split("\n")[0]
        return Claim(quiz.line, f"the answer to {ask!r} holds", answers(quiz, index))


def _until(job: Job, checks: tuple[str, ...]) -> Job:
    """The job, ended when one of these checks has failed with every seed."""
    assert job.judge is not None
    return replace(job, judge=replace(job.judge, every=True, until=checks))
