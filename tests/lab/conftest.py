"""A display of its own for each test, and a clock that stands still until it is told."""

import pytest

from tensortutor.lab import (
    display,
    graphs,
    grids,
    histograms,
    maps,
    matplotlib_backend,
    pictures,
    plots,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(display, "monotonic", clock)
    return clock


@pytest.fixture
def new_display(monkeypatch) -> display.Display:
    new = display.Display()
    monkeypatch.setattr(new, "_registered", True)  # the tests end it themselves
    for module in (plots, pictures, histograms, maps, graphs, grids, matplotlib_backend):
        monkeypatch.setattr(module, "DISPLAY", new)
    monkeypatch.setattr(plots, "_plots", {})
    return new


@pytest.fixture
def sent(new_display, clock) -> list:
    """What has been sent to the tutor."""
    events = []
    new_display.connect(events.append)
    return events
