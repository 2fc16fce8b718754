"""Which devices there are, and waking one up."""

import contextlib
import json
import os
import platform
from typing import Any

import torch

from tensortutor.protocol.setup import DeviceInfo
from tensortutor.worker.confine import continue_in_own_namespaces

CONTROL, UNIFIED_MEMORY = "/dev/nvidiactl", "/dev/nvidia-uvm"
LOAD_UVM = "`nvidia-modprobe -u -c 0` does it, or any program that uses the GPU outside a sandbox."
"""The second device comes with a module that is not loaded at boot, but when CUDA is first used; no
program inside a sandbox may load it (NVIDIA/nvidia-docker, wiki: GPU isolation).
"""


def find_devices(layer: str) -> tuple[tuple[DeviceInfo, ...], str]:
    """All devices of this machine; and why there is no CUDA device, where one could be expected.

    layer: the layer of confinement in which programs will use them. CUDA is asked in a child
    process, even whether there is any: a process in which a build with CUDA has looked for devices
    has no children that could use them.
    """
    devices = [DeviceInfo("cpu", cpu_label(), *cpu_memory())]
    if torch.backends.mps.is_available():
        devices.append(DeviceInfo("mps", "Apple GPU"))
    why_none = ""
    if torch.version.cuda or torch.version.hip:
        cards, why_none = cuda_devices(layer)
        devices += cards
    return tuple(devices), why_none


def cuda_devices(layer: str) -> tuple[list[DeviceInfo], str]:
    """The CUDA devices, with memory in bytes; and why there are none, "" if there are."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        try:
            continue_in_own_namespaces(layer)
            os.write(writer, json.dumps(_ask_cuda()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if not answer:
        return [], f"The process that looked for GPUs ended without a word (status {status})."
    cards, why_none = json.loads(answer)
    return [DeviceInfo(**card) for card in cards], why_none


def _ask_cuda() -> tuple[list[dict[str, Any]], str]:
    """In the child: the cards as JSON, and why there are none."""
    cards = []
    for index in range(torch.cuda.device_count()):
        card: dict[str, Any] = {"name": f"cuda:{index}", "label": f"GPU {index}"}
        try:
            card["label"] = torch.cuda.get_device_name(index)
            card["free"], card["total"] = torch.cuda.mem_get_info(index)
        except Exception as error:  # its memory is full, or another process has it for itself
            card["trouble"] = first_line(error)
        cards.append(card)
    return cards, "" if cards else why_no_card()


def why_no_card() -> str:
    """Why this build with CUDA sees no card, in a sentence. Only for a process that ends soon."""
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except Exception as error:
        reason = first_line(error).rstrip(".") + "."
    else:
        reason = "CUDA starts, and there is no card."
    if os.path.exists(CONTROL) and not os.path.exists(UNIFIED_MEMORY):
        return f"{reason} The driver's module nvidia_uvm is not loaded: {LOAD_UVM}"
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None and "driver" not in reason:
        reason += f" CUDA_VISIBLE_DEVICES is {visible!r}: only the cards it names can be seen."
    return reason


def first_line(error: Exception) -> str:
    """The first line of what an error says, or its type."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)


def wake(device: str) -> None:
    """Bring a device up in this process, so that the program does not wait for it.

    What fails here is left for the program to meet: its own first call says the same.
    """
    with contextlib.suppress(Exception):
        if device.startswith("cuda"):
            wake_cuda(device)
        else:
            ones = torch.ones(2, 2, device=device)
            ones @ ones


def wake_cuda(device: str) -> None:
    """Load what most programs use first: libraries and kernels are loaded at their first call.

    The random streams are left alone, and the allocator looks as in a new process.
    """
    x = torch.randn(256, 256, device=device, generator=torch.Generator(device))
    repr(torch.relu(x @ x + x).sum())
    repr(x > 0)
    del x
    clear = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear is not None:
        clear()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    torch.cuda.reset_accumulated_memory_stats(device)


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
