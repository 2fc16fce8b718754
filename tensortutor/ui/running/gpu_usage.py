"""The GPU's use while a program runs, read in a thread of its own: the screen waits for nothing.

The library that tells it comes with NVIDIA's driver. It is loaded at the first run on such a
device, and never where programs run on the CPU.
"""

import threading

EVERY_S = 1.0
GIB = 1 << 30


class Gauge:
    """Reads a device until it is stopped. word: the last reading, "" if there is none."""

    def __init__(self, device: str, every_s: float = EVERY_S) -> None:
        """device: as torch names it; anything but "cuda:N" is not read."""
        self.word = ""
        self._device = device
        self._every_s = every_s
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to read."""
        if self._device.startswith("cuda"):
            # A daemon: a driver that hangs must not keep the app from ending.
            self._thread = threading.Thread(target=self._read, name="gauge", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Read no more; does not wait for a reading under way."""
        self._over.set()
        self.word = ""

    def _read(self) -> None:
        from tensortutor.runner.meter import Meter

        meter = Meter(self._device)
        while not self._over.is_set():
            use = meter.read()
            if use is None:
                break
            used, total = use.used_bytes / GIB, use.total_bytes / GIB
            self.word = f"GPU {use.busy} %  {used:.0f}/{total:.0f} GiB"
            self._over.wait(self._every_s)
        self.word = ""
        meter.close()
