"""`reference`: the quick reference and the glossary, searched from the command line."""

import textwrap
from argparse import Namespace
from collections.abc import Iterator, Sequence

from tensortutor.commands.errors import Refused
from tensortutor.commands.render import Writer
from tensortutor.commands.session import Session, chosen
from tensortutor.course.material import Prose
from tensortutor.course.problems import listed
from tensortutor.course.reference import Entry, Page, read_reference
from tensortutor.course.reference_sheet import sheet_markdown, sheet_of, sheet_text
from tensortutor.course.search import EXACT, Found, Index, Place, entry_places

UNKNOWN = 1
MOST_HITS = 12
TITLE = 34


def reference(session: Session, arguments: Namespace) -> int:
    """Show what is called TERM, a page, or the list of pages. Returns 1 for an unknown term."""
    pages, _ = read_reference(session.course.root)
    if not pages:
        raise Refused("This course has no reference.")
    if arguments.sheet is not None:
        if arguments.term or arguments.page is not None:
            raise Refused("--sheet prints one page: name no term and no other page with it.")
        return _show_sheet(session, pages, arguments.sheet)
    if arguments.page is not None:
        if arguments.term:
            raise Refused("Name a term, or say --page PAGE for a whole page.")
        return _show_page(session, pages, arguments.page)
    term = " ".join(arguments.term).strip()
    return _look_up(session, pages, term) if term else _list_pages(session, pages)


def _look_up(session: Session, pages: Sequence[Page], term: str) -> int:
    entries = {(e.page, e.title): (e, page) for page in pages for e in page.entries}
    index = Index(place for page in pages for place in entry_places(page))
    hits = index.search(term)
    if not hits:
        near = index.nearest(term)
        nearest = f" The nearest: {listed(near, 'or')}." if near else ""
        session.printer.note(f"The reference has nothing about {term!r}.{nearest}")
        return UNKNOWN
    if session.json:
        for hit in hits:
            entry, page = entries[_key(hit.place)]
            session.printer.json({**_as_json(entry, page), "score": round(hit.score, 1)})
        return 0
    exact = [hit for hit in hits if hit.score >= EXACT] or hits[: len(hits) == 1]
    for hit in exact:
        entry, page = entries[_key(hit.place)]
        for line in _entry(session, entry, page.title):
            session.printer.line(line)
    _list_hits(session, [hit for hit in hits if hit not in exact], bool(exact))
    return 0


def _key(place: Place) -> tuple[str, str]:
    return place.page, place.title


def _list_hits(session: Session, hits: Sequence[Found], after: bool) -> None:
    """What else fits, a line each."""
    printer = session.printer
    if not hits:
        return
    if after:
        printer.line(printer.paint("See also", "bold"))
    for hit in hits[:MOST_HITS]:
        title = hit.place.title
        title = title if len(title) <= TITLE else f"{title[: TITLE - 1]}…"
        room = printer.width - TITLE - 4
        snippet = textwrap.shorten(hit.snippet, room, placeholder=" …")
        printer.line(f"  {title:<{TITLE}}  {printer.paint(snippet, 'dim')}")
    if len(hits) > MOST_HITS:
        printer.line(f"  and {len(hits) - MOST_HITS} more; another word narrows it down")


def _entry(session: Session, entry: Entry, where: str = "") -> Iterator[str]:
    """An entry in full, with an empty line below it. where: said beside its title."""
    printer, writer = session.printer, Writer(session.printer)
    yield f"{printer.paint(entry.title, 'bold')}  {printer.paint(where, 'dim')}".rstrip()
    yield from writer.prose(Prose(entry.meaning, entry.line))
    for sample in entry.samples:
        yield ""
        yield from writer.code(sample.source)
    if entry.samples:
        yield ""
    known = {lesson.id: lesson.title for lesson in session.course.lessons}
    for id in entry.lessons:
        if id in known:
            yield f"Lesson {id}, {known[id]}: tensortutor show {id}{chosen(session.options)}"
        else:
            yield f"Lesson {id} is still to come."
    yield ""


def _list_pages(session: Session, pages: Sequence[Page]) -> int:
    printer = session.printer
    if session.json:
        for page in pages:
            printer.json(
                {
                    "event": "page", "page": page.id, "title": page.title, "about": page.about,
                    "kind": page.kind, "entries": len(page.entries),
                }
            )  # fmt: skip
        return 0
    for page in pages:
        name = f"{page.id:<12}  {page.title:<26}"
        count = printer.paint(f"{len(page.entries):>3} entries", "dim")
        printer.line(f"{printer.paint(name, 'bold')}{count}")
        for line in textwrap.wrap(page.about, printer.width - 4):
            printer.line(f"    {line}")
    again = chosen(session.options)
    printer.line()
    printer.line(f"Look up: tensortutor reference TERM{again}")
    printer.line(f"A whole page: tensortutor reference --page PAGE{again}")
    if sheet_of(pages) is not None:
        printer.line(f"One page to print: tensortutor reference --sheet{again}")
    return 0


def _show_page(session: Session, pages: Sequence[Page], name: str) -> int:
    page = next((page for page in pages if page.id == name), None)
    if page is None:
        raise Refused(f"There is no page {name!r}. The pages: {listed([p.id for p in pages])}.")
    printer, writer = session.printer, Writer(session.printer)
    if session.json:
        for entry in page.entries:
            printer.json(_as_json(entry, page))
        return 0
    printer.line(printer.paint(page.title, "bold"))
    printer.line(page.about)
    printer.line()
    if page.intro:
        for line in writer.prose(Prose(page.intro, 1)):
            printer.line(line)
        printer.line()
    section = ""
    for entry in page.entries:
        if entry.section != section:
            section = entry.section
            printer.line(printer.paint(section, "bold", "green"))
            printer.line()
        for line in _entry(session, entry):
            printer.line(line)
    return 0


def _show_sheet(session: Session, pages: Sequence[Page], form: str) -> int:
    page = sheet_of(pages)
    if page is None:
        raise Refused("This course has no sheet to print.")
    if session.json:
        return _show_page(session, pages, page.id)
    lines = sheet_text(page) if form == "text" else sheet_markdown(page).splitlines()
    for line in lines:
        session.printer.line(line)
    return 0


def _as_json(entry: Entry, page: Page) -> dict[str, object]:
    return {
        "event": "entry",
        "title": entry.title,
        "names": list(entry.names),
        "meaning": entry.meaning,
        "code": [sample.source for sample in entry.samples],
        "lessons": list(entry.lessons),
        "page": page.id,
        "section": entry.section,
        "kind": page.kind,
    }
