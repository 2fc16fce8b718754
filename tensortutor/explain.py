"""`python -m tensortutor.explain script.py ARGUMENTS`: run a script, explain what it dies of.

The script runs as `python script.py ARGUMENTS` would run it, in this very process and not in the
sandbox. Nothing is loaded for it before it has failed.
"""

import builtins
import os
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType, TracebackType
from typing import Any

USAGE = (
    "usage: python -m tensortutor.explain script.py [arguments]\n"
    "Runs the script as `python script.py` does, and explains the error that it ends with.\n"
    "For a traceback that you have already: tensortutor explain train.log"
)
WIDTH = 88
WRONG_USE = 2


def main(arguments: list[str]) -> int:
    """Run the script that is named first. Raises what it raises; returns 2 if there is none."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE, file=sys.stdout if arguments else sys.stderr)
        return 0 if arguments else WRONG_USE
    name = arguments[0]
    try:
        with open(name, "rb") as file:
            source = file.read()
    except OSError as error:
        why = "it is a folder" if os.path.isdir(name) else (error.strerror or str(error)).lower()
        print(f"tensortutor.explain: cannot open {name!r}: {why}", file=sys.stderr)
        return WRONG_USE
    path = os.path.abspath(name)
    namespace = vars(become_main(path, arguments))
    try:
        # Without its own line in the traceback, as Python reports a script that it cannot read.
        code = compile(source, path, "exec", dont_inherit=True)
        del source
        exec(code, namespace)
    except SystemExit:
        raise
    except BaseException as error:
        # The interpreter does the rest: it calls this, waits for threads, sets the exit status.
        sys.excepthook = Hook(error, sys.excepthook, path)
        raise
    return 0


def become_main(path: str, arguments: list[str]) -> ModuleType:
    """The module `__main__` and the settings that Python gives a script."""
    module = ModuleType("__main__")
    module.__file__ = path
    module.__loader__ = SourceFileLoader("__main__", path)
    module.__package__ = None
    own: Any = vars(module)
    own.update(__builtins__=builtins, __cached__=None, __annotations__={})
    sys.modules["__main__"] = module
    sys.argv[:] = arguments
    if not getattr(sys.flags, "safe_path", False):  # with -P there is no such entry
        sys.path[0] = os.path.dirname(os.path.realpath(path))
    return module


class Hook:
    """Prints an uncaught exception as the script would have it printed, then explains it."""

    def __init__(self, error: BaseException, before: Any, path: str) -> None:
        self._error = error
        self._before = before
        self._path = path

    def __call__(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        """Called by the interpreter, in the place of `sys.excepthook`."""
        if error is self._error:
            trace = self._of_the_script(trace)
            error = error.with_traceback(trace)
        self._before(kind, error, trace)
        if error is self._error:
            explain(error)

    def _of_the_script(self, trace: TracebackType | None) -> TracebackType | None:
        """The traceback from the script on; none of a script that could not be read."""
        while trace is not None and trace.tb_frame.f_code.co_filename != self._path:
            trace = trace.tb_next
        return trace


def explain(error: BaseException) -> None:
    """Print what is known about an exception on stderr."""
    if isinstance(error, KeyboardInterrupt) or sys.stderr is None:
        return
    try:
        from tensortutor.in_process.explanation import explain, text_lines
        from tensortutor.report import Printer

        found = explain(error)
        printer = Printer(sys.stderr, sys.stderr)
        for line in text_lines(found, WIDTH) if found is not None else ():
            printer.error_line(line)
    except Exception as defect:  # what is to help must not put a second traceback there
        print(f"tensortutor failed here: {type(defect).__name__}: {defect}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
