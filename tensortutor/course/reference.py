"""`lessons/reference/*.md`: the quick reference, the glossary and the appendices.

A page is Markdown: front matter, `##` sections, one `###` heading for each entry. An entry is a
meaning in a sentence or two, `See chapter/lesson.`, and code lines with their results.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor.course.frontmatter import FENCE, ID
from tensortutor.course.problems import Problem, Report, decode, listed, nearest
from tensortutor.course.read_file import read_course_file
from tensortutor.course.reference_samples import Sample, read_sample
from tensortutor.course.toml_tables import TEXT, Key, check_table, key_lines, load_toml

FOLDER = "lessons/reference"
KINDS = ("calls", "terms", "appendix", "sheet")
NAMED = re.compile(r"(\d\d)_([a-z0-9][a-z0-9_]*)\.md")
HEADING = re.compile(r"(#{2,3})[ \t]+(.+?)[ \t]*#*[ \t]*$")
OPENING = re.compile(r"(`{3,}|~{3,})[ \t]*(\S*)[ \t]*$")
LESSON = rf"{ID.pattern}(?![/\w])"
SEE = re.compile(rf"(?:^|(?<=\s))See\s+({LESSON}(?:,\s+{LESSON})*)\.$")
ALSO = re.compile(r"(?:^|(?<=\s))Also:\s+(.+?)\.(?=\s|$)", re.DOTALL)
ENDS = re.compile(r"[.?](?=\s|$)")
MOST_SENTENCES = {"calls": 3, "terms": 2}
"""A call may say in a short third one whether it gives a view or a copy."""
SHEET_COLUMNS = 64
MOST_COLUMNS = {"sheet": SHEET_COLUMNS}
"""A terminal of 80 columns shows 74 of a line of code, its frame taken off."""


def is_kind(value: Any) -> bool:
    """What kind of page it is."""
    return value in KINDS


KEYS = {
    "title": TEXT,
    "about": TEXT,
    "kind": Key(is_kind, listed([f'"{kind}"' for kind in KINDS], "or")),
}


@dataclass(frozen=True)
class Entry:
    """One call, term or recipe. names: what it is found by, the title's own first.

    meaning: Markdown, without the lessons. lessons: ids, the one to open first. page: its id.
    """

    title: str
    names: tuple[str, ...]
    meaning: str
    lessons: tuple[str, ...]
    samples: tuple[Sample, ...]
    section: str
    page: str
    line: int


@dataclass(frozen=True)
class Page:
    """One file. id: its name without number. kind: one of KINDS. intro: Markdown at its top.

    A page of kind "sheet" is printed whole; its entries repeat others and are not searched.

    sections: (title, Markdown below it before its first entry), in order.
    """

    id: str
    title: str
    about: str
    kind: str
    intro: str
    sections: tuple[tuple[str, str], ...]
    entries: tuple[Entry, ...]
    path: Path


def read_reference(root: Path) -> tuple[tuple[Page, ...], list[Problem]]:
    """The pages of the course in `root` by number, and what is wrong with them. Never raises."""
    pages, problems = [], list[Problem]()
    for path in sorted((root / FOLDER).glob("*.md")):
        report = Report(path.relative_to(root).as_posix())
        named = NAMED.fullmatch(path.name)
        if named is None:
            report.add(1, "a page's file is named NN_slug.md: rename it")
        else:
            data = read_course_file(path, report)
            if data is not None:
                pages.append(_page(decode(data, report), named[2], path, report))
        problems += sorted(report.problems)
    problems += _doubled(root, pages)
    return tuple(pages), problems


def lesson_problems(
    root: Path, pages: Sequence[Page], lessons: Sequence[str], planned: Sequence[str]
) -> Iterator[Problem]:
    """The entries that name a lesson which is not there.

    lessons: the ids of the course. planned: chapters that are still being written; any lesson of
    theirs may be named.
    """
    for page in pages:
        for entry in page.entries:
            for id in entry.lessons:
                if id not in lessons and id.partition("/")[0] not in planned:
                    near = nearest(id, lessons)
                    better = f"; the nearest is {near[0]!r}" if near else ""
                    path = page.path.relative_to(root).as_posix()
                    yield Problem(path, entry.line, f"there is no lesson {id!r}{better}")


def entries_of(pages: Sequence[Page]) -> tuple[Entry, ...]:
    """All entries, in the order of the pages."""
    return tuple(entry for page in pages for entry in page.entries)


def names_of(title: str) -> tuple[str, ...]:
    """What a title names: `torch.zeros(size), torch.ones(size)` names two functions."""
    parts, depth, start = [], 0, 0
    for place, sign in enumerate(title):
        depth += (sign in "([{") - (sign in ")]}")
        if sign == "," and not depth:
            parts.append(title[start:place])
            start = place + 1
    parts.append(title[start:])
    names = (re.sub(r"(?<=[\w)])\(.*", "", part.strip(" `")) for part in parts)
    return tuple(dict.fromkeys(name for name in names if name))


@dataclass
class _Part:
    """A heading, and the lines below it. depth: 1 for the top of the page, 2 or 3."""

    depth: int
    title: str
    line: int
    lines: list[str]
    fences: list[tuple[str, int]]


def _page(text: str, id: str, path: Path, report: Report) -> Page:
    front, start = _front(text, report)
    kind = front.get("kind", "appendix")
    parts = list(_parts(text.split("\n"), start, report))
    sections, entries, section = [], [], ""
    for part in parts[1:]:
        if part.depth == 2:
            section = part.title
            sections.append((section, "\n".join(part.lines).strip()))
        else:
            entries.append(_entry(part, kind, section, id, report))
    if not entries:
        report.add(1, "this page has no entry: begin one with ### and a name")
    return Page(
        id=id,
        title=front.get("title", id),
        about=front.get("about", ""),
        kind=kind,
        intro="\n".join(parts[0].lines).strip(),
        sections=tuple(sections),
        entries=tuple(entries),
        path=path,
    )


def _front(text: str, report: Report) -> tuple[dict[str, Any], int]:
    """The front matter, and the index of the line below it."""
    lines = text.split("\n")
    end = next((n for n, line in enumerate(lines) if n and line.rstrip() == FENCE), None)
    if lines[0].rstrip() != FENCE or end is None:
        report.add(1, f"the front matter is missing: begin with TOML between two lines {FENCE}")
        return {}, 0
    inside = "\n".join(lines[1:end])
    table = load_toml(inside, 2, "the front matter", report)
    if table is None:
        return {}, end + 1
    line_of = key_lines(inside, 2, otherwise=1)
    return check_table(table, KEYS, "the front matter", line_of, report), end + 1


def _parts(lines: Sequence[str], start: int, report: Report) -> Iterator[_Part]:
    """The page cut at its headings; Python fences apart from the prose."""
    part = _Part(1, "", start + 1, [], [])
    number = start
    while number < len(lines):
        line = lines[number]
        heading, opening = HEADING.match(line), OPENING.match(line)
        if heading is not None:
            yield part
            part = _Part(len(heading[1]), heading[2], number + 1, [], [])
        elif opening is not None:
            end = _closing(lines, number, opening[1], report)
            if opening[2] == "python" and part.depth == 3:
                part.fences.append(("\n".join(lines[number + 1 : end]) + "\n", number + 1))
            else:
                part.lines += lines[number : end + 1]
            number = end
        else:
            part.lines.append(line)
        number += 1
    yield part


def _closing(lines: Sequence[str], opening: int, fence: str, report: Report) -> int:
    for number in range(opening + 1, len(lines)):
        if lines[number].rstrip() == fence:
            return number
    report.add(opening + 1, f"this fence is not closed: add a line {fence}")
    return len(lines)


def _entry(part: _Part, kind: str, section: str, page: str, report: Report) -> Entry:
    text = "\n".join(part.lines).strip()
    see, also = SEE.search(text), ALSO.search(text)
    if see is None:
        report.add(
            part.line, "this entry leads to no lesson: end its text with `See chapter/lesson.`"
        )
    else:
        text = text[: see.start()].rstrip()
    others: list[str] = []
    if also is not None:
        others = [" ".join(name.split()).strip("`") for name in re.split(r",\s+", also[1])]
        text = (text[: also.start()] + text[also.end() :]).strip()
    if not text and kind != "sheet":
        report.add(part.line, "this entry says nothing: write its meaning in a sentence or two")
    elif len(ENDS.findall(_bare(text))) > MOST_SENTENCES.get(kind, 99):
        most = MOST_SENTENCES[kind]
        report.add(part.line, f"this entry has more than {most} sentences: shorten it")
    for code, line in part.fences:
        for number, written in enumerate(code.split("\n"), line + 1):
            most = MOST_COLUMNS.get(kind, 74)
            if len(written) > most:
                report.add(number, f"this line has {len(written)} columns of {most}")
    if kind in ("calls", "sheet") and not part.fences:
        report.add(part.line, "this entry has no code: add a `python` fence that shows results")
    return Entry(
        title=part.title.strip("`"),
        names=tuple(dict.fromkeys((*names_of(part.title), *others))),
        meaning=text,
        lessons=tuple(re.split(r",\s+", see[1])) if see is not None else (),
        samples=tuple(read_sample(code, line, report) for code, line in part.fences),
        section=section,
        page=page,
        line=part.line,
    )


def _bare(text: str) -> str:
    """Prose without code, whose full stops end nothing."""
    return re.sub(r"`[^`]*`|\b(?:e\.g|i\.e)\.", "x", text)


def _doubled(root: Path, pages: Sequence[Page]) -> Iterator[Problem]:
    """Entries of the same title: nobody could tell which is meant."""
    seen: dict[tuple[bool, str], str] = {}
    for page in pages:
        path = page.path.relative_to(root).as_posix()
        for entry in page.entries:
            key = (page.kind == "terms", entry.title)
            if key in seen:
                message = f"{entry.title!r} has an entry in {seen[key]} already: remove one"
                yield Problem(path, entry.line, message)
            seen.setdefault(key, f"{path}:{entry.line}")
