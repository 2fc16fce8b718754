"""The name under the cursor."""

import re

NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def names_at(line: str, column: int) -> tuple[str, ...]:
    """What may be meant at a column of a line, the longest first; () if no name is there.

    In `torch.linalg.solve(A)` with the cursor on `solve` these are `torch.linalg.solve` and
    `solve`. Right behind a name, that name is meant.
    """
    for found in NAME.finditer(line):
        if found.start() <= column <= found.end():
            end = line.find(".", column, found.end())
            name = line[found.start() : found.end() if end < 0 else end]
            return tuple(dict.fromkeys((name, name.rpartition(".")[2])))
    return ()
