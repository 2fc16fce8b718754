"""What a program draws, from `plot` in a real process to the events of its run."""

import base64

import pytest

from tensortutor.drawing.png import decode
from tensortutor.protocol.drawings import MOST_DRAWINGS, MOST_POINTS, Picture, Plot
from tensortutor.protocol.events import Finished, Notice, Output, Raised
from tensortutor.protocol.jobs import Job
from tensortutor.runner.drawings import BYTES_PER_S, EVERY_S, Drawings
from tests.runner.test_run import only, run, text

IMPORT = "import torch\nfrom tensortutor.lab import plot, image, show\n"


def drawings(events):
    return [event for event in events if isinstance(event, (Plot, Picture))]


def test_a_plot_is_an_event_and_prints_nothing(runner):
    events = run(runner, IMPORT + "print('a')\nplot([1, 4, 9], label='squares')\nprint('b')")
    (plot,) = drawings(events)
    assert plot.series[0].ys == (1.0, 4.0, 9.0)
    assert plot.series[0].label == "squares"
    assert text(events) == "a\nb\n"
    assert [type(e) for e in events[1:]] == [Output, Plot, Output, Finished]


def test_a_loop_draws_while_it_runs_and_ends_with_the_whole_curve(runner):
    source = (
        "losses = []\nfor step in range(20_000):\n    losses.append(step % 7)\n    plot(losses)\n"
        "losses.append(70.0)\nplot(losses)\n"
    )
    found = drawings(run(runner, IMPORT + source))
    assert 2 <= len(found) < 2_000
    assert found[0].series[0].count == 1
    last = found[-1].series[0]
    assert last.count == 20_001
    assert max(last.ys) == 70.0
    assert len(last.ys) <= MOST_POINTS


def test_a_plot_comes_before_the_program_ends(runner):
    stopped = runner.start(Job(IMPORT + "plot([1, 2])\nwhile True: pass"))
    events = []
    for event in stopped:
        events.append(event)
        if isinstance(event, Plot):
            stopped.stop()
    assert events[-1].outcome == "stopped"
    assert len(drawings(events)) == 1


def test_what_was_drawn_before_an_error_is_there(runner):
    events = run(runner, IMPORT + "for y in range(50): plot(y)\nraise ValueError('no')")
    assert only(events, Raised).type == "ValueError"
    assert drawings(events)[-1].series[0].count == 50


def test_an_error_in_what_is_plotted_is_the_learners(runner):
    raised = only(run(runner, IMPORT + "\nplot(torch.zeros(3, 4))", filename="p.py"), Raised)
    assert "shape [3, 4]" in raised.message
    assert [(frame.line, frame.code) for frame in raised.frames] == [(4, "plot(torch.zeros(3, 4))")]


def test_pictures_are_pixels(runner):
    events = run(runner, IMPORT + "image(torch.eye(3))\nshow(torch.arange(6.).view(2, 3))")
    picture, heat = drawings(events)
    pixels = decode(base64.b64decode(picture.png))
    assert (pixels.width, pixels.height, pixels.channels) == (3, 3, 1)
    assert pixels.data == bytes([255, 0, 0, 0, 255, 0, 0, 0, 255])
    assert picture.title == "line 3: image(torch.eye(3))"
    assert (heat.kind, heat.low, heat.high) == ("heat", 0.0, 5.0)
    assert heat.caption == "float32 [2, 3] on cpu, min 0, mean 2.5, max 5"


def test_each_rank_draws_for_itself(runner):
    source = IMPORT + "import os\nplot([int(os.environ['RANK'])], title='ranks')"
    found = {d.title: d.series[0].ys for d in drawings(run(runner, source, ranks=2))}
    assert found == {"[rank 0] ranks": (0.0,), "[rank 1] ranks": (1.0,)}


def test_drawings_without_end_are_left_out_with_a_word(runner):
    events = run(runner, IMPORT + "for n in range(100): plot([n], title=f'{n}')")
    assert [d.title for d in drawings(events)] == [str(n) for n in range(MOST_DRAWINGS)]
    assert f"more than {MOST_DRAWINGS}" in only(events, Notice).text


@pytest.mark.parametrize(
    "event",
    [
        '{"event": "plot", "title": "", "series": [{"label": "", "xs": [0], "ys": []}]}',
        '{"event": "plot", "title": "", "series": [{"label": "", "xs": [NaN], "ys": [1]}]}',
        '{"event": "picture", "title": "", "kind": "film", "png": ""}',
    ],
)
def test_a_drawing_that_is_none_ends_the_programs_line(runner, event):
    source = (
        "import gc, json\nfrom tensortutor.worker.message_socket import MessageSocket\n"
        "links = [o for o in gc.get_objects() if isinstance(o, MessageSocket)]\n"
        # The zygote's own is among them, closed.
        "link = next(o for o in links if o.sock.fileno() >= 0)\n"
        f"link.send_json(json.loads('''{event}'''))\n"
    )
    events = run(runner, "import gc; gc.unfreeze()\n" + source)
    assert "broke its line" in only(events, Notice).text
    assert not drawings(events)


def test_a_forked_child_draws_nothing_twice(runner):
    source = "import os\nplot([1, 2])\nif os.fork() == 0:\n    plot([3])\nelse:\n    os.wait()\n"
    assert len(drawings(run(runner, IMPORT + source))) == 1


FONTS = "fonts"
"""The folder in which matplotlib keeps what it has found out about fonts, which takes seconds."""
FIGURES = """
import gc
import warnings
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.show()
plt.close()
gc.collect()
plt.plot([3, 2, 1])
plt.show()
named, axes = plt.subplots(num="named")
axes.imshow([[0, 1], [1, 0]])
plt.figure()
print(plt.get_backend(), plt.get_fignums())
"""


def test_figures_of_matplotlib_are_pictures(runner):
    pytest.importorskip("matplotlib")
    # On a busy machine it says so when it looks for fonts.
    run(runner, "import matplotlib.font_manager", scratch=FONTS)
    events = run(runner, FIGURES, scratch=FONTS)
    pictures = drawings(events)
    # Shown; shown anew under the same number; left open. The last one has nothing in it.
    assert [picture.title for picture in pictures] == ["Figure 1", "Figure 2", "named"]
    for picture in pictures:
        pixels = decode(base64.b64decode(picture.png))
        assert (pixels.width, pixels.height, pixels.channels) == (640, 480, 3)
        assert pixels.data[:3] == b"\xff\xff\xff"
        colours = {pixels.data[at : at + 3] for at in range(0, len(pixels.data), 3)}
        assert len(colours) > 10
    assert pictures[0].png != pictures[1].png
    assert text(events) == "module://tensortutor.lab.matplotlib_backend [1, 2, 3]\n"
    assert text(events, "stderr") == ""


def test_a_program_that_chooses_agg_shows_what_it_leaves_open(runner):
    pytest.importorskip("matplotlib")
    source = "import matplotlib\nmatplotlib.use('agg')\nimport matplotlib.pyplot as plt\n"
    events = run(
        runner, source + "plt.plot([1, 2])\nplt.savefig('plot.png')\nplt.show()", scratch=FONTS
    )
    assert [picture.title for picture in drawings(events)] == ["Figure 1"]


CHILDREN = """
import multiprocessing, subprocess, sys
from tensortutor.lab import show

def child():
    show(torch.eye(2), title="spawned")

if __name__ == "__main__":
    process = multiprocessing.get_context("spawn").Process(target=child)
    process.start()
    process.join()
    source = "from tensortutor.lab import plot; plot([1, 2], label='started')"
    subprocess.run([sys.executable, "-c", source])
"""


def test_the_processes_of_a_program_can_import_it_and_print(runner):
    printed = text(run(runner, IMPORT + CHILDREN))
    assert printed.startswith("spawned\n")
    assert "● started 2" in printed


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_flood_of_one_drawing_is_passed_on_now_and_then():
    clock = Clock()
    gate = Drawings(clock)
    passed = []
    for number in range(1_000):
        passed += gate.take(Picture("flood", "heat", "", str(number)))
        clock.now += EVERY_S / 10
    assert 90 <= len(passed) <= 101
    assert [picture.caption for picture in gate.rest()] == ["999"]
    assert not list(gate.rest())


def test_a_flood_of_large_pictures_is_held_to_so_many_bytes():
    clock = Clock()
    gate = Drawings(clock)
    large = "A" * (BYTES_PER_S // 10)
    passed = [list(gate.take(Picture(f"{n}", "image", large))) for n in range(5)]
    assert all(passed)  # the first of each
    later = []
    for number in range(1_000):
        clock.now += 0.01
        later += gate.take(Picture(f"{number % 5}", "image", large))
    assert 50 <= len(later) <= 105
    assert len(list(gate.rest())) <= 5
