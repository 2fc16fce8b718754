"""What Slurm says of a job: why it waits, and how long it may still run."""

import contextlib
import re
import shutil
import subprocess

ASK_S = 5
LEFT = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)")
"""As `squeue` writes a time: 1-02:03:04, 02:03:04 or 03:04."""


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


def _ask(job: str, what: str) -> str:
    """One field of `squeue`, "" if it cannot be had."""
    if not shutil.which("squeue"):
        return ""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            ["squeue", "-h", "-j", job, "-o", what], capture_output=True, text=True, timeout=ASK_S
        )
        return done.stdout.strip()
    return ""
