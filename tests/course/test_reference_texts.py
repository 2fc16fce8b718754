"""The built-in reference reads as it should, and is large enough to be one."""

import pytest

from tensortutor.course.catalog import find_course, read_course
from tensortutor.course.reference import entries_of
from tensortutor.course.reference_claims import check_reference
from tests.course.reading import LOUD, paragraphs, plain, sentences, words

MOST_WORDS = 30
PAGES, PROBLEMS = check_reference(read_course(find_course())[0])


def test_nothing_is_wrong_with_it():
    assert "\n".join(map(str, PROBLEMS)) == ""


def test_it_is_large_and_leads_to_every_chapter_up_to_architectures():
    entries = entries_of([page for page in PAGES if page.kind == "calls"])
    terms = entries_of([page for page in PAGES if page.kind == "terms"])
    assert (len(entries) >= 150, len(terms) >= 80) == (True, True)
    chapters = {id.partition("/")[0] for entry in (*entries, *terms) for id in entry.lessons}
    assert chapters >= {
        "tensors", "memory", "maths", "devices", "autograd", "autograd_advanced", "modules",
        "losses", "data", "training", "architectures",
    }  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.id)
def test_sentences_are_short_and_calm(page):
    texts = [page.intro, page.about, *(text for _, text in page.sections)]
    texts += [entry.meaning for entry in page.entries]
    for text in texts:
        for _, paragraph in paragraphs(text):
            assert not LOUD.search(plain(paragraph)), paragraph
            for sentence in sentences(paragraph):
                assert words(sentence) <= MOST_WORDS, sentence
