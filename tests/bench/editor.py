"""From key to screen in the editor, against a plain TextArea without highlighting doing the same.

    python -m tests.bench.editor [ROUNDS]

Three programs run in pseudo-terminals of one size: a bare Textual app with a plain TextArea, one
with our editor in its place, and the lesson screen itself. In turns each gets a key; the clock
runs from writing the key to the end of the frame that shows it (the terminal says that it knows
synchronized output, so frames have an end). All three text areas have the same size and text.
"""

import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.bench.terminal import Terminal

SIZES = (100, 1_000)
ROUNDS = 12
WANTED_RATIO = 1.1
PAUSE_S = 0.03
"""Between two keys: a fast typist."""
KEYS = [*"alpha.beta", *["\x7f"] * 10, "\r", *"x = (y", *["\x7f"] * 7]
"""Typed and taken back: the text is the same after each round. Ctrl keys would not be typing."""
KINDS = ("plain", "editor", "lesson")
BLOCK = '''\
def masked_mean_{0}(x, keep, *, axis=1, eps=1e-6):
    """The mean of x over an axis, where keep is true."""
    keep = keep.unsqueeze(-1).to(x.dtype)      # (B, T, 1)
    total = (x * keep).sum(axis)               # (B, D)
    count = keep.sum(axis).clamp(min=eps)
    if torch.isnan(total).any() or count.numel() == {0}:
        raise ValueError(f"nothing to average in {{x.shape}}, {0}")
    return total / count


for step in range({0}, {0} + 10):
    loss = F.mse_loss(model(inputs[step]), targets[step], reduction="mean")
    print(step, loss.item(), "of", len(inputs))

'''


def program(lines: int) -> str:
    """A program of so many lines."""
    text = "".join(BLOCK.format(number) for number in range(lines // BLOCK.count("\n") + 1))
    return "".join(text.splitlines(keepends=True)[:lines])


# The programs that are measured


def serve(kind: str, lines: int, width: int, height: int) -> None:
    """Show a program of so many lines in one of KINDS, cursor in the middle of the first page."""
    if kind == "lesson":
        serve_lesson(lines)
        return
    from textual.app import App
    from textual.widgets import TextArea

    class Bare(App[None]):
        CSS = f"#area {{ width: {width}; height: {height}; border: none; padding: 0; }}"
        CSS_PATH = None if kind == "plain" else STYLES  # type: ignore[assignment]
        ENABLE_COMMAND_PALETTE = False

        def compose(self):  # type: ignore[no-untyped-def]
            if kind == "plain":
                yield TextArea(
                    program(lines), id="area", soft_wrap=False, show_line_numbers=True, compact=True
                )
            else:
                from tensortutor.ui.widgets.editor import Editor

                yield Editor(id="area")

        def on_mount(self) -> None:
            area = self.query_one("#area", TextArea)
            if kind != "plain":
                area.load_text(program(lines))
            area.cursor_blink = False
            begin(area)

    Bare().run()


STYLES = Path(__file__).parents[2] / "tensortutor/ui/styles/lesson.tcss"
APP_STYLES = STYLES.with_name("app.tcss")


def begin(area: object) -> None:
    """Where the typing takes place."""
    from textual.widgets import TextArea

    assert isinstance(area, TextArea)
    area.focus()
    area.move_cursor((8, 0))
    print(end="\x1b]0;ready\x07", file=sys.__stderr__, flush=True)


def serve_lesson(lines: int) -> None:
    """The app, opened at the step with code."""
    from tensortutor.learner.paths import Paths
    from tensortutor.learner.progress import Progress
    from tensortutor.learner.workspace import Workspace
    from tensortutor.ui.app import TutorApp
    from tests.ui.courses import accumulation, course
    from tests.ui.fakes import FakeRunner

    lesson = accumulation()
    with tempfile.TemporaryDirectory() as home:
        paths = Paths(Path(home))
        workspace = Workspace(paths)
        workspace.save(lesson, 1, program(lines))
        progress = Progress.open(paths)
        progress.set_place(lesson.id, 1)
        for id in lesson.requires:
            progress.mark_passed(id)

        class Opened(TutorApp):
            CSS_PATH = APP_STYLES

            def on_mount(self) -> None:
                super().on_mount()
                self.set_timer(2.0, lambda: begin(self.screen.query_one("#editor")))

        Opened(course(), progress, workspace, FakeRunner(), lesson=lesson).run()


# Measuring


def area_of_the_lesson() -> tuple[int, int]:
    """Columns and rows of the editor on the lesson screen at this size."""
    return 94, 28


def measure(lines: int, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each key by kind, the kinds in turns; one round before to warm up."""
    width, height = area_of_the_lesson()
    terminals = {
        kind: Terminal(["-m", __spec__.name, "serve", kind, str(lines), str(width), str(height)])
        for kind in KINDS
    }
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    try:
        for terminal in terminals.values():
            terminal.read_until(b"ready")
            terminal.settle(1.0)
        for number in range(rounds + 1):
            for key in KEYS:
                for kind, terminal in terminals.items():
                    time.sleep(PAUSE_S)
                    ms = terminal.key_to_frame(key)
                    if number:
                        times[kind].append(ms)
    finally:
        for terminal in terminals.values():
            terminal.close()
    return times


def report(lines: int, times: dict[str, list[float]]) -> str:
    """A table and the ratios of the medians."""
    rows = [f"{f'{lines:,} lines':<14}{'median':>10}{'90 %':>10}{'slowest':>10}{'ratio':>8}"]
    plain = statistics.median(times["plain"])
    for kind, ms in times.items():
        ninety = statistics.quantiles(ms, n=10)[-1]
        ratio = statistics.median(ms) / plain
        figures = (statistics.median(ms), ninety, max(ms))
        rows.append(f"{kind:<14}" + "".join(f"{m:>7.2f} ms" for m in figures) + f"{ratio:>8.2f}")
    return "\n".join(rows)


def main(rounds: int) -> None:
    """Measure and print."""
    for lines in SIZES:
        print(report(lines, measure(lines, rounds)))
    print(f"wanted: ratio <= {WANTED_RATIO}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
