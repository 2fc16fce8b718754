"""Starts a zygote: `PYTHON .../tensortutor/worker/__main__.py CONTROL_FD`.

With `try` for the number it only finds out whether the full layer works inside bubblewrap.

Runs as a script, under any interpreter that has torch: tensortutor need not be installed there.
The package is therefore put together here from its folder alone, without its neighbours on
`sys.path`.
"""

import sys
import types
from pathlib import Path


def assemble() -> None:
    """Make `import tensortutor.worker` work without putting site-packages on the path."""
    package = types.ModuleType("tensortutor")
    package.__path__ = [str(Path(__file__).resolve().parent.parent)]
    sys.modules["tensortutor"] = package
    here = str(Path(__file__).resolve().parent)
    sys.path[:] = [entry for entry in sys.path if entry != here]


if __name__ == "__main__":
    assemble()
    if sys.argv[1] == "try":
        from tensortutor.worker.confine import why_not_isolated

        sys.exit(why_not_isolated() or 0)
    from tensortutor.worker.zygote import main

    main(int(sys.argv[1]))
