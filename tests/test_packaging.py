"""What is shipped is whole: the wheel, the sdist, an installation, the README's commands."""

import json
import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tensortutor import __version__
from tensortutor.runner import versions

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")
START = "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/tensortutor"
TEST = "python3 -m venv .venv && .venv/bin/pip install '.[test]' && .venv/bin/pytest"


def shell(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that sees none of this tree through the environment."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "VIRTUAL"))}
    return subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**environment, **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def build(tree: Path, kind: str, folder: Path) -> Path:
    """Build a distribution of this kind with the backend itself: no network, no pip."""
    done = shell(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", folder, cwd=tree)
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.iterdir()
    return built


def files_under(*names: str) -> dict[str, bytes]:
    """The tree's own files, by path."""
    found = {}
    for folder in (ROOT / name for name in names):
        for file in folder.rglob("*"):
            cache = any(p.startswith((".", "__pycache__")) for p in file.relative_to(folder).parts)
            if file.is_file() and not cache:
                found[file.relative_to(ROOT).as_posix()] = file.read_bytes()
    return found


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(ROOT, "sdist", tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unpacked")
    done = shell("tar", "-xzf", sdist, "-C", folder, cwd=folder)
    assert done.returncode == 0, done.stderr
    (tree,) = folder.iterdir()
    return tree


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new venv with the wheel installed. It sees this venv's dependencies."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=True, symlinks=True)
    done = shell(
        home / "bin" / "python", "-m", "pip", "install", "--no-deps", "--no-index", wheel, cwd=home
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (packages,) = home.glob("lib/python*/site-packages")
    packages.joinpath("dependencies.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    return home / "bin"


def shipped(wheel: Path) -> dict[str, bytes]:
    """What a wheel installs, less its own data and what it tells Jupyter."""
    files = contents(wheel)
    (told,) = [path for path in files if ".data/" in path]
    assert told.endswith("data/etc/jupyter/jupyter_server_config.d/tensortutor.json")
    return {p: b for p, b in files.items() if ".dist-info/" not in p and p != told}


def test_the_wheel_carries_the_package_and_the_course_and_nothing_else(wheel: Path):
    course = {
        f"tensortutor/{path}": b for path, b in files_under("lessons", "checks", "tour").items()
    }
    assert shipped(wheel) == {**files_under("tensortutor"), **course}


def test_the_sdist_can_be_tested_and_built_anew(unpacked: Path, wheel: Path, tmp_path: Path):
    wanted = files_under("tensortutor", "lessons", "checks", "tour", "tests", ".ci")
    assert [path for path, data in wanted.items() if (unpacked / path).read_bytes() != data] == []
    assert contents(build(unpacked, "wheel", tmp_path / "dist")) == contents(wheel)


@pytest.fixture
def installed(commands: Path, tmp_path: Path, own_home: Path):
    """Calls the installed command from a folder that is not the repository."""
    folder = tmp_path / "elsewhere"
    folder.mkdir()

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        command = commands / "tensortutor"
        return shell(command, *arguments, cwd=folder, TENSORTUTOR_HOME=str(own_home))

    return call


def test_an_editable_installation_copies_nothing(tmp_path: Path):
    wheel = build(ROOT, "wheel:editable", tmp_path / "dist")
    assert shipped(wheel) == {"_tensortutor.pth": str(ROOT).encode()}


def test_an_installed_command_has_the_whole_course(installed, commands: Path):
    listed = installed("list", "--json")
    assert listed.returncode == 0, listed.stderr
    files = [
        path for path in files_under("lessons") if re.fullmatch(r"lessons/\d.*/\d.*\.md", path)
    ]
    assert len(listed.stdout.splitlines()) == len(files) > 0
    (root,) = re.findall(r"^course +(.+)$", installed("where").stdout, re.M)
    assert Path(root).is_relative_to(commands.parent)


def test_an_installed_command_checks_answers(installed, tmp_path: Path):
    first = json.loads(installed("list", "--json").stdout.splitlines()[0])["lesson"]
    starter = installed("check", first)
    assert (starter.returncode, "✗ failed" in starter.stdout) == (1, True), starter.stderr
    solution = installed("show", first, "--solution", "--spoil")
    answer = tmp_path / "answer.py"
    answer.write_text(solution.stdout, "utf-8")
    checked = installed("check", first, answer)
    assert (checked.returncode, "✗ failed" in checked.stdout) == (0, False), checked.stdout
    assert "✓ passed" in checked.stdout


def test_it_can_be_called_as_a_module(commands: Path, tmp_path: Path):
    done = shell(commands / "python", "-m", "tensortutor", "--version", cwd=tmp_path)
    assert done.stdout == f"tensortutor {__version__}\n"


def test_the_readme_has_both_commands_each_on_a_line_of_its_own():
    blocks = re.findall(r"```sh\n(.*?)```", README, re.S)
    lines = [line for block in blocks for line in block.splitlines()]
    assert START in lines
    assert TEST in lines


def test_ci_runs_the_readmes_test_command():
    done = shell("bash", ROOT / ".ci" / "run", "--print", cwd=ROOT)
    assert done.stdout == TEST + "\n"


def test_every_dependency_is_defended_in_a_comment():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    lists = re.findall(r"^(?:dependencies|test|author|bench) = \[\n(.*?)^\]", text, re.S | re.M)
    lines = [line for block in lists for line in block.splitlines()]
    assert len(lists) == 4
    assert [line for line in lines if not re.fullmatch(r' +".+", +# .+', line)] == []


def test_the_versions_that_interpreters_are_judged_by_are_those_that_are_installed():
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    assert f'"{versions.requirement()}",' in text
    oldest = ".".join(map(str, versions.OLDEST_PYTHON))
    assert f'requires-python = ">={oldest}"' in text
    pythons = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', text)
    assert f"Python {pythons[0]} to {pythons[-1]}" in README
    assert pythons[0] == oldest


def test_the_oldest_and_the_newest_versions_are_among_those_that_are_proved():
    script = ROOT / ".ci" / "versions"
    pairs = re.search(r'for pair in ("[^;]+"); do', script.read_text("utf-8"))
    assert pairs is not None
    proved = [pair.split() for pair in re.findall(r'"([^"]+)"', pairs[1])]
    ends = [".".join(map(str, end)) for end in (versions.OLDEST_TORCH, versions.NEWEST_TORCH)]
    assert proved[0] == [".".join(map(str, versions.OLDEST_PYTHON)), ends[0]]
    assert proved[-1][1] == ends[1]
    done = subprocess.run([script, "3.10"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "usage: .ci/versions [PYTHON TORCH]\n")
