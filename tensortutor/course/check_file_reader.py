"""What a check file declares, read from its syntax tree. Nothing in it is run."""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensortutor.course.check_file import (
    CheckFile,
    Declared,
    Equivalent,
    Quote,
    Shortcut,
    Variant,
)
from tensortutor.course.problems import Report, decode, listed, nearest
from tensortutor.course.read_file import NOT_PYTHON, read_course_file, read_file

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
LESSON_ID = re.compile(r"[a-z][a-z0-9_]*/[a-z0-9][a-z0-9_]*")
DECLARED = re.compile(
    r"^@(?:[a-z_]+\.)*(?:check|mutant|accepted|hinted)\b.*?^(?:async[ \t]+)?(?:def|class)[ \t]+\w+",
    re.MULTILINE | re.DOTALL,
)
SHOWS = re.compile(r"^shows[ \t]*=[ \t]*\[[^\]]*\]", re.MULTILINE)


def read_check_file(path: Path, report: Report, *, thorough: bool = True) -> CheckFile:
    """The check file at `path`.

    thorough: parse every line. Without it only `shows` and the decorators are parsed (four times
    faster), a syntax error elsewhere in the file goes unseen, and so do statements such as
    `equivalent(...)`.
    """
    data = read_course_file(path, report)
    source = decode(data or b"", report)
    body = None if data is None else _body(source, report, thorough)
    if body is None:
        return CheckFile(path, source, (), (), ())
    reader = _Reader(report)
    for node in body:
        if isinstance(node, DEFINITIONS):
            reader.read(node)
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            reader.called(node.value)
        elif isinstance(node, ast.Assign):
            reader.assigned(node)
    reader.finish()
    if not reader.checks:
        report.add(1, 'there is no check: declare one with @check("what it wants")')
    return CheckFile(
        path,
        source,
        tuple(reader.checks.values()),
        tuple(reader.mutants),
        tuple(reader.accepted),
        tuple(reader.shortcuts),
        tuple(reader.equivalents),
        tuple(reader.hinted),
        tuple(reader.quotes),
        tuple(reader.background),
        tuple(reader.key_lines_shown),
        tuple(reader.shows),
    )


def read_shows(path: Path) -> tuple[str, ...]:
    """The ids in the `shows` of a check file, and nothing else of it; () if they cannot be read."""
    try:
        found = SHOWS.search(read_file(path).decode("utf-8", "replace"))
        statement = ast.parse(found[0]).body[0] if found else None
    except (OSError, *NOT_PYTHON):
        return ()
    return _texts(statement.value) or () if isinstance(statement, ast.Assign) else ()


def parse_python(source: str, first: int, what: str, report: Report) -> ast.Module | None:
    """The syntax tree of `source`, whose first line is line `first` of the file, or None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no concern here
            return ast.parse(source)
    except SyntaxError as error:
        line = min(error.lineno or 1, source.count("\n") + 1)
        report.add(first + line - 1, f"{what} is not Python: {error.msg}")
    except (ValueError, RecursionError, MemoryError) as error:
        report.add(first, f"{what} is not Python: {error}")
    return None


def defined_names(tree: ast.Module) -> tuple[str, ...]:
    """The names that a module's own statements bind to functions, classes and values."""
    names = []
    for node in tree.body:
        if isinstance(node, DEFINITIONS):
            names.append(node.name)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return tuple(names)


def _body(source: str, report: Report, thorough: bool) -> Sequence[ast.stmt] | None:
    """The module's statements, or those of them that declare something."""
    if not thorough:
        try:
            return _headers(source)
        except NOT_PYTHON:
            pass  # the whole file says better what is wrong
    tree = parse_python(source, 1, "the check file", report)
    return None if tree is None else tree.body


def _headers(source: str) -> list[ast.stmt]:
    """`shows`, and decorators and names of what the file declares, with empty bodies, in their
    lines."""
    kept, counted = "", 0
    for found in DECLARED.finditer(source):
        skipped = source.count("\n", counted, found.start())
        kept += "\n" * (skipped - 1 if counted else skipped) + f"{found[0]}(): pass\n"
        counted = found.end()
    shows: list[ast.stmt] = []
    if found_shows := SHOWS.search(source):
        above = source.count("\n", 0, found_shows.start())
        shows = ast.parse("\n" * above + found_shows[0]).body
    return [*shows, *(node for node in ast.parse(kept).body if isinstance(node, DEFINITIONS))]


@dataclass
class _Reader:
    """Reads definitions in their order, as Python would execute them."""

    report: Report
    checks: dict[str, str] = field(default_factory=dict)
    """Names of functions to names of checks."""
    mutants: list[Variant] = field(default_factory=list)
    accepted: list[Variant] = field(default_factory=list)
    shortcuts: list[Shortcut] = field(default_factory=list)
    equivalents: list[Equivalent] = field(default_factory=list)
    hinted: list[Variant] = field(default_factory=list)
    quotes: list[Quote] = field(default_factory=list)
    background: list[Declared] = field(default_factory=list)
    key_lines_shown: list[Declared] = field(default_factory=list)
    shows: list[Declared] = field(default_factory=list)

    def read(self, node: Definition) -> None:
        """Take in what the decorators of `node` declare."""
        declare = {"check": self._check, "mutant": self._mutant, "accepted": self._accepted}
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            word = _word(called)
            if word == "hinted":
                self._hinted(decorator, node)
            if word not in declare:
                continue
            name = _name(decorator)
            if name is None:
                self.report.add(
                    decorator.lineno, f'@{word} needs a name in quotes: @{word}("what it is")'
                )
            elif isinstance(decorator, ast.Call):
                declare[word](name, decorator, node)

    def called(self, call: ast.Call) -> None:
        """Take in what a call among the module's statements declares."""
        declare = {
            "equivalent": self._equivalent,
            "background": self._background,
            "key_line_shown": self._key_line_shown,
        }
        if declare_it := declare.get(_word(call.func)):
            declare_it(call)

    def assigned(self, node: ast.Assign) -> None:
        """Take in `shows = [...]` among the module's statements."""
        if [getattr(target, "id", "") for target in node.targets] != ["shows"]:
            return
        ids = _texts(node.value)
        if not ids:
            self.report.add(
                node.lineno, 'shows is a list of ids of lessons: shows = ["maths/matmul_einsum"]'
            )
        else:
            self.shows += [Declared(id, node.lineno) for id in ids]

    def finish(self) -> None:
        """What can be said when the whole file has been read."""
        known = {mutant.misconception for mutant in self.mutants}
        proved = {mutant.misconception for mutant in self.mutants if mutant.like}
        for shown in self.shows:
            if shown.text not in known:
                self.report.add(
                    shown.line,
                    f"shows names {shown.text!r}, and no mutant has that misconception: add "
                    f'@mutant("...", caught_by=..., misconception="{shown.text}", like="...")',
                )
            elif shown.text not in proved:
                self.report.add(
                    shown.line,
                    f"shows names {shown.text!r}, and no mutant says which mistake of that lesson "
                    'it makes: add like="..." with the name of a mutant of its check file',
                )

    def _background(self, call: ast.Call) -> None:
        texts = _texts(ast.Tuple(call.args))
        if not texts or not all(text.strip() for text in texts) or call.keywords:
            self.report.add(
                call.lineno, 'background needs sentences of the task in quotes: background("...")'
            )
        else:
            lines = [arg.lineno for arg in call.args]
            self.background += map(Declared, texts, lines)

    def _key_line_shown(self, call: ast.Call) -> None:
        name, because = _name(call), _text(_keyword(call, "because"))
        if name is None or because is None or len(call.args) != 1:
            self.report.add(
                call.lineno,
                "key_line_shown needs a call and the reason: "
                'key_line_shown("torch.where", because="...")',
            )
        else:
            self.key_lines_shown.append(Declared(name, call.lineno, because))

    def _equivalent(self, call: ast.Call) -> None:
        edit, because = _texts(ast.Tuple(call.args)), _text(_keyword(call, "because"))
        if edit is None or len(edit) != 2 or not because:
            self.report.add(
                call.lineno,
                "equivalent needs three strings: the statement, the edited statement, and "
                'because="why no check can tell"',
            )
        else:
            self.equivalents.append(Equivalent(*edit, because, call.lineno))

    def _check(self, name: str, call: ast.Call, node: Definition) -> None:
        if name in self.checks.values():
            self.report.add(call.lineno, f"there are two checks {name!r}: rename one")
        if node.name in self.checks:
            self.report.add(
                call.lineno, f"there are two check functions {node.name}(): rename this one"
            )
        self.checks[node.name] = name
        forbids = _texts(_keyword(call, "forbid"))
        if forbids is None:
            self.report.add(
                call.lineno, 'forbid must be a tuple of names in quotes: forbid=("torch.softmax",)'
            )
        elif forbids:
            self.shortcuts.append(Shortcut(name, forbids, call.lineno))
        self._quotes(name, call)

    def _quotes(self, name: str, call: ast.Call) -> None:
        """What a check says of the task's sentences."""
        holds, side = _keyword(call, "holds"), _keyword(call, "side")
        both = _keyword(call, "both_sides")
        quotes = (_text(holds),) if isinstance(holds, ast.Constant) else _texts(holds)
        if quotes is None or not all(words and words.strip() for words in quotes):
            self.report.add(
                call.lineno, "holds must be words of the task in quotes, or a list of them"
            )
            return
        if (side is not None and _text(side) is None) or (
            both is not None and getattr(both, "value", None) is not True
        ):
            self.report.add(call.lineno, 'write side="..." in quotes, or both_sides=True')
        elif (side is not None or both is not None) and not quotes:
            self.report.add(call.lineno, "a side belongs to a sentence: add holds= with its words")
        elif side is not None and both is not None:
            self.report.add(
                call.lineno, "a check tries one side or both: drop side= or both_sides="
            )
        line = holds.lineno if holds is not None else call.lineno
        for words in quotes:
            self.quotes.append(Quote(name, words or "", line, _text(side) or "", both is not None))

    def _hinted(self, decorator: ast.expr, node: Definition) -> None:
        call = decorator if isinstance(decorator, ast.Call) else None
        number = call.args[0] if call is not None and call.args else None
        value = number.value if isinstance(number, ast.Constant) else None
        reaches = _keyword(call, "reaches") if call is not None else None
        if call is None or type(value) is not int or value < 1:
            self.report.add(
                decorator.lineno,
                "@hinted needs the hint's number: @hinted(1, reaches=check_function)",
            )
            return
        # The name under which tensortutor.checking.hinted declares it.
        name = f"follows hint {value} in {node.name}"
        variant = self._variant(name, call, node)
        if not isinstance(reaches, ast.Name):
            self.report.add(
                call.lineno,
                f"the answer that {name} lacks reaches: the function of the check that it passes",
            )
        elif reaches.id not in self.checks:
            self.report.add(
                reaches.lineno,
                f"the answer that {name} reaches {reaches.id}, which is no check above it; "
                + self._known(reaches.id),
            )
        else:
            variant = replace(variant, reaches=self.checks[reaches.id])
        self.hinted.append(replace(variant, hint=value))

    def _mutant(self, name: str, call: ast.Call, node: Definition) -> None:
        caught_by = _keyword(call, "caught_by")
        variant = self._variant(name, call, node)
        if not isinstance(caught_by, ast.Name):
            self.report.add(
                call.lineno,
                f"the mutant {name!r} lacks caught_by: the function of the check that must fail",
            )
        elif caught_by.id not in self.checks:
            self.report.add(
                caught_by.lineno,
                f"the mutant {name!r} is caught by {caught_by.id}, which is no check above it; "
                + self._known(caught_by.id),
            )
        else:
            variant = replace(variant, caught_by=self.checks[caught_by.id])
        misconception = _keyword(call, "misconception")
        if misconception is not None and not is_lesson_id(_text(misconception)):
            self.report.add(
                misconception.lineno,
                f"the misconception of the mutant {name!r} is the id of a lesson, as "
                '"maths/matmul_einsum"',
            )
        like = _keyword(call, "like")
        if like is not None and (_text(like) is None or misconception is None):
            self.report.add(
                like.lineno,
                f"like of the mutant {name!r} is the name of a mutant of the lesson that "
                "misconception= names",
            )
        self.mutants.append(
            replace(variant, misconception=_text(misconception) or "", like=_text(like) or "")
        )

    def _accepted(self, name: str, call: ast.Call, node: Definition) -> None:
        self.accepted.append(self._variant(name, call, node))

    def _variant(self, name: str, call: ast.Call, node: Definition) -> Variant:
        others = (*self.mutants, *self.accepted, *self.hinted)
        if any(other.name == name for other in others):
            self.report.add(call.lineno, f"there are two variants {name!r}: rename one")
        if node.name in self.checks:
            self.report.add(
                call.lineno, f"{node.name}() is the name of a check too: rename the check"
            )
        return Variant(name, node.name, call.lineno)

    def _known(self, word: str) -> str:
        if not self.checks:
            return "the file has no checks"
        near = nearest(word, list(self.checks))[0]
        return f"the nearest is {near} (checks: {listed(list(self.checks))})"


def is_lesson_id(text: str | None) -> bool:
    """The form of a lesson's id."""
    return text is not None and LESSON_ID.fullmatch(text) is not None


def _word(function: ast.expr) -> str:
    """The last part of a function's name."""
    word = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return str(word)


def _name(decorator: ast.expr) -> str | None:
    """The string that a decorator is called with, if there is one that is not blank."""
    if isinstance(decorator, ast.Call) and decorator.args:
        return _text(decorator.args[0])
    return None


def _text(node: ast.expr | None) -> str | None:
    """A string that is not blank."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.strip():
        return node.value
    return None


def _keyword(call: ast.Call, name: str) -> ast.expr | None:
    return next((keyword.value for keyword in call.keywords if keyword.arg == name), None)


def _texts(node: ast.expr | None) -> tuple[str, ...] | None:
    """The strings of a tuple, list or set of literals; () for None; None for anything else."""
    if node is None:
        return ()
    if not isinstance(node, (ast.Tuple, ast.List, ast.Set)):
        return None
    values = [item.value for item in node.elts if isinstance(item, ast.Constant)]
    texts = tuple(value for value in values if isinstance(value, str))
    return texts if len(texts) == len(node.elts) else None
