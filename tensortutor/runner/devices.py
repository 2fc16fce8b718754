"""Which device a program gets."""

from dataclasses import dataclass

from tensortutor.protocol.setup import DeviceInfo
from tensortutor.runner.errors import RunnerError


@dataclass(frozen=True)
class Device:
    """A device as torch names it. total_bytes and free_bytes are 0 when not known.

    trouble: why it cannot be used at the moment, or "".
    """

    name: str
    label: str
    total_bytes: int = 0
    free_bytes: int = 0
    trouble: str = ""


def devices_of(found: tuple[DeviceInfo, ...]) -> tuple[Device, ...]:
    """The devices of a zygote's report."""
    return tuple(Device(d.name, d.label, d.total, d.free, d.trouble) for d in found)


def choose(wanted: str, present: tuple[Device, ...]) -> Device:
    """The device that `wanted` names: "auto" takes an accelerator if one can be used.

    Raises RunnerError, naming the devices that are there, or saying why it cannot be used.
    """
    if wanted == "auto":
        return next((d for d in present if d.name != "cpu" and not d.trouble), present[0])
    name = "cuda:0" if wanted == "cuda" else wanted
    for device in present:
        if device.name == name:
            if device.trouble:
                raise RunnerError(f"{name} cannot be used now: {device.trouble}")
            return device
    there = ", ".join(device.name for device in present)
    raise RunnerError(f"There is no device {wanted!r} here. These are there: {there}.")
