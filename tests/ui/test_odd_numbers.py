"""A program that claims odd numbers: every pane shows them, none ends the app."""

import math
from dataclasses import fields, is_dataclass, replace

import pytest

from tensortutor.protocol.drawings import Bars, Histogram, Picture, Plot
from tensortutor.protocol.events import (
    Frame,
    Raised,
    Verdict,
    Warned,
    event_from_json,
    event_to_json,
)
from tensortutor.protocol.framing import Decoder, ProtocolError, encode
from tensortutor.protocol.lens import (
    Broadcasts,
    Graph,
    Modules,
    Optimizers,
    Profile,
    Tensors,
    Trace,
)
from tensortutor.protocol.wire import LARGEST_INT
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.drawings import DrawingsPane
from tensortutor.ui.widgets.lens import GraphPane, ModulesPane, ProfilePane
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.tensors import TensorsPane
from tests.ui.fakes import FAILURE, plays
from tests.ui.test_drawings import picture, plot
from tests.ui.test_lens import EVERYTHING, PROFILE
from tests.ui.test_lesson import RUN, arrive
from tests.ui.test_outside import clean

EVENTS = (
    *EVERYTHING, PROFILE, plot(1.0, 2.0), picture(),
    Histogram("h", (0.0, 1.0, 2.0), (Bars("a", (1, 2), 3),)),
    Raised("ValueError", "no", (Frame("f", 3, "x", 1, 2),), "Traceback\nValueError: no\n"),
    Warned("UserWarning", "w", 3), replace(FAILURE, check="name"),
)  # fmt: skip


def variants(value, odd):
    """The same data with one number replaced, in every way there is."""
    if type(value) is type(odd):
        yield odd
    elif isinstance(value, tuple):
        for place, item in enumerate(value[:2]):
            for new in variants(item, odd):
                yield (*value[:place], new, *value[place + 1 :])
    elif is_dataclass(value):
        for field in fields(value):
            for new in variants(getattr(value, field.name), odd) if field.init else ():
                try:
                    yield replace(value, **{field.name: new})
                except ProtocolError:
                    continue


def arriving(event, odd):
    """Those variants that the host takes for events."""
    for variant in variants(event, odd):
        try:
            (message,) = Decoder().feed(encode(event_to_json(variant)))
            yield event_from_json(message)
        except (ProtocolError, ValueError):
            continue


PANES = {
    Trace: OutputPane, Raised: OutputPane, Warned: OutputPane,
    Tensors: TensorsPane, Broadcasts: TensorsPane, Modules: ModulesPane, Optimizers: ModulesPane,
    Graph: GraphPane, Profile: ProfilePane, Plot: DrawingsPane, Picture: DrawingsPane,
    Histogram: DrawingsPane, Verdict: ChecksPane,
}  # fmt: skip
"""Where the numbers of an event are shown; those of lines stand in the code, which always is."""


def test_numbers_that_no_counter_reaches_are_refused():
    assert not [event for event in EVENTS for _ in arriving(event, 10**4000)]


@pytest.mark.parametrize(
    "odd", [-1, LARGEST_INT, math.nan, math.inf],
    ids=["less_than_nothing", "largest", "nan", "inf"],
)  # fmt: skip
async def test_every_pane_shows_odd_numbers(setting, until, odd):
    sent = [variants for event in EVENTS if (variants := list(arriving(event, odd)))]
    assert sent
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(140, 40)) as pilot:
        screen = await arrive(pilot, until)
        assert set(PANES.values()) == {type(pane) for pane in screen.results.panes}
        for turn in range(max(map(len, sent))):
            played = [kind[turn] for kind in sent if turn < len(kind)]
            setting.runner.script = plays(*played)
            await pilot.press("f5")
            await until(
                pilot,
                lambda turn=turn: (
                    len(setting.runner.jobs) == turn + 1 and not screen.results.is_running
                ),
            )
            changed = {PANES[type(event)] for event in played}
            for pane in screen.results.panes:
                if type(pane) in changed:
                    screen.results.action_show(pane.id)
                    await pilot.pause()
                    clean(screen)
    assert not app.return_code
