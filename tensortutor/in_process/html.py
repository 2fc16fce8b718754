"""Explanations and what the lens saw as HTML for notebooks.

Every text is escaped. There are no colours of its own, no scripts and no style sheets: it fits a
light and a dark notebook, and sites that strip styles still show all the words.
"""

import re
from collections.abc import Iterable, Iterator
from html import escape

from tensortutor.course.prose import paragraphs
from tensortutor.in_process.explanation import Explanation
from tensortutor.lens import lines, tables, trees
from tensortutor.lens.shape_alignment import aligned, error_lines
from tensortutor.plaintext import visible
from tensortutor.protocol.lens import Broadcasts, Graph, Tensors, Trace

CODE = re.compile("`([^`\n]+)`")
BOX = "margin: 0.4em 0; padding: 0 0 0 0.8em; border-left: 3px solid currentColor"
CELL = "text-align: left; vertical-align: top; padding: 0.1em 0.8em 0.1em 0"
NUMBER = "text-align: right; vertical-align: top; padding: 0.1em 0.8em 0.1em 0"
MONO = "font-family: monospace; white-space: pre"
PRE = "margin: 0.2em 0; padding: 0; background: none; overflow-x: auto"
FAINT = "opacity: 0.7"


def plain(text: str) -> str:
    """Text that is shown as it is: escaped, and without what acts on a reader's direction."""
    return escape(visible(text))


def prose(text: str) -> str:
    """A sentence; what stands between backquotes is code."""
    return CODE.sub(lambda code: f"<code>{code[1]}</code>", plain(text))


def explanation(one: Explanation) -> str:
    """What an error means, and the tensors of its line."""
    parts = [f"<p>About <code>{plain(one.about)}</code></p>"] if one.about else []
    told = one.told
    if told is not None:
        parts.append(f"<p><strong>{prose(told.title)}</strong></p>")
        for label, text in (("", told.here), ("", told.means), ("Way out: ", told.way_out)):
            for is_code, part in paragraphs(text):
                parts.append(pre([part]) if is_code else f"<p>{label}{prose(part)}</p>")
                label = ""
    if one.tensors:
        parts.append(f"<p>{title('Tensors of this line')}</p>")
        parts.append(table(("name", "tensor"), one.tensors))
    if told is not None and told.lesson:
        parts.append(f"<p>Lesson: <code>tensortutor show {plain(told.lesson)}</code></p>")
    return box(parts)


def lens_view(events: Iterable[object], source: str, follow_all: str) -> str:
    """What the lens saw in a cell. follow_all: a sentence for lines that were not followed."""
    parts: list[str] = []
    for event in events:
        if isinstance(event, Trace):
            parts += trace(event, source, follow_all)
        elif isinstance(event, Broadcasts):
            parts += broadcasts(event)
        elif isinstance(event, Tensors):
            parts += tensors(event)
        elif isinstance(event, Graph):
            parts += graph(event)
    return box(parts)


def trace(event: Trace, source: str, follow_all: str) -> Iterator[str]:
    """The cell with what its lines made."""
    notes = lines.notes(event)
    if notes:
        yield title("Lines")
        rows = (
            f'<tr><td style="{NUMBER}; {FAINT}">{number}</td>'
            f'<td style="{CELL}; {MONO}">{plain(text)}</td>'
            f'<td style="{CELL}; {MONO}">{plain(notes.get(number, ""))}</td></tr>'
            for number, text in enumerate(source.splitlines(), 1)
        )
        yield f"<table>{''.join(rows)}</table>"
        for line in event.lines:
            for remark in lines.remarks(line):
                yield sentence(f"line {line.line}: {remark}")
        if any(line.first_only for line in event.lines):
            yield sentence(follow_all)
    if event.note:
        yield sentence(event.note)


def broadcasts(event: Broadcasts) -> Iterator[str]:
    """Where the cell stopped at shapes that do not match."""
    for one in event.expressions:
        if one.raised and one.mismatch is not None:
            yield title(f"Line {one.line}: these do not fit")
            yield pre(aligned(one))
    error = event.error
    if error is not None:
        yield title(f"Line {error.line}: the shapes of {error.function} do not fit")
        yield pre(error_lines(error))


def tensors(event: Tensors) -> Iterator[str]:
    """The table of names, its empty columns left out."""
    made = tables.tensor_table(event)
    used = [i for i in range(len(made.columns)) if any(row[i] for row in made.rows)]
    if made.rows:
        yield title("Tensors")
        yield table(
            [made.columns[i] for i in used],
            [[row[i] for i in used] for row in made.rows],
            [number for number, i in enumerate(used) if i in made.right],
        )
    yield from map(sentence, made.below)


def graph(event: Graph) -> Iterator[str]:
    """The graphs, each as a tree."""
    for root in event.roots:
        yield title(f"Graph of {trees.root_title(root)}")
        yield pre(
            f"{'  ' * branch.depth}{branch.text}" for branch in trees.graph_tree(event, root.node)
        )
    if event.note:
        yield sentence(event.note)


def box(parts: Iterable[str]) -> str:
    """All of it behind a line at the left."""
    inside = "\n".join(parts)
    return f'<div class="tensortutor" style="{BOX}">\n{inside}\n</div>' if inside else ""


def title(text: str) -> str:
    """A heading; no `h3`, which would stand in the notebook's table of contents."""
    return f"<div><strong>{plain(text)}</strong></div>"


def sentence(text: str) -> str:
    """A remark."""
    return f'<div style="{FAINT}">{plain(text)}</div>'


def pre(text: Iterable[str]) -> str:
    """Lines whose columns count."""
    return f'<pre style="{PRE}">{plain(chr(10).join(text))}</pre>'


def table(columns: Iterable[str], rows: Iterable[Iterable[str]], right: Iterable[int] = ()) -> str:
    """A table of texts. right: the columns of numbers."""
    numbers = set(right)

    def cells(tag: str, texts: Iterable[str]) -> str:
        return "".join(
            f'<{tag} style="{NUMBER if index in numbers else CELL}">{plain(text)}</{tag}>'
            for index, text in enumerate(texts)
        )

    head = f"<thead><tr>{cells('th', columns)}</tr></thead>"
    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f"<table>{head}<tbody>{body}</tbody></table>"
