"""`%load_ext tensortutor`: explained errors and `%%lens` in IPython and Jupyter."""

import ast
import io
import re
import sys
from collections.abc import Callable, Iterable
from types import CodeType
from typing import Any

from IPython.core import display_functions, magic
from IPython.core.error import UsageError

from tensortutor.drawing.spans import is_unicode
from tensortutor.in_process import explanation, html
from tensortutor.plaintext import WORDY

LENS = "lens"
EVERYTHING = "--all"
USAGE = f"%%lens takes no argument but {EVERYTHING}, which follows all passes of each line."
AWAITS = (
    "%%lens cannot follow `await` outside a function. Run this cell without %%lens, and the lines "
    "whose tensors you want to see in a cell of their own."
)
NO_TORCH = "%%lens needs torch, and this kernel has none: {}."
NOT_PYTHON = "%%lens has not run this cell: it is not Python."
WIDTH = 88
HISTORY = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[ido]h|In|Out")
silenced: Any = getattr(magic, "output_can_be_silenced", lambda function: function)
"""A `;` at the end hides the value of the cell; from IPython 8.9 on."""
display: Any = display_functions.display
loaded: dict[int, "Extension"] = {}
"""By the id of their shell."""


def load(ipython: Any) -> None:
    """Begin to explain errors, and offer `%%lens`. Once is enough."""
    if id(ipython) not in loaded:
        loaded[id(ipython)] = Extension(ipython)


def unload(ipython: Any) -> None:
    """Take everything back."""
    extension = loaded.pop(id(ipython), None)
    if extension is not None:
        extension.leave()


class Extension:
    """What one shell has been given."""

    def __init__(self, ipython: Any) -> None:
        self._ipython = ipython
        self._seen: Any = None
        self._shown = ""
        ipython.register_magic_function(self.lens, "cell", LENS)
        ipython.events.register("pre_run_cell", self.before)
        ipython.events.register("post_run_cell", self.after)

    def leave(self) -> None:
        """Unregister everything."""
        self._ipython.events.unregister("pre_run_cell", self.before)
        self._ipython.events.unregister("post_run_cell", self.after)
        self._ipython.magics_manager.magics["cell"].pop(LENS, None)

    def before(self, _info: Any) -> None:
        """A cell begins."""
        self._seen = None

    def after(self, result: Any) -> None:
        """A cell has run, and its output and traceback stand there already."""
        seen, self._seen = self._seen, None
        error = result.error_before_exec if result.error_in_exec is None else result.error_in_exec
        if seen is not None and seen.error is not None:
            if error is None:
                # The magic has returned, so the cell counts as passed: "run all" would go on.
                result.error_in_exec = seen.error
            error = seen.error
        try:
            if error is not None:
                self._explain(error)
            if seen is not None:
                self._tell(seen)
        except Exception as defect:  # what is to help must not put a second traceback there
            print(f"tensortutor failed here: {type(defect).__name__}: {defect}", file=sys.stderr)

    def _explain(self, error: BaseException) -> None:
        found = explanation.explain(error)
        if found is not None:
            show(explanation.text_lines(found, WIDTH), html.explanation(found))

    def _tell(self, seen: Any) -> None:
        from tensortutor.commands.lens import FOLLOW_ALL, View
        from tensortutor.report import Printer

        how = f"%%lens {EVERYTHING}"
        view = View(Printer(io.StringIO(), io.StringIO()), self._shown, how)
        lines = [line for event in seen.events for line in view.event(event)]
        show(lines, html.lens_view(seen.events, self._shown, FOLLOW_ALL.format(how)))

    @silenced  # type: ignore[untyped-decorator]
    def lens(self, line: str, cell: str) -> Any:
        """Run the cell, then show what its lines did with tensors, and the last scalar's graph.

        %%lens          follows the first passes of each line
        %%lens --all    follows all of them
        """
        if line.strip() not in ("", EVERYTHING):
            raise UsageError(USAGE)
        try:
            from tensortutor.in_process import lens_cell
        except ImportError as error:
            raise UsageError(NO_TORCH.format(error)) from None
        text, compiled = self._compiled(cell, lens_cell.with_value)
        self._shown = f"{f'%%lens {line}'.rstrip()}\n{cell}"
        seen = lens_cell.run(
            text,
            compiled,
            self._ipython.user_ns,
            hidden=shells_own(self._ipython),
            everything=line.strip() == EVERYTHING,
        )
        self._seen = seen
        if seen.error is not None:
            mine = without_ours(seen.error, compiled.co_filename)
            self._ipython.showtraceback((type(mine), mine, mine.__traceback__), tb_offset=0)
        return seen.value

    def _compiled(self, cell: str, change: Callable[[ast.Module], object]) -> tuple[str, CodeType]:
        """The text of the cell, with its lines where the notebook has them, and its code.

        change: what is done to the tree before. Raises UsageError for a cell that awaits, and for
        one that is not Python, when that has been shown.
        """
        ipython = self._ipython
        name = ""
        try:
            above = cell[: len(cell) - len(cell.lstrip())].count("\n")  # dropped by the next line
            text = "\n" * (1 + above) + ipython.transform_cell(cell)
            name = ipython.compile.cache(text, number_of_cell(ipython))
            tree = ipython.compile.ast_parse(text, name)
            if awaits(tree):
                raise UsageError(AWAITS)
            tree = ipython.transform_ast(tree)
            change(tree)
            return text, ipython.compile(tree, name, "exec")
        except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
            ipython.showsyntaxerror(name)
            raise UsageError(NOT_PYTHON) from None


def without_ours(error: BaseException, path: str) -> BaseException:
    """The exception with a traceback that begins in this file."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return error.with_traceback(trace or error.__traceback__)


def awaits(tree: ast.Module) -> bool:
    """The cell waits for something outside a function, which a shell allows and Python does not."""
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.Await, ast.AsyncFor, ast.AsyncWith)) or (
            isinstance(node, ast.comprehension) and node.is_async
        ):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            todo += ast.iter_child_nodes(node)
    return False


def number_of_cell(ipython: Any) -> int:
    """The number of the cell that runs. The shell's own counter may be at the next one already."""
    result = getattr(ipython.displayhook, "exec_result", None)
    return int(getattr(result, "execution_count", None) or ipython.execution_count)


def shells_own(ipython: Any) -> frozenset[str]:
    """Names that the shell has put there: the history, `In`, `Out`, `_`, `exit`."""
    put = ipython.user_ns_hidden
    names = ipython.user_ns.items()
    return frozenset(n for n, v in names if HISTORY.fullmatch(n) or (n in put and put[n] is v))


def show(lines: Iterable[str], page: str) -> None:
    """One output, as text and as HTML; nothing if there is nothing."""
    text = "\n".join(lines).strip("\n")
    if text:
        if not is_unicode(sys.stdout):
            text = text.translate(WORDY)
        display({"text/plain": text, "text/html": page}, raw=True)
