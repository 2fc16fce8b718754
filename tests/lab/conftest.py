"""A board of its own for each test, and a clock that stands still until it is told."""

import pytest

from tensortutor.lab import board, figures, pictures, plots


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(board, "monotonic", clock)
    return clock


@pytest.fixture
def new_board(monkeypatch) -> board.Board:
    new = board.Board()
    monkeypatch.setattr(new, "_registered", True)  # the tests end it themselves
    for module in (plots, pictures, figures):
        monkeypatch.setattr(module, "BOARD", new)
    monkeypatch.setattr(plots, "_sheets", {})
    return new


@pytest.fixture
def sent(new_board, clock) -> list:
    """What has been sent to the tutor."""
    events = []
    new_board.connect(events.append)
    return events
