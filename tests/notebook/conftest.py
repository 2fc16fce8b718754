"""One kernel for all tests of the extension: starting it and importing torch takes seconds."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Ran:
    """What a cell has put below itself. failed: a notebook that runs all cells stops here."""

    outputs: list[Any]
    failed: bool

    @property
    def kinds(self) -> list[str]:
        """The kinds of the outputs, in order."""
        return [one.output_type for one in self.outputs]

    @property
    def shown(self) -> list[str]:
        """The text of what was displayed; the cell's own value is no part of it."""
        return [o.data["text/plain"] for o in self.outputs if o.output_type == "display_data"]

    @property
    def pages(self) -> list[str]:
        """The same as HTML."""
        return [o.data["text/html"] for o in self.outputs if o.output_type == "display_data"]

    @property
    def value(self) -> str:
        """The text of the cell's value, or ""."""
        values = [o.data["text/plain"] for o in self.outputs if o.output_type == "execute_result"]
        return "".join(values)

    @property
    def printed(self) -> str:
        """What was written to stdout and stderr."""
        return "".join(o.text for o in self.outputs if o.output_type == "stream")

    @property
    def traceback(self) -> str:
        """The traceback, without colours."""
        errors = (o for o in self.outputs if o.output_type == "error")
        return COLOURS.sub("", "\n".join("\n".join(error.traceback) for error in errors))


class Kernel:
    """Runs cells one after the other in the same kernel."""

    def __init__(self, client: NotebookClient) -> None:
        self._client = client

    def __call__(self, source: str) -> Ran:
        cells = self._client.nb.cells
        cells.append(nbformat.v4.new_code_cell(source))
        try:
            self._client.execute_cell(cells[-1], len(cells) - 1)
        except CellExecutionError:
            return Ran(cells[-1].outputs, True)
        return Ran(cells[-1].outputs, False)


@pytest.fixture(scope="session")
def kernel() -> Iterator[Kernel]:
    client = NotebookClient(nbformat.v4.new_notebook(), timeout=120)
    with client.setup_kernel():
        run = Kernel(client)
        loaded = run("%load_ext tensortutor\nimport torch\nfrom torch import nn")
        assert loaded.outputs == []
        yield run
