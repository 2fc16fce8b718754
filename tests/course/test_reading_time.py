"""How long a lesson takes, by its text."""

from tensortutor.course.reading_time import WORDS_PER_MINUTE, reading_minutes

TWO_MINUTES = "word " * (2 * WORDS_PER_MINUTE)


def test_words_that_no_reader_sees_take_no_time():
    source = f"<!-- {TWO_MINUTES} -->"
    optional = f"## Derivation\n\n{TWO_MINUTES}\n```python derive\nx = 1\n```\n"
    assert reading_minutes(f"## Step\n\n{TWO_MINUTES}") == 2
    assert reading_minutes(f"## Step\n\n{TWO_MINUTES}\n{source}\n{optional}") == 2
