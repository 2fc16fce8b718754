"""Tables as lines of text, for panes that are read like a page."""

from collections.abc import Iterator

from tensortutor.lens.tables import Table


def table_lines(table: Table) -> Iterator[str]:
    """The head, the rows and what stands below; columns that hold nothing are left out."""
    used = [i for i in range(len(table.columns)) if any(row[i] for row in table.rows)]
    rows = [table.columns, *table.rows] if table.rows else []
    widths = {i: max(len(row[i]) for row in rows) for i in used}
    for row in rows:
        cells = (
            row[i].rjust(widths[i]) if i in table.right else row[i].ljust(widths[i]) for i in used
        )
        yield "  ".join(cells).rstrip()
    yield from table.below
