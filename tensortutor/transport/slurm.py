"""What Slurm says: why a job waits, how long it may run, why it was ended, how full a queue is.

And what it is to be told: that nobody uses a job. Slurm learns that a job is over from its last
step, or from `srun`. A job whose `srun` is killed before its first step has begun, as one that
waits in the queue, is allocated all the same and stays until its time is over.
"""

import contextlib
import os
import re
import shutil
import subprocess

ASK_S = 5
LEFT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
"""As `squeue` writes a time: 1-02:03:04, 02:03:04 or 03:04."""
ENDED = re.compile(
    r"\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+?(?: DUE TO ([A-Z ]+).*)? \*\*\*"
)
WHY_ENDED = {
    None: "it was cancelled",
    "TIME LIMIT": "its time is over",
    "PREEMPTION": "another job comes first and takes its place",
    "NODE FAILURE": "the node has failed",
}


def job_name() -> str:
    """What a job that this process asks for is called: whose it is, and whether that one lives."""
    return f"{_here()}{os.getpid()}"


def cancel_jobs(name: str) -> None:
    """End the jobs of this name, whether they wait or run."""
    _answer("scancel", "--name", name)


def cancel_abandoned_jobs() -> None:
    """End what processes on this machine have asked for that were killed before they could."""
    begin = _here()
    for name in set(_answer("squeue", "-h", "-u", str(os.getuid()), "-o", "%j").split()):
        pid = name.removeprefix(begin)
        if name.startswith(begin) and pid.isdigit() and not _is_alive(int(pid)):
            cancel_jobs(name)


def _here() -> str:
    """How the names of all jobs begin that are asked for here: process numbers mean the same."""
    numbers = 0
    with contextlib.suppress(OSError):
        numbers = os.stat("/proc/self/ns/pid").st_ino
    return f"tensortutor-{os.uname().nodename}-{numbers}-"


def _is_alive(pid: int) -> bool:
    """There is a process of this user with this number."""
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def why_queued(job: str, waited_s: float) -> str:
    """A sentence for who has waited for a job for so long."""
    waited = f", {waited_s // 60:.0f} min" if waited_s >= 60 else ""
    return f"waiting for Slurm: {_ask(job, '%r') or 'in the queue'} (job {job}){waited}"


def seconds_left(job: str) -> float:
    """Until the job's time is over, 0 where there is no limit, no job, or nobody to ask."""
    found = LEFT.fullmatch(_ask(job, "%L")) if job else None
    if found is None:
        return 0.0
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def why_ended(line: str) -> str:
    """What `srun` writes when Slurm has ended a job, in plain words; "" for another line."""
    found = ENDED.search(line)
    if found is None:
        return ""
    reason = found[1]
    return f"Slurm ended the job: {WHY_ENDED.get(reason) or reason.lower()}"


def queue_summary(partition: str) -> str:
    """A partition's state, its nodes, its time limit and who waits for it, as far as is said."""
    nodes = _answer("sinfo", "-h", "-p", partition, "-o", "%a %F %l").split()
    if len(nodes) != 3:
        return f"partition {partition}"
    state, counts, limit = nodes
    _, idle, _, total = counts.split("/")
    waiting = len(_answer("squeue", "-h", "-p", partition, "-t", "PENDING").splitlines())
    return (
        f"partition {partition}: {state}, {idle} of {total} nodes idle, {waiting} jobs waiting, "
        f"time limit {limit}"
    )


def _ask(job: str, what: str) -> str:
    """One field of `squeue`, "" if it cannot be had."""
    return _answer("squeue", "-h", "-j", job, "-o", what)


def _answer(*command: str) -> str:
    """What a command prints, "" where there is none or it does not answer in time."""
    if not shutil.which(command[0]):
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=ASK_S)
        return done.stdout.strip()
    return ""
