"""What programs have written: counted, and removed with a lesson that is begun again."""

import os
import subprocess
import sys

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.reset import reset_lesson
from tensortutor.learner.scratch import clear_scratch, scratch_use
from tensortutor.learner.workspace import Workspace
from tests.ui.courses import course

COURSE = course()
LESSON, OTHER = COURSE.lessons[1], COURSE.lessons[0]


def scratch_of(paths: Paths, lesson):
    folder = paths.scratch / lesson.id.replace("/", ".")
    folder.mkdir(parents=True)
    (folder / "runs").mkdir()
    (folder / "runs" / "weights.pt").write_bytes(b"x" * 10_000)
    return folder


def test_a_lesson_that_is_begun_again_has_no_files_left_and_others_keep_theirs(tmp_path):
    paths = Paths(tmp_path)
    mine, other = scratch_of(paths, LESSON), scratch_of(paths, OTHER)
    assert scratch_use(paths).files == 6
    assert 20_000 <= scratch_use(paths).bytes < 200_000
    reset_lesson(COURSE, LESSON, Progress.open(paths), Workspace(paths))
    assert not mine.exists()
    assert other.exists()
    assert scratch_use(paths).files == 3
    clear_scratch(paths, LESSON)  # nothing is there: nothing happens


def test_a_closed_folder_is_removed_and_a_link_is_not_followed(tmp_path):
    paths = Paths(tmp_path / "home")
    mine = scratch_of(paths, LESSON)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    (mine / "link").symlink_to(outside)
    os.chmod(mine / "runs", 0)
    assert scratch_use(paths).whole
    clear_scratch(paths, LESSON)
    assert not mine.exists()
    assert (outside / "kept").exists()
    mine.symlink_to(outside)
    clear_scratch(paths, LESSON)
    assert (outside / "kept").exists()


def test_folders_nested_deeper_than_a_path_reaches_are_removed(tmp_path):
    paths = Paths(tmp_path)
    mine = scratch_of(paths, LESSON)
    nest = "import os\nfor _ in range(3000):\n    os.mkdir('deep')\n    os.chdir('deep')\n"
    subprocess.run([sys.executable, "-c", nest], cwd=mine, check=True)
    assert not scratch_use(paths).whole
    clear_scratch(paths, LESSON)
    assert not mine.exists()
