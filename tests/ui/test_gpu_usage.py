"""The GPU's use in the footer, through a stand-in for NVIDIA's library."""

import threading

import pytest

from tensortutor.runner import meter
from tests.runner.test_meter import Nvml
from tests.ui.fakes import FakeDevice, FakeStatus, waits
from tests.ui.test_lesson import RUN, arrive


async def test_the_gpus_use_stands_in_the_footer_while_a_program_runs(setting, until, monkeypatch):
    monkeypatch.setattr(meter, "load", Nvml)
    setting.runner.status = FakeStatus(device=FakeDevice("cuda:0", "H200"))
    setting.runner.script = waits()
    async with setting.app(setting.accumulation, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.keys.word == ""
        await pilot.press("f5")
        await until(pilot, lambda: screen.keys.word == "GPU 87 %  12/139 GiB")
        await pilot.press("f4")
        await until(pilot, lambda: not screen.results.is_running and screen.keys.word == "")
        await until(pilot, lambda: not gauges())


async def test_a_driver_that_hangs_blocks_nobody(setting, until, monkeypatch):
    asked, goes_on = threading.Event(), threading.Event()

    def load():
        asked.set()
        goes_on.wait(30)

    monkeypatch.setattr(meter, "load", load)
    setting.runner.status = FakeStatus(device=FakeDevice("cuda:0", "H200"))
    setting.runner.script = waits()
    async with setting.app(setting.accumulation, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, asked.is_set)
        await pilot.press("f4")
        await until(pilot, lambda: not screen.results.is_running)
        assert screen.keys.word == ""
    goes_on.set()


@pytest.mark.parametrize(("device", "asks"), [("cpu", False), ("cuda:0", True)])
async def test_without_nvml_nothing_is_shown_and_on_the_cpu_nothing_is_loaded(
    setting, until, monkeypatch, device, asks
):
    asked = threading.Event()
    monkeypatch.setattr(meter, "load", asked.set)  # it gives no library
    setting.runner.status = FakeStatus(device=FakeDevice(device))
    setting.runner.script = waits()
    async with setting.app(setting.accumulation, RUN).run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: screen.results.is_running)
        await until(pilot, lambda: asked.is_set() == asks and not gauges())
        assert screen.keys.word == ""
        await pilot.press("f4")
        await until(pilot, lambda: not screen.results.is_running)


def gauges():
    return [thread for thread in threading.enumerate() if thread.name == "gauge"]
