"""A picture of code, plot and checks, to be shown to somebody else."""

import xml.etree.ElementTree as ElementTree

from tensortutor.ui.lesson.card import card
from tests.ui.courses import CHECKS
from tests.ui.fakes import judges
from tests.ui.test_drawings import plot
from tests.ui.test_lesson import PRACTICE, arrive, ended, told


def words(svg):
    """The text of a picture. Fails if it is no XML."""
    return "".join(ElementTree.fromstring(svg).itertext()).replace("\xa0", " ")


async def test_y_saves_code_and_checks_as_one_picture(setting, until):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: "1 of 2 checks passed" in ended(screen))
        await pilot.press("escape", "y")
        path = screen.session.path.with_suffix(".svg")
        await until(pilot, lambda: any(str(path) in text for text in told(app)))
    text = words(path.read_text("utf-8"))
    assert "accumulate(model, batches, loss_fn):" in text
    assert f"✓ {CHECKS[0]}" in text
    assert f"✗ {CHECKS[1]}" in text


def test_nothing_of_a_card_is_markup_or_comes_from_elsewhere():
    svg = card(
        "<b>&[red]",
        "x = '</text><script>'\x1b[31m\n" * 80,
        [plot(1.0, 2.0)],
        [("failed", "[/]<i>")],
    )
    text = words(svg)
    for part in ("<b>&[red]", "</text><script>", "✗ [/]<i>", "loss", "20 more lines"):
        assert part in text
    assert "http" not in svg.replace("http://www.w3.org/", "")
    assert "\x1b" not in svg
