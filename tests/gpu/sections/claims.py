"""What the course claims of CUDA, which a machine without a card cannot prove.

Keeps what programs of lessons that need a card print there: `python -m tests.gpu.record` writes
it into the course, for readers without a card.
"""

from tensortutor.course.atlas import check_atlas
from tensortutor.course.atlas_claims import atlas_trials, keeps_columns, lacking
from tensortutor.course.catalog import find_course, read_course
from tensortutor.course.cuda_outputs import key_of, programs_for_cuda
from tensortutor.course.jobs import program_job
from tensortutor.course.model import Course
from tensortutor.course.verify import Broken, Skipped, prove
from tensortutor.runner import Runner
from tests.gpu.kit import Kit, run_job

TWO_CARDS = (
    "NCCL over two cards: all-reduce, time-outs, DDP and FSDP with one card a rank",
    "a copy from card to card, and a program whose tensors lie on two cards",
)
"""What one card cannot show."""


def main(kit: Kit, deadline: float) -> None:
    """The atlas's entries that need CUDA; without a card, as many others."""
    del deadline
    course, problems = read_course(find_course(), thorough=True)
    kit.ok("the course is sound", not problems, "; ".join(str(p) for p in problems[:3]))
    entries, _ = check_atlas(course)
    with kit.runner() as runner:
        chosen = [e for e in entries if e.needs == "cuda"] if kit.on_cuda else list(entries[:8])
        status = runner.status
        trials = [
            trial
            for trial in atlas_trials(
                course, entries, kit.device, columns=keeps_columns(status.python)
            )
            if any(claim.line in _lines(chosen) for claim in trial.claims)
        ]
        for finding in prove(course, trials, runner, jobs=kit.jobs):
            text = f"{finding.path}:{finding.line}"
            if isinstance(finding, Skipped):
                kit.skip(finding.what, finding.message)
            elif isinstance(finding, Broken):
                kit.ok(finding.what, False, f"{text}: {finding.message}")
            else:
                kit.ok(finding.what, True, text)
        keep_outputs(kit, course, runner)
    for entry in entries:
        if why := lacking(entry, kit.device):
            kit.skip(f"the error {entry.id!r}", why)
    for what in TWO_CARDS:
        kit.skip(what, "one card cannot show it")


def keep_outputs(kit: Kit, course: Course, runner: Runner) -> None:
    """Run the lessons' programs that need a card, and keep what they print."""
    programs = [
        (lesson, program)
        for lesson in course.lessons
        for program in programs_for_cuda(lesson.id, lesson.steps)
    ]
    if not kit.on_cuda:
        kit.skip(f"{len(programs)} programs of lessons", "they need a card")
        return
    for lesson, program in programs:
        ran = run_job(runner, program_job(lesson, program.source, f"{lesson.slug}.py"))
        place = f"{lesson.id}, step {program.step + 1}"
        good = ran.outcome == "done"
        if kit.ok(f"{place} runs on the card", good, "" if good else ran.last_line):
            row = {"lesson": lesson.id, "step": program.step, "printed": ran.record.stdout}
            kit.report.outputs.append({**row, "program": key_of(program.source)})


def _lines(entries: object) -> set[int]:
    """The lines at which these entries and their programs begin."""
    return {
        line
        for entry in entries  # type: ignore[attr-defined]
        for line in (entry.line, *(program.line for program in entry.programs))
    }
