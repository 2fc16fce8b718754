"""The documents: their links lead somewhere, their commands exist, their pictures are today's."""

import re
from pathlib import Path

import pytest

from tensortutor.cli import commands
from tests import pictures

ROOT = Path(__file__).parents[1]
DOCUMENTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").glob("*.md")),
    ROOT / "tests/gpu/README.md",
    ROOT / "tests/hostile/README.md",
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """The anchors that a page of Markdown has, as GitHub makes them of its headings."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path):
    for link in LINK.findall(page.read_text("utf-8")):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in anchors(target.read_text("utf-8")), f"{page.name}: {link}"


@pytest.mark.parametrize("page", DOCUMENTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_exist(page: Path):
    """Each line of a block that calls tensortutor, a module or a script of this repository."""
    known = {command.name for command in commands()}
    for block in re.findall(r"```(?:sh|text)\n(.*?)```", page.read_text("utf-8"), re.S):
        for line in block.splitlines():
            if match := re.match(r"(?:\.venv/bin/)?tensortutor ([a-z]+)(?: |$)", line.strip()):
                assert match[1] in known, f"{page.name}: {line}"
            for module in re.findall(r"python3? -m (tests\.[\w.]+)", line):
                path = ROOT / module.replace(".", "/")
                assert path.with_suffix(".py").exists() or path.is_dir(), line
            for script in re.findall(r"(?:^| )(\.ci/\w+)", line):
                assert (ROOT / script).exists(), line


def test_the_readme_is_short_and_shows_todays_screens():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 160
    assert len(pictures.shown()) == 3
    for name in pictures.shown():
        picture = pictures.PICTURES / f"{name}.svg"
        assert picture.read_bytes() == pictures.snapshot(name).read_bytes(), (
            f"{picture} is old: python -m tests.pictures"
        )


def test_the_architecture_names_files_that_exist():
    text = (ROOT / "docs/ARCHITECTURE.md").read_text("utf-8")
    named = {name for name in re.findall(r"`([\w/]+\.(?:py|toml))`", text) if "/" in name}
    assert len(named) > 30
    homes = (ROOT, ROOT / "tensortutor")
    missing = [name for name in sorted(named) if not any((h / name).exists() for h in homes)]
    assert missing == []
