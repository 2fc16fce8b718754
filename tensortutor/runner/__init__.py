"""The host side of a run: starts PyTorch once, runs programs confined, yields their events."""

from tensortutor.runner.devices import Device
from tensortutor.runner.errors import NoSandbox, RunnerError
from tensortutor.runner.run import Run
from tensortutor.runner.runner import Runner, Status
from tensortutor.runner.settings import Settings

__all__ = ["Device", "NoSandbox", "Run", "Runner", "RunnerError", "Settings", "Status"]
