"""How busy a GPU is, asked of NVIDIA's management library (NVML) while a program runs.

Through ctypes: the library comes with the driver, so there is nothing to install, and no process
like `nvidia-smi` to start. One reading takes well under a millisecond. Names and layouts are those
of nvml.h (NVML API reference, "Device Queries").
"""

import ctypes
import os
import re
import sys
from dataclasses import dataclass
from typing import Any

LIBRARIES = ("libnvidia-ml.so.1", "libnvidia-ml.so")
OK = 0


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (
        ("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong),
    )  # fmt: skip


@dataclass(frozen=True)
class Use:
    """busy: the percentage of the last moment in which a kernel ran. Bytes are of all processes."""

    busy: int
    used_bytes: int
    total_bytes: int


class Meter:
    """Reads one device. device: as torch names it; anything but "cuda:N" has no meter."""

    def __init__(self, device: str, library: Any = None) -> None:
        """library: NVML as ctypes loads it; None for the machine's own."""
        self._library: Any = None
        self._handle = ctypes.c_void_p()
        match = re.fullmatch(r"cuda:(\d+)", device)
        found = (library or load()) if match is not None else None
        if match is None or found is None or found.nvmlInit_v2() != OK:
            return
        self._library = found
        if not self._open(visible(int(match[1]))):
            self.close()

    def read(self) -> Use | None:
        """The device's use now; None where there is no meter or it does not answer."""
        if self._library is None:
            return None
        busy, memory = _Utilization(), _Memory()
        # MIG devices have no utilisation of their own; their memory is told all the same.
        if self._library.nvmlDeviceGetUtilizationRates(self._handle, ctypes.byref(busy)) != OK:
            busy.gpu = 0
        if self._library.nvmlDeviceGetMemoryInfo(self._handle, ctypes.byref(memory)) != OK:
            return None
        return Use(busy.gpu, memory.used, memory.total)

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            self._library.nvmlShutdown()
            self._library = None

    def _open(self, name: str) -> bool:
        handle = ctypes.byref(self._handle)
        if name.isdigit():
            found = self._library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(int(name)), handle)
        else:
            found = self._library.nvmlDeviceGetHandleByUUID(name.encode(), handle)
        return bool(found == OK)


def load() -> Any:
    """The library, None where there is no NVIDIA driver."""
    if not sys.platform.startswith("linux"):
        return None
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def visible(index: int) -> str:
    """NVML's index or UUID of torch's device number `index`.

    They differ where CUDA_VISIBLE_DEVICES leaves devices out, and in machines with GPUs of several
    kinds unless CUDA_DEVICE_ORDER is PCI_BUS_ID (CUDA counts the fastest first).
    """
    chosen = [name.strip() for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if index < len(chosen) and chosen[index]:
        return chosen[index]
    return str(index)
