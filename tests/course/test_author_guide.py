"""The examples of docs/writing-lessons.md make a course that holds."""

import re
from pathlib import Path

from tensortutor.course.atlas import check_atlas
from tensortutor.course.atlas_claims import atlas_trials
from tensortutor.course.catalog import load_course
from tensortutor.course.drill_claims import drill_problems, drill_trials
from tensortutor.course.drills import read_drills
from tensortutor.course.fences import PLAIN, PYTHON
from tensortutor.course.reference_claims import check_reference, page_trials
from tensortutor.course.verify import Broken, Proved, prove, verify

GUIDE = Path(__file__).parents[2] / "docs" / "writing-lessons.md"
FENCE = re.compile(r"^(`{3,})([a-z]+)\n(.*?)^\1$", re.MULTILINE | re.DOTALL)
FILES = {
    "A small course": "lessons/course.toml",
    "edition = 2": "lessons/01_basics/01_sums.md",
    "Judges lessons": "checks/01_basics/01_sums.py",
    "[[drills]]": "lessons/01_basics/drills.toml",
    "[[errors]]": "lessons/atlas.toml",
    'kind = "calls"': "lessons/reference/01_sums.md",
}


def write_course(root):
    """The guide's examples as the files that they are to be."""
    examples = [found[3] for found in FENCE.finditer(GUIDE.read_text("utf-8"))]
    for sign, path in FILES.items():
        (text,) = [example for example in examples if sign in example]
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
    assert len(examples) == len(FILES)
    return load_course(root, thorough=True)


def test_the_examples_of_the_guide_hold(tmp_path, runner_on_cpu):
    course = write_course(tmp_path / "course")
    entries, of_atlas = check_atlas(course)
    pages, of_pages = check_reference(course)
    drills, of_drills = read_drills(course)
    assert [*of_atlas, *of_pages, *of_drills, *drill_problems(course, drills)] == []
    found = list(verify(course, course.lessons, runner_on_cpu, seeds=3))
    others = [
        *drill_trials(drills, 3),
        *atlas_trials(course, entries, "cpu"),
        *page_trials(pages),
    ]
    found += prove(course, others, runner_on_cpu)
    assert [str(finding) for finding in found if isinstance(finding, Broken)] == []
    assert sum(type(finding) is Proved for finding in found) > 15


def test_the_guide_shows_every_fence():
    text = GUIDE.read_text("utf-8")
    lesson = next(f[3] for f in FENCE.finditer(text) if "edition = 2" in f[3])
    shown = {f"```python {kind}" for kind in PYTHON} | {f"```{kind}" for kind in PLAIN}
    missing = {fence for fence in shown if not re.search(rf"^{fence}\b", lesson, re.MULTILINE)}
    assert missing == {"```python fix"}  # a lesson has one task
    assert "`python fix`" in text
