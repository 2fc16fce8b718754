import os

from tensortutor.learner.file_watch import FilesWatch, FileWatch


def test_a_save_counts_once_and_when_two_looks_agree(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("one")
    watch = FileWatch(path)
    assert [watch.poll() for _ in range(2)] == [False, False]
    path.write_text("half")
    assert not watch.poll()
    path.write_text("all of it")
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_a_file_may_come_go_and_be_replaced(tmp_path):
    path = tmp_path / "a.py"
    watch = FileWatch(path)
    assert not watch.poll()
    path.write_text("one")
    assert [watch.poll() for _ in range(3)] == [False, True, False]
    path.rename(tmp_path / "a.py~")
    assert [watch.poll() for _ in range(2)] == [False, False]
    path.write_text("one")
    os.utime(path, ns=(1, 1))
    assert [watch.poll() for _ in range(3)] == [False, True, False]


def test_the_same_text_saved_again_is_a_save_but_our_own_is_none(tmp_path):
    path = tmp_path / "a.py"
    path.write_text("one")
    watch = FileWatch(path)
    os.utime(path, ns=(5, 5))
    assert [watch.poll() for _ in range(2)] == [False, True]
    path.write_text("two")
    watch.accept()
    assert [watch.poll() for _ in range(2)] == [False, False]


def test_of_several_files_the_saved_the_new_and_the_deleted_are_named(tmp_path):
    kept, changed, deleted, new = (tmp_path / name for name in ("a.md", "b.md", "c.md", "d.md"))
    for path in (kept, changed, deleted):
        path.write_text("one")
    watch = FilesWatch(lambda: tmp_path.glob("*.md"))
    assert [watch.poll() for _ in range(2)] == [set(), set()]
    changed.write_text("two, and longer")
    new.write_text("one")
    assert [watch.poll() for _ in range(3)] == [set(), {changed, new}, set()]
    deleted.unlink()
    assert [watch.poll() for _ in range(2)] == [{deleted}, set()]
