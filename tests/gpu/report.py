"""What the kit has found: a line as it comes, a table and a JSON file at the end."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

SIGNS = {"ok": "ok  ", "fail": "FAIL", "note": "note", "skip": "skip"}


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    state: "ok", "fail", "note" (a figure, or a difference that is no fault) or "skip" (it could not
    be tried here; `text` says why). value, unit: the figure, if there is one.
    """

    section: str
    name: str
    state: str
    text: str = ""
    value: float | None = None
    unit: str = ""

    def __str__(self) -> str:
        figure = f"{self.value:.4g} {self.unit}".strip() if self.value is not None else ""
        rest = "; ".join(part for part in (figure, self.text) if part)
        return f"{SIGNS[self.state]}  {self.section:<9} {self.name}{': ' if rest else ''}{rest}"


class Report:
    """Collects findings, and prints each as it comes.

    outputs: what programs of lessons that need a card printed: lesson, step, program (the key that
    `tensortutor.course.cuda_outputs` finds it by) and printed.
    """

    def __init__(self, about: dict[str, Any], out: TextIO | None = None) -> None:
        self.about = about
        self.findings: list[Finding] = []
        self.seconds: dict[str, float] = {}
        self.outputs: list[dict[str, Any]] = []
        self._out = out or sys.stdout
        self._begun = time.monotonic()

    def say(self, text: str) -> None:
        """Print a line at once."""
        print(text, file=self._out, flush=True)

    def add(self, finding: Finding) -> None:
        """Keep a finding and print it with the seconds since the start."""
        self.findings.append(finding)
        self.say(f"{time.monotonic() - self._begun:6.1f} s  {finding}")

    @property
    def failed(self) -> list[Finding]:
        """What did not come out as it should."""
        return [finding for finding in self.findings if finding.state == "fail"]

    def table(self) -> str:
        """A Markdown table: a row for each section, then each figure and each failure."""
        lines = [
            f"Device: {self.about['device']} ({self.about['label']}), driver "
            f"{self.about['driver']}, torch {self.about['torch']}, Python {self.about['python']}, "
            f"{self.about['cores']} cores, {self.about['date']}",
            "",
            "| section | seconds | ok | failed | notes | skipped |",
            "|---|---:|---:|---:|---:|---:|",
        ]
        for section, seconds in self.seconds.items():
            states = Counter(f.state for f in self.findings if f.section == section)
            counts = " | ".join(str(states[state]) for state in ("ok", "fail", "note", "skip"))
            lines.append(f"| {section} | {seconds:.0f} | {counts} |")
        figures = [f for f in self.findings if f.value is not None]
        if figures:
            lines += ["", "| figure | value | |", "|---|---:|---|"]
            lines += [f"| {f.name} | {f.value:.4g} {f.unit} | {f.text} |" for f in figures]
        other = [f for f in self.findings if f.state in ("fail", "skip")]
        if other:
            lines += ["", "Failed or not tried:", ""]
            lines += [f"- {f.state}: {f.section}, {f.name}: {f.text}" for f in other]
        return "\n".join(lines)

    def write(self, path: Path) -> None:
        """Write everything as JSON."""
        data = {
            **self.about,
            "seconds": self.seconds,
            "findings": [asdict(finding) for finding in self.findings],
            "outputs": self.outputs,
        }
        path.write_text(json.dumps(data, indent=1) + "\n")


def sections_in_order(wanted: Sequence[str], known: Sequence[str]) -> list[str]:
    """The sections to run. Raises ValueError with a sentence for an unknown name."""
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(
            f"There is no section {unknown[0]!r}. The sections are: {', '.join(known)}."
        )
    return [name for name in known if not wanted or name in wanted]
