"""How busy the GPU is: through a stand-in for NVIDIA's library, which has the same functions."""

import ctypes

import pytest

from tensortutor.runner.meter import Meter, Use


class Nvml:
    """Two devices; functions fill in what they are given a pointer to, and return a status."""

    def __init__(self, **failing):
        self.failing = failing
        self.opened = []
        self.open = 0

    def nvmlInit_v2(self):
        self.open += 1
        return self.failing.get("init", 0)

    def nvmlShutdown(self):
        self.open -= 1
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):
        self.opened.append(index.value)
        return self.failing.get("handle", 0)

    def nvmlDeviceGetHandleByUUID(self, name, handle):
        self.opened.append(name)
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, busy):
        busy._obj.gpu = 87
        return self.failing.get("busy", 0)

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        memory._obj.used, memory._obj.total = 12 << 30, 139 << 30
        return self.failing.get("memory", 0)


def test_a_device_tells_its_use(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    nvml = Nvml()
    meter = Meter("cuda:1", nvml)
    assert meter.read() == Use(87, 12 << 30, 139 << 30)
    assert nvml.opened == [1]
    meter.close()
    assert (nvml.open, meter.read()) == (0, None)


@pytest.mark.parametrize(
    ("variable", "opened"), [("3,5", 5), ("GPU-a, GPU-b", b"GPU-b"), ("7", 1), ("", 1)]
)
def test_the_device_that_torch_counts_is_found(monkeypatch, variable, opened):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", variable)
    nvml = Nvml()
    Meter("cuda:1", nvml)
    assert nvml.opened == [opened]


def test_without_utilisation_the_memory_is_told():
    assert Meter("cuda:0", Nvml(busy=3)).read() == Use(0, 12 << 30, 139 << 30)


@pytest.mark.parametrize("failing", ["init", "handle", "memory"])
def test_a_library_that_refuses_gives_nothing(failing):
    assert Meter("cuda:0", Nvml(**{failing: 9})).read() is None


@pytest.mark.parametrize("device", ["cpu", "mps", "cuda"])
def test_other_devices_have_no_meter(device):
    nvml = Nvml()
    assert Meter(device, nvml).read() is None
    assert nvml.open == 0


def test_a_machine_without_the_driver_has_none(monkeypatch):
    def missing(name):
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    assert Meter("cuda:0").read() is None
