"""The data of the lessons: the files that the page names, found by name."""

import hashlib
import re

import numpy
import pytest

from tensortutor.lab import data
from tensortutor.lab.datasets import ABOUT, DATA_FOLDER, SHIPPED


def content(path) -> bytes:
    files = sorted(path.rglob("*.png")) if path.is_dir() else [path]
    return b"".join(file.read_bytes() for file in files)


def test_the_files_are_those_of_the_sources_page(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path))
    page = (SHIPPED / ABOUT).read_text("utf-8")
    rows = re.findall(r"^\| (\S+) \|.*\| (\d+) \| ([0-9a-f]{64}) \|$", page, re.MULTILINE)
    assert [name for name, _, _ in rows if name]
    assert sorted(n for n, _, _ in rows) == data()
    for name, size, digest in rows:
        found = content(data(name))
        assert (len(found), hashlib.sha256(found).hexdigest()) == (int(size), digest)
        assert f"## {name}" in page or f", {name}\n" in page  # origin, licence, changes


def test_the_digits_and_their_pictures_agree():
    from PIL import Image

    digits = numpy.load(data("digits.npz"))
    for label in (0, 9):
        for file in sorted(data(f"digits_png/{label}").iterdir())[:3]:
            row = int(file.stem)
            assert digits["labels"][row] == label
            wanted = digits["images"][row].astype(int) * 255 // 16
            assert (numpy.asarray(Image.open(file)) == wanted).all()


def test_own_files_come_first_and_an_unknown_name_tells_where(monkeypatch, tmp_path):
    monkeypatch.setenv(DATA_FOLDER, str(tmp_path / "data"))
    with pytest.raises(FileNotFoundError) as error:
        data("my.csv")
    assert str(error.value) == (
        "There is no data 'my.csv'. There are: digits.npz, digits_png, names.txt, penguins.csv. "
        f"Files of your own go into {tmp_path / 'data'}."
    )
    (tmp_path / "data").mkdir()
    for name in ("my.csv", "names.txt"):
        (tmp_path / "data" / name).write_text("mine")
    assert data("my.csv").read_text() == data("names.txt").read_text() == "mine"
    assert "my.csv" in data()


@pytest.mark.parametrize("name", ["/etc/passwd", "../numbers.py", ""])
def test_a_name_that_leads_elsewhere_is_refused(name):
    with pytest.raises(ValueError, match="leads elsewhere"):
        data(name)


def test_without_the_tutor_it_is_the_folder_that_the_tutor_would_use(monkeypatch, tmp_path):
    from tensortutor.lab.datasets import own_folder
    from tensortutor.learner.paths import Paths

    monkeypatch.delenv(DATA_FOLDER, raising=False)
    monkeypatch.setenv("TENSORTUTOR_HOME", str(tmp_path))
    assert own_folder() == Paths.find().data
    monkeypatch.delenv("TENSORTUTOR_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    assert own_folder() == Paths.find().data
