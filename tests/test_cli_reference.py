"""`tensortutor reference` and `verify reference` as people use them."""

from pathlib import Path

from tests.course.tiny import Edit, copy_of_tiny, line_of
from tests.test_cli import TINY, events, on_terminal, refused, tensortutor

PAGE = "lessons/reference/01_reduce.md"


def test_without_a_term_it_lists_the_pages() -> None:
    done = tensortutor("reference")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["reduce", "Reduce", "2", "entries"]
    assert lines[2].split() == ["glossary", "Words", "2", "entries"]
    assert [page["page"] for page in events(tensortutor("reference", "--json").stdout)] == [
        "reduce",
        "glossary",
    ]


def test_a_term_is_shown_with_its_code_and_its_lesson() -> None:
    for term in ("Tensor.mean", ".mean", "torch.Tensor.mean(1)", "average"):
        done = tensortutor("reference", term)
        assert done.returncode == 0
        assert done.stdout.startswith("Tensor.mean(dim)  Reduce\nThe mean along a dimension.\n")
        assert "    x.mean(dim=1)         # tensor([2., 6.])" in done.stdout
        assert "tensortutor show basics/means --course" in done.stdout


def test_what_programs_draw_with_is_in_the_built_in_reference() -> None:
    for name, title in (("plot", "plot(ys"), ("image", "image(tensor"), ("show", "show(tensor")):
        done = tensortutor("reference", name, course=None)
        assert done.returncode == 0
        assert done.stdout.startswith(title)
        assert f"from tensortutor.lab import {name}" in done.stdout


def test_words_list_what_has_them() -> None:
    done = tensortutor("reference", "largest", "value")
    assert done.stdout.startswith("torch.amax(x, dim), torch.amin(x, dim)")
    done = tensortutor("reference", "row")
    assert "Centred row" in done.stdout


def test_an_unknown_term_names_the_nearest_and_fails() -> None:
    done = tensortutor("reference", "meen")
    assert (done.returncode, done.stdout) == (1, "")
    assert "nothing about 'meen'. The nearest: Tensor.mean" in done.stderr


def test_json_has_everything() -> None:
    found = events(tensortutor("reference", "mean", "--json").stdout)
    assert [one["title"] for one in found[:2]] == ["Tensor.mean(dim)", "Mean"]
    first = found[0]
    assert first["event"] == "entry"
    assert first["lessons"] == ["basics/means"]
    assert first["names"] == ["Tensor.mean", "average", "nanmean"]
    assert "x.mean(dim=1)" in first["code"][0]


def test_a_whole_page_and_one_that_is_not_there() -> None:
    done = tensortutor("reference", "--page", "glossary")
    assert "Centred row\nA row whose mean is 0.\n" in done.stdout
    refused(tensortutor("reference", "--page", "shape"), "'shape'", "reduce and glossary")
    refused(tensortutor("reference", "mean", "--page", "reduce"), "Name a term, or say --page")


SHEET = """\
+++
title = "One page"
about = "What matters."
kind = "sheet"
+++

### Means
See basics/means.
```python
x = torch.zeros(2)
x.mean()  # tensor(0.)
```

### Sums
See basics/means.
```python
torch.ones(2).sum()  # tensor(2.)
```
"""


def test_the_sheet_is_printed_in_two_columns_and_as_markdown(tmp_path: Path) -> None:
    root = copy_of_tiny(tmp_path)
    refused(tensortutor("reference", "--sheet", course=root), "no sheet to print")
    (root / "lessons" / "reference" / "08_sheet.md").write_text(SHEET, "utf-8")
    done = tensortutor("reference", "--sheet", course=root)
    assert done.stdout.splitlines() == [
        "One page. What matters.",
        "",
        f"{'MEANS  basics/means':<64}   SUMS  basics/means",
        f"{'x = torch.zeros(2)':<64}   torch.ones(2).sum()  # tensor(2.)",
        "x.mean()  # tensor(0.)",
    ]
    done = tensortutor("reference", "--sheet", "markdown", course=root)
    assert "## Sums\n\nLessons: basics/means\n\n```python\ntorch.ones(2)" in done.stdout
    assert "Means" not in tensortutor("reference", "zeros", course=root).stdout
    refused(tensortutor("reference", "mean", "--sheet", course=root), "name no term")


def test_the_sheet_of_the_course_fits_on_a_page() -> None:
    lines = tensortutor("reference", "--sheet", course=None).stdout.splitlines()
    assert 60 < len(lines) <= 110
    assert max(map(len, lines)) <= 131


def test_a_course_without_a_reference(tmp_path: Path) -> None:
    root = copy_of_tiny(tmp_path)
    for page in (root / "lessons" / "reference").iterdir():
        page.unlink()
    refused(tensortutor("reference", course=root), "This course has no reference")


def test_it_is_readable_on_a_narrow_terminal_without_unicode() -> None:
    arguments = ["--course", str(TINY), "reference", "mean"]
    status, screen = on_terminal(arguments, columns=60, PYTHONIOENCODING="ascii", NO_COLOR="1")
    assert status == 0
    assert screen.isascii()
    assert "\x1b" not in screen


def test_verify_proves_a_page_and_names_the_line(tmp_path: Path) -> None:
    root = copy_of_tiny(tmp_path, Edit(PAGE, "(2, 2, 2)", "(2, 2, 3)"))
    done = tensortutor("verify", "reference/reduce", course=root)
    assert done.returncode == 1
    line = line_of(root, PAGE, "(2, 2, 3)")
    assert f"{PAGE}:{line}: claimed: the line gives (2, 2, 3); but it gives" in done.stdout
    assert "4 claims hold, 1 do not" in done.stdout
    refused(tensortutor("verify", "reference/shape"), "There is no page", "reference/reduce")
