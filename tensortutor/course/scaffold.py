"""The beginning of a lesson: two files that hold together, with TODO where the author writes.

What they claim holds, so that the gate is of use from the first minute: an author replaces one
part after the other, and each time sees whether it still stands.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from string import Template

from tensortutor.course.course_toml import chapter_ids
from tensortutor.course.model import Lesson
from tensortutor.course.problems import nearest
from tensortutor.course.read_file import read_file

SLUG = re.compile(r"[a-z0-9][a-z0-9_]*")
FILE = re.compile(r"(\d\d)_([a-z0-9][a-z0-9_]*)\.md")
LAST = 99
"""Two digits number the lessons of a chapter."""
TODO = re.compile(r"\bTODO\b:?\s*(.*)")


class CannotBegin(Exception):
    """The lesson cannot be begun. `str` is the sentence that says why, and what to do."""


def begin_lesson(root: Path, name: str) -> tuple[Path, Path]:
    """Write the two files of a new lesson, the last of its chapter. Returns their paths.

    name: "chapter/slug"; the chapter by id or number, and in course.toml. Raises CannotBegin.
    """
    chapter, _, slug = name.partition("/")
    ids = chapter_ids(root)
    number = ids.index(chapter) + 1 if chapter in ids else 0
    if chapter.isdigit() and 1 <= int(chapter) <= len(ids):
        number = int(chapter)
    if not number:
        near = f"The nearest is {nearest(chapter, ids)[0]!r}. " if ids else ""
        raise CannotBegin(
            f"lessons/course.toml lists no chapter {chapter!r}. {near}Add the chapter there first."
        )
    if not SLUG.fullmatch(slug):
        raise CannotBegin(
            "A lesson is called chapter/slug, the slug of lower-case letters, digits and "
            f"underscores, as in {ids[number - 1]}/first_steps."
        )
    folder = f"{number:02d}_{ids[number - 1]}"
    there = dict(_lessons(root / "lessons" / folder))
    if slug in there.values():
        raise CannotBegin(f"There is a lesson {ids[number - 1]}/{slug} already.")
    place = max(there, default=0) + 1
    if place > LAST:
        raise CannotBegin(f"{folder} has a lesson {LAST} already: a number has two digits.")
    stem = f"{place:02d}_{slug}"
    words = {
        "title": slug.replace("_", " ").capitalize(),
        "requires": _before(root, ids[:number]),
        "lesson": f"lessons/{folder}/{stem}.md",
    }
    paths = root / "lessons" / folder / f"{stem}.md", root / "checks" / folder / f"{stem}.py"
    for path, template in zip(paths, (LESSON, CHECKS), strict=True):
        _write(path, Template(template).substitute(words))
    return paths


def unfinished(lesson: Lesson) -> Iterator[tuple[Path, int, str]]:
    """(file, line, what is to be done) for each TODO in a lesson's two files."""
    for path in (lesson.path, lesson.judge.path):
        for number, line in enumerate(read_file(path).decode("utf-8", "replace").split("\n"), 1):
            if found := TODO.search(line):
                yield path, number, found[1].strip(" \"'`") or "something"


def _lessons(folder: Path) -> Iterator[tuple[int, str]]:
    """(number, slug) of the lessons in a chapter's folder."""
    for path in folder.glob("*.md"):
        if named := FILE.fullmatch(path.name):
            yield int(named[1]), named[2]


def _before(root: Path, ids: list[str]) -> str:
    """The id of the last lesson of these chapters, in quotes, or "" if there is none."""
    for number, id in reversed(list(enumerate(ids, 1))):
        there = sorted(_lessons(root / "lessons" / f"{number:02d}_{id}"))
        if there:
            return f'"{id}/{there[-1][1]}"'
    return ""


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise CannotBegin(f"{path} cannot be written: {why}.") from None


LESSON = '''+++
edition = 2
title = "$title"
goal = "TODO: what the reader can do afterwards, in one sentence."
requires = [$requires]
device = "any"
+++

## Insight: TODO in a few words

TODO: the title above names the subject in the field's words, and the insight after a colon.

TODO: the problem that the reader has met or will meet, in two sentences. Then the surprise,
measured, and the model that explains it.

## See it run

TODO: what to look at, and why it is so.

```python run
import torch

x = torch.arange(6.0).view(2, 3)   # (rows, columns)
columns = x.sum(dim=0)
print(columns)
```
```output
tensor([3., 5., 7.])
```

```look
tab = "tensors"
row = "columns"
expect = "f32[3]"
say = "TODO: what is to be seen there. The rows are gone."
```

```try
say = "TODO: an experiment. Keep the dimension."
old = "dim=0"
new = "dim=0, keepdim=True"
output = """
tensor([[3., 5., 7.]])
"""
```

## Predict

TODO: a program whose output the reader can work out.

```python predict
import torch

x = torch.arange(6.0).view(2, 3)
y = x.mean(dim=1)
print(y)
```
```output
tensor([1., 4.])
```
```quiz
kind = "shape"
ask = "What is the shape of `y`?"
answer = [2]
proof = "y.shape"
explain = "TODO: why it is so."
```

## Practice

Write `totals`, the sum of every row. TODO: the task, with every rule that the checks test; a check
quotes each sentence. Without rows there are no sums. The input keeps its values.

```python exercise
def totals(x):
    """x: (rows, columns) -> (rows,)."""
    return x.sum(dim=0)
```
```hint
TODO: the symptom. Sum the other dimension: the one that counts the columns.
```
```hint
TODO: the construction. `dim=1` runs along a row.
```
```python solution
def totals(x):
    """x: (rows, columns) -> (rows,)."""
    return x.sum(dim=1)
```

## Debugging: TODO which errors

TODO: the errors that this topic throws, and the way out of each.

```python error
import torch

torch.ones(2, 3).sum(dim=2)
```
```message
IndexError: Dimension out of range (expected to be in range of [-2, 1], but got 2)
```

## In the wild: TODO where

TODO: real systems that do this, by name, with a year.
'''

CHECKS = '''"""Judges $lesson."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_unchanged,
    hinted,
    mutant,
)

# TODO: checks of this lesson's own. Each asks one thing, on inputs that differ every time, and
# quotes the sentence of the task that it tests. Sentences that state no rule are listed here.
background("TODO: the task")


def rows(rng, device):
    return torch.randn(rng.randint(2, 5), rng.randint(6, 9), device=device)


@check("each row has its sum", holds="the sum of every row")
def sums(answer, rng, device):
    x = rows(rng, device)
    wanted = (x.double() @ torch.ones(x.shape[1], dtype=torch.float64, device=device)).float()
    hint = "Which dimension counts the columns?"
    expect_close(answer.totals(x), wanted, shape_hint=hint, hint="Every column counts once.")


@check("no rows, no sums", holds="Without rows there are no sums.")
def empty(answer, rng, device):
    x = torch.ones(0, rng.randint(1, 5), device=device)
    expect_close(answer.totals(x), torch.zeros(0, device=device))


@check("the input stays as it was", holds="The input keeps its values.")
def untouched(answer, rng, device):
    x = rows(rng, device)
    with expect_unchanged(x):
        answer.totals(x)


# TODO: three mistakes that people make, and two right answers that are written another way.


@mutant("adds up the rows", caught_by=sums)
def totals(x):
    return x.sum(dim=0)


@mutant("takes the mean", caught_by=sums)
def totals(x):
    return x.mean(dim=1)


@mutant("adds up in place", caught_by=untouched)
def totals(x):
    for column in range(1, x.shape[1]):
        x[:, 0] += x[:, column]
    return x[:, 0].clone()


@hinted(1, reaches=sums)
def totals(x):
    return x.sum(dim=-1)


@accepted("counts the dimension from the end")
def totals(x):
    return x.sum(-1)


@accepted("multiplies by ones")
def totals(x):
    return x @ torch.ones(x.shape[1], device=x.device, dtype=x.dtype)
'''
