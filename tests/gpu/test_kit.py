"""The kit where there is no card. `.ci/run` runs all its sections on the processor."""

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.__main__ import SECTIONS, no_card
from tests.gpu.kit import ROOT, use_wheels
from tests.gpu.report import Finding, Report, sections_in_order

ABOUT: dict[str, Any] = {
    "device": "cuda:0", "label": "A Card", "driver": "580.1", "torch": "2.13.0+cu130",
    "cuda": "13.0", "python": "3.12.3", "cores": 16, "date": "2026-11-23", "why": "",
}  # fmt: skip


def has_card() -> bool:
    return any(Path("/dev").glob("nvidia[0-9]*"))


def kit(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.gpu", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_section_has_its_module():
    folder = Path(__file__).parent / "sections"
    assert {path.stem for path in folder.glob("*.py")} - {"__init__"} == set(SECTIONS)


def test_sections_run_in_the_order_of_their_worth_and_unknown_ones_are_named():
    assert sections_in_order(["lens", "faults"], list(SECTIONS)) == ["faults", "lens"]
    assert sections_in_order([], list(SECTIONS)) == list(SECTIONS)
    with pytest.raises(ValueError, match="no section 'lenz'"):
        sections_in_order(["lenz"], list(SECTIONS))


def test_the_table_tells_the_machine_the_figures_and_what_failed(tmp_path: Path):
    out = io.StringIO()
    report = Report(ABOUT, out)
    report.add(Finding("lens", "MLP", "ok", "wanted <= 1.10", 1.04, ""))
    report.add(Finding("faults", "an illegal address", "fail", "done: Done in 3 ms."))
    report.seconds = {"faults": 3.0, "lens": 8.0}
    assert "FAIL  faults" in out.getvalue()
    table = report.table()
    for words in ("A Card", "580.1", "2.13.0+cu130", "| faults | 3 | 0 | 1 | 0 | 0 |", "1.04"):
        assert words in table
    assert "- fail: faults, an illegal address: done: Done in 3 ms." in table
    report.write(tmp_path / "kit.json")
    assert json.loads((tmp_path / "kit.json").read_text())["findings"][1]["state"] == "fail"


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"cuda": "", "torch": "2.13.0+cpu"}, "built without CUDA"),
        ({"driver": "none", "why": "Found no NVIDIA driver on your system"}, "no NVIDIA driver"),
        ({"why": "No CUDA GPUs are available"}, "CUDA_VISIBLE_DEVICES"),
    ],
)
def test_without_a_card_a_sentence_says_why(changes: dict[str, Any], says: str):
    assert says in no_card({**ABOUT, **changes})


@pytest.mark.skipif(has_card(), reason="this machine has a card")
def test_the_kit_without_a_card_ends_in_its_sentence():
    done = kit("--device", "cuda:0", "--json", "/dev/null")
    assert done.returncode == 3, done.stderr
    assert "--device cpu --quick" in done.stdout
    assert "Traceback" not in done.stderr


def test_wheels_beside_the_kit_are_importable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import zipfile

    with zipfile.ZipFile(tmp_path / "kit_wheel_for_test-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("kit_wheel_for_test.py", "VALUE = 7\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", "")
    assert len(use_wheels(tmp_path)) == 1
    import kit_wheel_for_test  # type: ignore[import-not-found]

    assert kit_wheel_for_test.VALUE == 7
