"""Judges lessons/11_projects/01_files_to_tensors.md."""

import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.utils.data import Dataset

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    hinted,
    mutant,
)

background("Write `Folder(root, read, classes=None)`")

equivalent(
    "self.classes = found if classes is None else list(classes)",
    "self.classes = found if classes is None else classes",
    because="Whether the list is copied is left to the learner.",
)
equivalent(
    "return self.read(path)[None].float() / 255, label",
    "return self.read(path)[None] / 255, label",
    because="Integers that are divided become float32 anyway.",
)

SHIFT = "A class that is missing in a folder shifts the numbers of all behind it."


@contextmanager
def folder(rng, names, per=3, strange=False):
    """(root, {path: pixels}) of a new folder of classes; strange: with what does not count."""
    root, pixels = Path(tempfile.mkdtemp()), {}
    try:
        for name in names:
            (root / name).mkdir()
            for number in rng.sample(range(1000), per):
                path = root / name / f"{number:04d}.{rng.choice(('png', 'PNG'))}"
                path.touch()
                pixels[path] = torch.randint(0, 256, (3, 5), dtype=torch.uint8)
        if strange:
            (root / ".cache").mkdir()
            (root / ".cache" / "0000.png").touch()
            (root / "README.txt").touch()
            for other in ("notes.txt", "0001.png.bak", "old_png"):
                (root / names[0] / other).touch()
        yield root, pixels
    finally:
        shutil.rmtree(root)


def some_names(rng):
    """Five, of which some stand elsewhere by their number, or without capitals."""
    names = ["10", "2", "Dog", *rng.sample(["cat", "owl", "bee"], 2)]
    return rng.sample(names, 5)


def reader(pixels, reads=None):
    def read(path):
        if reads is not None:
            reads.append(path)
        return pixels[Path(path)]

    return read


@check(
    "the classes are the sorted names of the folders",
    holds=[
        "`ds.classes` are the class names in the order of their numbers.",
        "Without `classes` they are the names of the folders, sorted.",
    ],
)
def class_names(answer, rng, device):
    names = some_names(rng)
    with folder(rng, names) as (root, pixels):
        ds = answer.Folder(str(root) if rng.random() < 0.5 else root, reader(pixels))
        hint = "The disk lists folders in any order. Sort their names, as text."
        expect_equal(list(ds.classes), sorted(names), name="ds.classes", hint=hint)


@check("an empty class keeps its number", holds="A class whose folder is empty keeps its number.")
def empty_class(answer, rng, device):
    names = some_names(rng)
    with folder(rng, names) as (root, pixels):
        (root / "a_empty").mkdir()
        ds = answer.Folder(root, reader(pixels))
        hint = "A folder is a class, whether or not it holds a file."
        expect_equal(list(ds.classes), sorted([*names, "a_empty"]), name="ds.classes", hint=hint)


@check("hidden folders are no classes", holds="Hidden folders, whose names begin with a dot")
def hidden(answer, rng, device):
    names = some_names(rng)
    with folder(rng, names, strange=True) as (root, pixels):
        hint = "A file beside the folders is no class. Path.is_dir() tells them apart."
        with advising(NotADirectoryError, hint=hint):
            ds = answer.Folder(root, reader(pixels))
        expect_equal(list(ds.classes), sorted(names), name="ds.classes", hint="Look for the dot.")


@check(
    "only images count",
    holds=[
        "The images are the files that end in `.png`, in small or capital letters.",
        "Other files do not count.",
    ],
    both_sides=True,
)
def images_only(answer, rng, device):
    with folder(rng, some_names(rng), per=rng.randint(5, 8), strange=True) as (root, pixels):
        ds = answer.Folder(root, reader(pixels))
        expect_equal(
            len(ds),
            len(pixels),
            name="len(ds)",
            hint="The name of an image ends in .png or .PNG, with the dot.",
        )


@check(
    "an item is an image from 0 to 1 and a label",
    holds=[
        "Images come in the order of their class names as text, and of their file names",
        "the image as float32 of shape (1, H, W) from 0 to 1",
    ],
)
def items(answer, rng, device):
    names = some_names(rng)
    with folder(rng, names) as (root, pixels):
        ds = answer.Folder(root, reader(pixels))
        for i, path in enumerate(sorted(pixels, key=lambda p: (p.parent.name, p.name))):
            x, label = ds[i]
            expect_close(
                x,
                pixels[path].float()[None] / 255,
                name=f"the image of ds[{i}]",
                hint="Bytes from 0 to 255 become floats from 0 to 1; files stand in sorted order.",
                shape_hint="A grey image has one channel: (1, H, W).",
            )
            wanted = sorted(names).index(path.parent.name)
            hint = "The place of the class among ds.classes."
            expect_equal(int(label), wanted, name=f"the label of ds[{i}]", hint=hint)


@check(
    "nothing is read before it is asked for",
    holds="`read` is called for an image when its item is asked for, and not before.",
)
def late(answer, rng, device):
    with folder(rng, some_names(rng)) as (root, pixels):
        reads = []
        ds = answer.Folder(root, reader(pixels, reads))
        hint = "__init__ makes the index. Call read in __getitem__."
        expect_equal(len(reads), 0, name="the files read by __init__", hint=hint)
        for i, path in enumerate(sorted(pixels, key=lambda p: (p.parent.name, p.name))):
            reads.clear()
            ds[i]
            what = f"the files read for ds[{i}]"
            expect_equal([Path(p) for p in reads], [path], name=what, hint="One item, one file.")


@check(
    "the given classes decide",
    holds="Where `classes` is given, it decides, even when a folder is missing.",
    hint=SHIFT,
)
def given(answer, rng, device):
    classes = some_names(rng)
    gone = sorted(classes)[rng.randrange(3)]
    with folder(rng, [c for c in classes if c != gone]) as (root, pixels):
        ds = answer.Folder(root, reader(pixels), classes=classes)
        expect_equal(list(ds.classes), classes, name="ds.classes", hint=SHIFT)
        for i, path in enumerate(sorted(pixels, key=lambda p: (p.parent.name, p.name))):
            label = int(ds[i][1])
            expect_equal(label, classes.index(path.parent.name), name="the label", hint=SHIFT)


@check(
    "an unknown class is an error",
    holds="A folder that is not in it is a class that training did not see: ValueError.",
)
def unknown(answer, rng, device):
    classes = some_names(rng)
    with folder(rng, [classes[0], "unknown_" + classes[1]]) as (root, pixels):
        message = "a class that training never saw got a label, or was left out"
        with expect_raises(ValueError, message, hint="Say so with ValueError."):
            answer.Folder(root, reader(pixels), classes=classes)
        shutil.rmtree(root / ("unknown_" + classes[1]))
        (root / "zz_unknown_and_empty").mkdir()
        with expect_raises(ValueError, message, hint="Compare the folders, not their files."):
            answer.Folder(root, reader(pixels), classes=classes)


@check(
    "a label is an int",
    holds="and its label, an int",
)
def whole(answer, rng, device):
    with folder(rng, some_names(rng)) as (root, pixels):
        label = answer.Folder(root, reader(pixels))[0][1]
        expect_true(isinstance(label, int), f"the label is {label!r}", hint="An int, not a name.")


class Base(Dataset):
    """A right answer, for the wrong ones to differ from."""

    def __init__(self, root, read, classes=None):
        self.read = read
        found = sorted(
            p.name for p in Path(root).iterdir() if p.is_dir() and not p.name.startswith(".")
        )
        self.classes = found if classes is None else list(classes)
        if set(found) - set(self.classes):
            raise ValueError("unknown")
        self.items = [
            (path, self.classes.index(name))
            for name in found
            for path in sorted((Path(root) / name).iterdir())
            if path.suffix.lower() == ".png"
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, label = self.items[i]
        return self.read(path)[None].float() / 255, label


@mutant("numbers the classes that it finds", caught_by=given)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read)


@mutant("decodes everything in __init__", caught_by=late)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.kept = [(read(path)[None].float() / 255, label) for path, label in self.items]

    def __getitem__(self, i):
        return self.kept[i]


@mutant("takes the classes in another order", caught_by=class_names)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        if classes is None:
            self.classes = self.classes[::-1]
            self.items = [(p, len(self.classes) - 1 - n) for p, n in self.items]


@mutant("leaves bytes from 0 to 255", caught_by=items)
class Folder(Base):
    def __getitem__(self, i):
        path, label = self.items[i]
        return self.read(path)[None].float(), label


@mutant("takes every file", caught_by=images_only)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.items = [
            (path, n)
            for n, name in enumerate(self.classes)
            if (Path(root) / name).is_dir()
            for path in sorted((Path(root) / name).iterdir())
        ]


@mutant("looks for .png anywhere in the name", caught_by=images_only)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        folders = [(Path(root) / name, n) for n, name in enumerate(self.classes)]
        self.items = [
            (path, n)
            for at, n in folders
            if at.is_dir()
            for path in sorted(at.iterdir())
            if ".png" in path.name.lower()
        ]


@mutant("looks for png without the dot", caught_by=images_only)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        folders = [(Path(root) / name, n) for n, name in enumerate(self.classes)]
        self.items = [
            (path, n)
            for at, n in folders
            if at.is_dir()
            for path in sorted(at.iterdir())
            if path.name.lower().endswith("png")
        ]


@mutant("sorts names as numbers where they are some", caught_by=class_names)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.classes = sorted(self.classes, key=lambda n: (len(n), n))


@mutant("sorts names without regard to capitals", caught_by=class_names)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.classes = sorted(self.classes, key=str.lower)


@mutant("reads one image ahead", caught_by=late)
class Folder(Base):
    def __getitem__(self, i):
        if i + 1 < len(self):
            self.read(self.items[i + 1][0])
        return super().__getitem__(i)


@mutant("takes small letters only", caught_by=images_only)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.items = [(path, n) for path, n in self.items if path.suffix == ".png"]
        self.items += self.items[:1] if not self.items else []


@mutant("leaves unknown classes out", caught_by=unknown)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        try:
            super().__init__(root, read, classes)
        except ValueError:
            self.items = []


@mutant("numbers only classes that have files", caught_by=empty_class)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        if classes is None:
            used = sorted({n for _, n in self.items})
            self.classes = [self.classes[n] for n in used]
            self.items = [(p, used.index(n)) for p, n in self.items]


@mutant("takes hidden folders too", caught_by=hidden)
class Folder(Base):
    def __init__(self, root, read, classes=None):
        super().__init__(root, read, classes)
        self.classes = sorted({*self.classes, *(p.name for p in Path(root).glob(".*"))})


@mutant("gives the class's name as label", caught_by=whole)
class Folder(Base):
    def __getitem__(self, i):
        x, label = super().__getitem__(i)
        return x, self.classes[label]


@hinted(1, reaches=empty_class)
class Folder(Dataset):
    def __init__(self, root, read, classes=None):
        self.read = read
        found = sorted(
            p.name for p in Path(root).iterdir() if p.is_dir() and not p.name.startswith(".")
        )
        self.classes = found if classes is None else classes
        self.items = [
            (path, number)
            for number, name in enumerate(self.classes)
            for path in (Path(root) / name).iterdir()
        ]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        path, label = self.items[i]
        return self.read(path), label


@accepted("globs over all classes at once")
class Folder(Dataset):
    def __init__(self, root, read, classes=None):
        root = Path(root)
        dirs = sorted(p.name for p in root.iterdir() if p.is_dir() and p.name[0] != ".")
        self.classes = dirs if classes is None else classes
        number = {name: n for n, name in enumerate(self.classes)}
        if not number.keys() >= set(dirs):
            raise ValueError("a class that training did not know")
        paths = [p for p in root.glob("*/*") if p.name.lower().endswith(".png")]
        paths = sorted(p for p in paths if not p.parent.name.startswith("."))
        self.paths, self.labels = paths, [number[p.parent.name] for p in paths]
        self.read = read

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        x = torch.true_divide(self.read(str(self.paths[i])), 255)
        return x.unsqueeze(0), self.labels[i]


@accepted("walks the tree with os")
class Folder(Dataset):
    def __init__(self, root, read, classes=None):
        names = sorted(n for n in next(os.walk(root))[1] if not n.startswith("."))
        self.classes = list(classes) if classes is not None else names
        self.root, self.read, self.where = root, read, []
        for name in names:
            if name not in self.classes:
                raise ValueError(name)
            for file in sorted(next(os.walk(os.path.join(root, name)))[2]):
                if os.path.splitext(file)[1].lower() == ".png":
                    self.where.append((name, file))

    def __len__(self):
        return len(self.where)

    def __getitem__(self, i):
        name, file = self.where[i]
        x = self.read(Path(self.root, name, file))
        return x.unsqueeze(0).to(torch.float32).div(255), self.classes.index(name)
