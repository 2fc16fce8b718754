"""How a learner stands, as rows of a list and as words beside it. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from textual.content import Content

from tensortutor.learner.mastery import ChapterStanding, Level, Standing, duration
from tensortutor.ui import describe
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.terminal import symbols

BAR = 12
COLUMNS_FROM = 60
"""In less room than this the columns at the right go, and the title stays."""
BAR_COLUMN, COUNT_COLUMN, WELL_COLUMN, TIME_COLUMN = range(4)
CHAPTER_KEEPS = (COUNT_COLUMN, WELL_COLUMN, TIME_COLUMN, BAR_COLUMN)
"""A chapter's columns, the one that stays longest first: the bar says what the count says."""
LEVEL, CHECKS, TIME = range(3)
LESSON_KEEPS = (LEVEL, TIME, CHECKS)
"""The same of a lesson."""


class Kind(NamedTuple):
    """Which lessons are shown. levels: none stands for the course as a tree."""

    title: str
    levels: tuple[Level, ...]
    nothing: str = ""


KINDS = (
    Kind("Everything", ()),
    Kind("Known well", (Level.WELL,), "Nothing yet. What that asks for stands beside this list."),
    Kind(
        "Worth another look",
        (Level.HELPED, Level.PASSED),
        "Nothing: what you have passed, you have mastered.",
    ),
    Kind("Begun", (Level.BEGUN,), "Nothing is begun and left open."),
)

LOOKS = {Level.WELL: "$text-success", Level.HELPED: "$text-warning"}
"""The colours of levels that stand out."""

Entry = ChapterStanding | Standing


def mark(level: Level) -> str:
    """The sign of a level: another one for each, in ASCII too."""
    signs = symbols.current()
    known = {Level.NEW: signs.ahead, Level.BEGUN: signs.here, Level.WELL: signs.passed}
    known[Level.KNOWN] = signs.known
    known[Level.PASSED] = "-"
    return known.get(level, "~")


def entries(
    standings: Iterable[ChapterStanding], kind: Kind, unfolded: frozenset[str]
) -> list[Entry]:
    """What is shown, top to bottom."""
    found: list[Entry] = []
    for one in standings:
        if kind.levels:
            found += [lesson for lesson in one.lessons if lesson.level in kind.levels]
        else:
            found.append(one)
            found += one.lessons if one.chapter.id in unfolded else ()
    return found


def standing_rows(
    shown: Sequence[Entry], names: Mapping[str, str], unfolded: frozenset[str], width: int
) -> list[Content]:
    """All rows. A column is shown where the longest title leaves room for it.

    names: of lessons, by id.
    """
    lefts = [
        chapter_title(entry, entry.chapter.id in unfolded)
        if isinstance(entry, ChapterStanding)
        else lesson_title(entry, names[entry.lesson.id])
        for entry in shown
    ]
    longest = {
        kind: max(
            (
                left.cell_length
                for entry, left in zip(shown, lefts, strict=True)
                if isinstance(entry, kind)
            ),
            default=0,
        )
        for kind in (ChapterStanding, Standing)
    }
    return [
        chapter_row(entry, left, longest[ChapterStanding], width)
        if isinstance(entry, ChapterStanding)
        else lesson_row(entry, left, longest[Standing], width)
        for entry, left in zip(shown, lefts, strict=True)
    ]


def chapter_title(one: ChapterStanding, is_open: bool) -> Content:
    """The left part of a chapter's row."""
    signs = symbols.current()
    fold = signs.opened if is_open else signs.closed
    number = Content.styled(f"{fold} {one.chapter.number:>2}  ", "$foreground 66%")
    return number + OutsideText(one.chapter.title).styled("bold")


def lesson_title(one: Standing, name: str) -> Content:
    """The left part of a lesson's row."""
    return (
        Content.styled(f"      {mark(one.level)} ", LOOKS.get(one.level, ""))
        + OutsideText(name).title
    )


def chapter_row(one: ChapterStanding, left: Content, longest: int, width: int) -> Content:
    """A chapter in one line. longest: cells of the longest title beside which it stands."""
    full, empty = describe.bar(one.passed, len(one.lessons), BAR)
    well = one.count(Level.WELL)
    right = [
        Content.styled(full, "$accent") + Content.styled(empty, "$foreground 66%"),
        Content(f"{one.passed}/{len(one.lessons)}".rjust(7)),
        Content((f"{well} well" if one.passed else "").rjust(8)),
        Content.styled(time(one.seconds).rjust(12), "$foreground 66%"),
    ]
    return row(left, columns_that_fit(right, CHAPTER_KEEPS, width - longest), width)


def lesson_row(one: Standing, left: Content, longest: int, width: int) -> Content:
    """A lesson in one line. longest: as in `chapter_row`."""
    look = LOOKS.get(one.level, "$foreground 66%")
    right = [
        Content.styled(one.level.value.ljust(17), look),
        Content.styled(counted(one.attempts, "check").rjust(10), "$foreground 66%"),
        Content.styled(time(one.seconds).rjust(12), "$foreground 66%"),
    ]
    return row(left, columns_that_fit(right, LESSON_KEEPS, width - longest), width)


def columns_that_fit(columns: Sequence[Content], keep: Sequence[int], room: int) -> Content:
    """The columns that fit into so many cells, in their order; the first of `keep` always."""
    kept: list[int] = []
    for number in keep:
        room -= columns[number].cell_length
        if kept and room < 1:
            break
        kept.append(number)
    return Content("").join(columns[number] for number in sorted(kept))


def row(left: Content, right: Content, width: int) -> Content:
    """Both parts on one line; the left one is cut if it must be."""
    if width < COLUMNS_FROM:
        right = Content()
    room = max(1, width - right.cell_length - 1)
    if left.cell_length > room:
        left = left.truncate(room - 1) + Content(symbols.current().cut)
    return left.pad_right(width - left.cell_length - right.cell_length) + right


def about_chapter(one: ChapterStanding) -> Content:
    """A chapter in a few lines."""
    counts = [f"{one.count(level)} {level.value}" for level in reversed(Level) if one.count(level)]
    checks = sum(lesson.attempts for lesson in one.lessons)
    facts = [f"{counted(checks, 'check')} run" if checks else "", spent(one.seconds)]
    return paragraphs(
        OutsideText(one.chapter.title).styled("bold"),
        OutsideText(one.chapter.blurb.strip()).content,
        Content("\n".join(f"{mark_of(count)} {count}" for count in counts)),
        Content("\n".join(fact for fact in facts if fact)),
    )


def about_lesson(one: Standing) -> Content:
    """A lesson in a few lines, and why it is not known well."""
    facts = [
        counted(one.attempts, "check") + " until it passed" if one.attempts else "",
        counted(one.hints, "hint") if one.hints else "",
        f"{one.right_at_first} of {one.questions} answers right at first" if one.questions else "",
        spent(one.seconds),
    ]
    why = f"{mark(one.level)} {one.level.value}"
    if one.why:
        why += f": {one.why}"
    return paragraphs(
        OutsideText(one.lesson.title).styled("bold"),
        OutsideText(one.lesson.goal).content,
        OutsideText(why).content,
        Content("\n".join(fact for fact in facts if fact)),
    )


def overall(standings: Sequence[ChapterStanding]) -> str:
    """The whole course in a line."""
    lessons = [lesson for one in standings for lesson in one.lessons]
    passed = sum(one.passed for one in standings)
    well = sum(one.count(Level.WELL) for one in standings)
    parts = [f"{passed} of {len(lessons)} passed", f"{well} known well"]
    parts.append(time(sum(one.seconds for one in standings)))
    return "   ".join(part for part in parts if part)


def mark_of(count: str) -> str:
    """The sign before "3 known well"."""
    word = count.partition(" ")[2]
    return mark(Level(word))


def counted(number: int, word: str) -> str:
    """ "1 check", "2 checks", and nothing for none."""
    return f"{number} {word}{'s' if number > 1 else ''}" if number else ""


def time(seconds: float) -> str:
    """A time, if there is any."""
    return duration(seconds) if seconds >= 1 else ""


def spent(seconds: float) -> str:
    """A time as a remark."""
    return f"{time(seconds)} of work" if time(seconds) else ""


def paragraphs(*parts: Content) -> Content:
    """Those that say something, with a blank line between them."""
    return Content("\n\n").join(part for part in parts if part)
