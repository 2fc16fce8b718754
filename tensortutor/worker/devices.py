"""Which devices there are, and waking one up."""

import json
import os
import platform
from typing import Any

import torch

from tensortutor.protocol.setup import DeviceInfo


def survey() -> tuple[DeviceInfo, ...]:
    """All devices of this machine.

    CUDA is asked in a child process, even whether there is any: a process in which a build with
    CUDA has looked for devices has no children that could use them.
    """
    found = [DeviceInfo("cpu", cpu_label(), *cpu_memory())]
    if torch.backends.mps.is_available():
        found.append(DeviceInfo("mps", "Apple GPU"))
    if torch.version.cuda or torch.version.hip:
        found += cuda_devices()
    return tuple(found)


def cuda_devices() -> list[DeviceInfo]:
    """The CUDA devices, with memory in bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            os.write(writer, json.dumps(_ask_cuda()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return [DeviceInfo(**entry) for entry in json.loads(answer or b"[]")]


def _ask_cuda() -> list[dict[str, Any]]:
    found = []
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        label = torch.cuda.get_device_name(index)
        found.append({"name": f"cuda:{index}", "label": label, "total": total, "free": free})
    return found


def wake(device: str) -> None:
    """Bring a device up in this process, so that the program does not wait for it.

    A product of ones: it loads the matrix library and leaves the random streams alone.
    """
    ones = torch.ones(2, 2, device=device)
    (ones @ ones).cpu()


def cpu_label() -> str:
    """The processor's name, as far as the system tells it."""
    try:
        with open("/proc/cpuinfo") as file:
            for line in file:
                if line.startswith("model name"):
                    return line.partition(":")[2].strip()
    except OSError:
        return platform.processor() or platform.machine()
    return platform.machine()


def cpu_memory() -> tuple[int, int]:
    """Total and available bytes of main memory, 0 where the system does not tell."""
    numbers = {}
    try:
        with open("/proc/meminfo") as file:
            for line in file:
                key, _, rest = line.partition(":")
                numbers[key] = int(rest.split()[0]) * 1024
    except (OSError, ValueError):
        return 0, 0
    return numbers.get("MemTotal", 0), numbers.get("MemAvailable", 0)
