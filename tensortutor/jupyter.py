"""The app in a browser: an address of a Jupyter server that opens it in one of Jupyter's terminals.

Jupyter brings all that a browser needs: who may come in and from which page, a terminal that
outlives a reload, an address behind a hub's proxy. Nothing here listens anywhere.
"""

import contextlib
import signal
import sys
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupyter_server.auth.decorator import authorized
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.utils import url_path_join
from tornado import web

if TYPE_CHECKING:
    from jupyter_server.serverapp import ServerApp

NAME = "tensortutor"
"""Of the address and of the terminal."""
ICON = Path(__file__).with_name("jupyter.svg")
START = (
    "import sys; sys.path[:] = filter(None, sys.path); "
    "from tensortutor.cli import main; sys.exit(main())"
)
"""Not `-m tensortutor`: that imports from the server's folder, where notebooks and any `random.py`
beside them lie, before it imports from Python."""
COMMAND = ("env", "-u", "COLUMNS", "-u", "LINES", sys.executable, "-c", START)
"""terminado says the size at the start in COLUMNS and LINES, which would hold for ever."""


class DrawnAnew:
    """What terminado sends to a page that is opened or reloaded: nothing of what was written
    before. The app is told to set up its terminal again and to draw everything.

    terminado itself would send the last thousand pieces of output. After a while they no longer
    hold the picture: the app sends only what has changed.
    """

    def __init__(self, process: Any) -> None:
        """process: the app in its terminal, as ptyprocess has it."""
        self._process = process

    def append(self, text: str) -> None:
        """Something was written. It is not kept."""

    def copy(self) -> deque[str]:
        """The past, for a page that begins."""
        with contextlib.suppress(OSError):  # the app has ended
            self._process.kill(signal.SIGCONT)
        return deque()


class AppHandler(JupyterHandler):
    """Leads to the terminal in which the app runs, after starting it if it does not run."""

    auth_resource = "terminals"

    @web.authenticated
    @authorized(action="execute")  # type: ignore[untyped-decorator]
    def get(self) -> None:
        """Raises HTTPError 503 where the server has no terminals."""
        terminals = self.settings.get("terminal_manager")
        if terminals is None:
            raise web.HTTPError(503, "This Jupyter server has its terminals switched off.")
        if NAME not in terminals.terminals:
            terminals.create(name=NAME, shell_command=list(COMMAND))
            terminal = terminals.terminals[NAME]
            terminal.read_buffer = DrawnAnew(terminal.ptyproc)
        self.redirect(url_path_join(self.base_url, "terminals", NAME))


def tile() -> dict[str, Any]:
    """The tile for the launcher, as jupyter-server-proxy wants it: it leads to the address."""
    entry = {"title": NAME, "path_info": NAME, "category": "Other", "icon_path": str(ICON)}
    return {"launcher_entry": entry}


def _jupyter_server_extension_points() -> list[dict[str, str]]:
    return [{"module": __name__}]


def _load_jupyter_server_extension(server: "ServerApp") -> None:
    address = url_path_join(server.web_app.settings["base_url"], NAME)
    server.web_app.add_handlers(".*$", [(address, AppHandler)])
