"""What is promised is taught somewhere, and every lesson belongs to a topic."""

from tensortutor.course.catalog import open_course
from tensortutor.course.course_toml import read_contents
from tests.topics import ROOT, TARGET, groups, page

TOPICS = [(topic, ids) for group in groups() for topic, ids in group["topics"]]


def test_the_page_of_topics_is_up_to_date():
    assert TARGET.read_text("utf-8") == page(), "run: python -m tests.topics"


def test_every_topic_is_taught():
    written = {lesson.id for lesson in open_course(ROOT).lessons}
    planned = read_contents(ROOT)[0].planned
    ids = {id for _, ids in TOPICS for id in ids}
    unknown = {id for id in ids - written if id.partition("/")[0] not in planned}
    assert unknown == set()


def test_every_lesson_belongs_to_a_topic():
    named = {id for _, ids in TOPICS for id in ids}
    assert [one.id for one in open_course(ROOT).lessons if one.id not in named] == []
