"""Who may load what, and how long a function may be."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "tensortutor"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES_OF_A_FUNCTION = 60

GUESTS = ("worker", "checking", "lab")
CORE = (
    "options",
    "plaintext",
    "protocol",
    "drawing",
    "course",
    "learner",
    "runner",
    "transport",
    "lens",
)
LOADS_NOT = {
    **dict.fromkeys(CORE, ("textual", "rich", "torch", "numpy")),
    **dict.fromkeys(GUESTS, ("textual", "rich")),
    "ui": ("torch", "numpy", "jedi"),
    "report": ("textual", "rich", "torch", "numpy"),
    "explain": ("textual", "rich", "torch", "numpy"),
    "in_process": ("textual", "rich"),
    "jupyter": ("textual", "rich", "torch", "numpy"),
    **dict.fromkeys(("cli", "usage", "arguments", "commands"), ("textual", "torch", "numpy")),
}
MAY_IMPORT = {
    "protocol": {"protocol"},
    "drawing": {"drawing", "protocol"},
    "checking": {"torch", "checking"},
    "lab": {"torch", "lab", "drawing", "protocol"},
    "worker": {"torch", "worker", "checking", "lab", "drawing", "protocol"},
}
ALSO = {"worker/inference.py": ("jedi", "parso")}
"""What is sent along with our own code, and imported by the assistant's process alone."""
REPORT = """
import importlib, json, sys
unwanted, modules = json.loads(sys.argv[1])
for module in modules:
    importlib.import_module(module)
    print(json.dumps([module, sorted(set(unwanted) & set(sys.modules))]))
"""


def part(file: Path) -> str:
    """The part of the house that a file belongs to: a folder, or a module beside the folders."""
    return file.relative_to(PACKAGE).with_suffix("").parts[0]


def module_name(file: Path) -> str:
    names = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(names[:-1] if names[-1] == "__init__" else names)


def modules_of(name: str) -> list[str]:
    return [module_name(f) for f in FILES if part(f) == name and f.stem != "__main__"]


def imports_of(file: Path) -> Iterator[tuple[str, int]]:
    """Every module that a file cannot do without, with its line; those inside functions too."""
    package = module_name(file).split(".")
    if file.name != "__init__.py":
        package.pop()
    tree = ast.parse(file.read_text("utf-8"))
    optional = {id(node) for block in ast.walk(tree) for node in may_be_missing(block)}
    for node in ast.walk(tree):
        if id(node) in optional:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, node.module] if node.module else base)
            if module == "tensortutor":
                yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
            else:
                yield module, node.lineno


def may_be_missing(block: ast.AST) -> list[ast.stmt]:
    """The statements of `with contextlib.suppress(ImportError)`."""
    if isinstance(block, ast.With) and "suppress(ImportError)" in ast.unparse(block.items[0]):
        return block.body
    return []


def test_every_part_of_the_house_is_known():
    assert {part(file) for file in FILES} == {*LOADS_NOT, "__init__", "__main__"}


@pytest.mark.parametrize("name", LOADS_NOT)
def test_a_part_does_not_load_what_it_must_not(name):
    modules = modules_of(name)
    assert modules, f"there is no part {name!r}"
    task = json.dumps([LOADS_NOT[name], modules])
    done = subprocess.run(
        [sys.executable, "-c", REPORT, task], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    loaded = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(loaded) == len(modules)
    first = next((entry for entry in loaded if entry[1]), None)
    assert first is None, f"importing {first[0]} loads {', '.join(first[1])}"


@pytest.mark.parametrize("name", MAY_IMPORT)
def test_a_part_that_another_interpreter_runs_needs_nothing_else(name):
    allowed = MAY_IMPORT[name]
    strangers = []
    for file in (f for f in FILES if part(f) == name):
        for module, line in imports_of(file):
            root, _, rest = module.partition(".")
            known = rest.partition(".")[0] if root == "tensortutor" else root
            if module.partition(".")[0] in ALSO.get(str(file.relative_to(PACKAGE)), ()):
                continue
            if known not in allowed and known not in sys.stdlib_module_names:
                strangers.append(f"{file.relative_to(ROOT)}:{line} imports {module}")
    assert not strangers, "\n".join(strangers)


@pytest.mark.parametrize("file", FILES, ids=lambda f: str(f.relative_to(PACKAGE)))
def test_a_module_is_described_and_its_functions_are_short(file):
    text = file.read_text("utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "the module has no docstring"
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MOST_LINES_OF_A_FUNCTION, f"{node.name} has {length} lines"


@pytest.mark.parametrize(
    "module", ["lesson", "teach", "home", "review", "progress", "search", "reference"]
)
def test_at_most_two_classes_stand_between_a_screen_and_textual(module):
    """A screen is made of parts that it has, not of classes that it inherits from."""
    import importlib
    import inspect

    from textual.screen import Screen

    found = importlib.import_module(f"tensortutor.ui.screens.{module}")
    for _, kind in inspect.getmembers(found, inspect.isclass):
        if issubclass(kind, Screen) and kind.__module__.startswith("tensortutor"):
            between = [c for c in kind.__mro__[1:] if c.__module__.startswith("tensortutor")]
            assert len(between) <= 2, f"{kind.__name__}: {[c.__name__ for c in between]}"
