"""Finds places in a course: lessons, their steps, reference entries, terms and errors.

`Index` is pure. `CourseIndex` fills one in a thread, the nearest things first, so that a search
can begin before the last lesson is read.
"""

import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile

from tensortutor.course.atlas import Entry as AtlasEntry
from tensortutor.course.atlas import read_atlas
from tensortutor.course.material import Failure, Look, Prose, Quiz, Step, Try
from tensortutor.course.model import Course, Lesson
from tensortutor.course.problems import CourseError
from tensortutor.course.reference import Entry, Page, read_reference
from tensortutor.course.reference_samples import ERROR as ERROR_TEXT

LESSON, STEP, ENTRY, TERM, RECIPE, ERROR = "lesson", "step", "entry", "term", "recipe", "error"
KINDS = (ENTRY, TERM, LESSON, RECIPE, ERROR, STEP)
"""Kinds of places, in the order in which equally good ones are listed."""
KIND_OF = {"calls": ENTRY, "terms": TERM, "appendix": RECIPE}
EXACT, PREFIX, LAST_PREFIX = 1000, 500, 400
IN_TITLE, IN_NAMES, IN_GOAL, IN_TEXT = 60, 40, 25, 10
WHOLE_WORD, PHRASE = 2, 15
MESSAGE = 12
"""Characters from which a query may be an error's message."""
LONGEST = 200
"""Characters of a query that are looked at."""
LIKE = 0.7
"""How like a name must be to be named as near, from 0 to 1."""
AROUND = 36
WIDTH = 110
WORD = re.compile(r"[^\s,;]+")
SIGN = re.compile(r"[\W_]+")
FENCE = re.compile(r"^ {0,3}(```+|~~~+).*?$(.*?)^ {0,3}\1[`~]*$", re.M | re.S)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SIGNS = re.compile(r"[`*]+|^\s*#+\s*|^\s*\|.*$", re.M)
OWNERS = (
    "torch.",
    "tensor.",
    "module.",
    "nn.functional.",
    "functional.",
    "optim.",
    "utils.data.",
    "lr_scheduler.",
)


@dataclass(frozen=True)
class Place:
    """Something that can be found.

    kind: one of KINDS. names: what it is called, for ENTRY and TERM all calls and other words.
    goal: a sentence about it. text: its prose without Markdown's signs. lesson: the id of its
    lesson, "" for none. step: its step, from 0, for STEP. page: the id of its reference page, or
    of the error.
    """

    kind: str
    title: str
    names: tuple[str, ...] = ()
    goal: str = ""
    text: str = ""
    lesson: str = ""
    step: int = 0
    page: str = ""


@dataclass(frozen=True)
class Found:
    """A place, how well it fits, and words of it around what was sought.

    marks: (start, end) in the snippet of what was sought.
    """

    place: Place
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...]


class _Card:
    """A place, folded to lower case once."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.names = tuple(dict.fromkeys(folded(name) for name in place.names))
        self.lasts = tuple(name.rpartition(".")[2] for name in self.names)
        self.fields = (
            (IN_TITLE, _Text(place.title)), (IN_NAMES, _Text(" ".join(place.names))),
            (IN_GOAL, _Text(place.goal)), (IN_TEXT, _Text(place.text)),
        )  # fmt: skip
        self._all = _Text("\n".join(text.lower for _, text in self.fields))

    def worth(self, word: str) -> float:
        """Where a word stands best, more if it stands there by itself; 0 for nowhere."""
        parts = _parts(word)
        if not self._all.worth(word, parts):  # most places lack most words
            return 0
        return max(most * text.worth(word, parts) for most, text in self.fields)


class _Text:
    """A text to find words in. spaced: its letters and digits alone, each word after a space."""

    def __init__(self, text: str) -> None:
        self.lower = text.lower()
        self.spaced = spaced(self.lower)

    def worth(self, word: str, parts: str) -> int:
        """2 if the word stands in the text, 1 if one begins with it, else 0. parts: it, spaced."""
        if parts == "  ":  # all signs, as `@`
            return WHOLE_WORD if word in self.lower else 0
        if parts[:-1] not in self.spaced:
            return 0
        return WHOLE_WORD if parts in self.spaced else 1


class Index:
    """Places that can be searched. Adding and searching may happen in different threads."""

    def __init__(self, places: Iterable[Place] = ()) -> None:
        self._cards: list[_Card] = []
        self.add(places)

    def __len__(self) -> int:
        return len(self._cards)

    def add(self, places: Iterable[Place]) -> None:
        """Make places known."""
        self._cards.extend(_Card(place) for place in places)

    def search(self, query: str, limit: int = 50, kinds: Sequence[str] = KINDS) -> list[Found]:
        """The places that fit, the best first: exact names, then their beginnings, then words.

        Of several words every one must occur. An empty query finds nothing.
        """
        words = [word.lower() for word in WORD.findall(query[:LONGEST])]
        if not words:
            return []
        name, phrase = folded(query[:LONGEST]), " ".join(words)
        scored = []
        for order, card in enumerate(tuple(self._cards)):
            if card.place.kind in kinds and (score := _score(card, name, words, phrase)):
                scored.append((-score, KINDS.index(card.place.kind), order, card))
        scored.sort(key=lambda one: one[:3])
        return [_found(card, -score, words) for score, _, _, card in scored[:limit]]

    def places(self, kinds: Sequence[str] = KINDS) -> list[Place]:
        """All places of these kinds, in the order in which they were added."""
        return [card.place for card in tuple(self._cards) if card.place.kind in kinds]

    def named(self, query: str) -> list[Place]:
        """The places of exactly this name, entries before terms."""
        return [found.place for found in self.search(query) if found.score >= EXACT]

    def nearest(self, query: str, count: int = 3) -> list[str]:
        """The names most like a query that finds nothing."""
        from difflib import get_close_matches  # needed only when something is not found

        known: dict[str, str] = {}
        for card in tuple(self._cards):
            for name, last, shown in zip(card.names, card.lasts, card.place.names, strict=False):
                known.setdefault(name, shown)
                known.setdefault(last, shown)
        name = folded(query[:LONGEST])
        near = get_close_matches(name, list(known), 3 * count, LIKE)
        near = near or get_close_matches(name, list(known), 1, 0.0)
        return list(dict.fromkeys(known[name] for name in near))[:count]


@lru_cache(maxsize=4096)
def folded(name: str) -> str:
    """A name as it is compared: `torch.Tensor.view(2)`, `.view()` and `View` are all `view`."""
    name = re.sub(r"(?<=\w)\(.*", "", " ".join(name.lower().split())).strip(" `")
    while True:
        owner = next((o for o in OWNERS if name.startswith(o) and len(name) > len(o)), "")
        if not owner:
            return name.lstrip(".") or name
        name = name[len(owner) :]


def spaced(text: str) -> str:
    """Words between single spaces: `F.cross_entropy` is " f cross entropy "."""
    return SIGN.sub(" ", f" {text} ")


def _score(card: _Card, name: str, words: Sequence[str], phrase: str) -> float:
    """How well a card fits, 0 for not at all."""
    score = 0.0
    if name in card.names:
        # The first names are what an entry is about; the others lead to it.
        score = EXACT + 50 / (1 + card.names.index(name))
    elif name in card.lasts:
        score = EXACT + 40 / (1 + card.lasts.index(name))
    elif any(n.startswith(name) for n in card.names):
        score = PREFIX - min(len(n) for n in card.names if n.startswith(name))
    elif any(n.startswith(name) for n in card.lasts):
        score = LAST_PREFIX - min(len(n) for n in card.lasts if n.startswith(name))
    worths = list(takewhile(bool, map(card.worth, words)))
    if len(worths) == len(words):
        together = len(words) > 1 and any(phrase in text.lower for _, text in card.fields)
        score += sum(worths) / len(words) + PHRASE * together
    return score


@lru_cache(maxsize=256)
def _parts(word: str) -> str:
    return spaced(word) if any(map(str.isalnum, word)) else "  "


def _found(card: _Card, score: float, words: Sequence[str]) -> Found:
    """With a snippet from the goal if that has a word, else from the text."""
    place = card.place
    whole = next(
        (text for text in (place.goal, place.text) if any(word in text.lower() for word in words)),
        place.goal or place.text,
    )
    lower = whole.lower()
    at = min((spot for spot in map(lower.find, words) if spot >= 0), default=0)
    start = 0 if at <= AROUND else lower.rfind(" ", 0, at - AROUND) + 1
    end = len(whole) if len(whole) - start <= WIDTH else whole.rfind(" ", start, start + WIDTH)
    end = start + WIDTH if end <= start else end
    head, tail = "... " if start else "", " ..." if end < len(whole) else ""
    snippet = f"{head}{whole[start:end]}{tail}"
    return Found(place, score, snippet, tuple(_marks(snippet.lower(), words)))


def _marks(text: str, words: Sequence[str]) -> Iterator[tuple[int, int]]:
    pattern = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    for found in re.finditer(pattern, text):
        yield found.span()


def plain(markdown: str) -> str:
    """Prose for searching and for snippets: one line, without fences' marks and other signs."""
    text = FENCE.sub(r"\2", markdown)
    return " ".join(SIGNS.sub("", LINK.sub(r"\1", text)).split())


# Places of a course


def lesson_places(course: Course) -> Iterator[Place]:
    """The lessons by title, goal, id and number, as 3.4."""
    for chapter in course.chapters:
        for number, lesson in enumerate(chapter.lessons, 1):
            names = (lesson.id, lesson.slug, f"{chapter.number}.{number}")
            yield Place(LESSON, lesson.title, names, lesson.goal, lesson=lesson.id)


def step_places(lesson: Lesson) -> Iterator[Place]:
    """The steps of a lesson by their prose. Raises CourseError if the lesson is not sound."""
    for number, step in enumerate(lesson.steps):
        title = f"{lesson.title}: {step.title}"
        yield Place(STEP, title, text=_text_of(step), lesson=lesson.id, step=number)


def _text_of(step: Step) -> str:
    parts = []
    for block in step.blocks:
        if isinstance(block, Prose):
            parts.append(plain(block.markdown))
        elif isinstance(block, Quiz):
            parts.append(plain(block.ask))
        elif isinstance(block, (Look, Try)):
            parts.append(plain(block.say))
        elif isinstance(block, Failure):
            parts += block.messages
    return " ".join(parts)


def entry_places(page: Page) -> Iterator[Place]:
    """The entries of a page of the reference, but for the sheet, which repeats them."""
    if page.kind in KIND_OF:
        yield from (_entry_place(entry, page) for entry in page.entries)


def _entry_place(entry: Entry, page: Page) -> Place:
    return Place(
        KIND_OF[page.kind],
        entry.title,
        entry.names,
        goal=plain(entry.meaning),
        text=" ".join(_messages(entry)),
        lesson=entry.lessons[0] if entry.lessons else "",
        page=page.id,
    )


def _messages(entry: Entry) -> Iterator[str]:
    """The errors that an entry's code raises: they are looked for. Its other code is not."""
    for sample in entry.samples:
        yield from (shown.result for shown in sample.shown if ERROR_TEXT.match(shown.result))


def error_place(entry: AtlasEntry) -> Place:
    """An error of the atlas; its pattern holds the words of the message."""
    text = f"{message_words(entry)} {plain(entry.way_out)}"
    return Place(
        ERROR, entry.title, goal=plain(entry.means), text=text, lesson=entry.lesson, page=entry.id
    )


def message_words(entry: AtlasEntry) -> str:
    """The words of an error's message, without what differs from case to case."""
    words = re.sub(r"\(\?P?<\w+>|\\[dws][+*]?|[\\^$|?*+(){}\[\]]+", " ", entry.pattern.text)
    return " ".join(words.split())


def raises(error: AtlasEntry, text: str) -> bool:
    """Whether a text is this error's message, with or without its type before it, or a part of
    its words."""
    text = text.strip()
    if " ".join(text.split()).lower() in message_words(error).lower():
        return True
    raised = error.pattern.text.partition(":")[0]
    return any(error.pattern.match(subject) is not None for subject in (text, f"{raised}: {text}"))


class CourseIndex:
    """An index of a whole course, read in a thread.

    with_lessons: also lessons and their steps, not the reference and the atlas alone. What cannot
    be read is left out: those who mend the course hear of it from `verify`.
    """

    def __init__(self, course: Course, *, with_lessons: bool = True) -> None:
        self.course = course
        self.index = Index()
        self.pages: tuple[Page, ...] = ()
        self.errors: tuple[AtlasEntry, ...] = ()
        self.lessons_read = 0
        self._with_lessons = with_lessons
        self._lock = threading.Lock()
        self._begun = False
        self._done = threading.Event()

    @property
    def is_complete(self) -> bool:
        """Whether everything has been read."""
        return self._done.is_set()

    def begin(self) -> None:
        """Start to read, if that has not begun."""
        with self._lock:
            if self._begun:
                return
            self._begun = True
        threading.Thread(target=self._read, name="search", daemon=True).start()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Begin, and wait until everything has been read. Returns whether it has."""
        self.begin()
        return self._done.wait(timeout_s)

    def search(self, query: str, limit: int = 50, kinds: Sequence[str] = KINDS) -> list[Found]:
        """The places known so far that fit, the best first.

        A message as PyTorch prints it finds its error: its numbers are in no text.
        """
        self.begin()
        found = self.index.search(query, limit, kinds)
        if ERROR not in kinds or len(query) < MESSAGE:
            return found
        named = [error_place(error) for error in self.errors if raises(error, query)]
        rest = [one for one in found if one.place not in named]
        return [Found(place, EXACT, place.goal, ()) for place in named] + rest

    def _read(self) -> None:
        try:
            lessons = self.course.lessons if self._with_lessons else ()
            if lessons:
                self.index.add(lesson_places(self.course))
            self.pages = read_reference(self.course.root)[0]
            for page in self.pages:
                self.index.add(entry_places(page))
            self.errors = read_atlas(self.course.root)[0]
            self.index.add(map(error_place, self.errors))
            for number, lesson in enumerate(lessons):
                self.lessons_read = number
                try:
                    self.index.add(list(step_places(lesson)))
                except (CourseError, OSError):
                    continue
        finally:
            self._done.set()
