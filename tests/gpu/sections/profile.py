"""The profiler: times and memory of the card stand in their columns."""

from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Profile
from tests.gpu.kit import Kit, run

PROGRAM = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 10)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    x = torch.randn(256, 512, device=device)
    loss = model(x).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""


def main(kit: Kit, deadline: float) -> None:
    """One profiled loop."""
    del deadline
    with kit.runner() as runner:
        ran = run(runner, PROGRAM, look=Look(profile=True))
    profile = next((event for event in ran.events if isinstance(event, Profile)), None)
    if profile is None:
        kit.ok("a profile", False, ran.last_line)
        return
    kit.ok("a profile", bool(profile.rows), f"{len(profile.rows)} rows, {profile.ms:.0f} ms")
    kit.ok("the steps are counted", profile.steps == 20, str(profile.steps))
    parts = {share.part: share.fraction for share in profile.shares}
    found = {"forward", "backward", "optimizer"} <= parts.keys()
    kit.ok("the shares of a step", found, str(parts))
    if not kit.on_cuda:
        kit.skip("columns of the card", "the device is the processor")
        return
    device_ms = sum(row.device_self_ms for row in profile.rows)
    kit.ok("times of the card", device_ms > 0, f"{device_ms:.2f} ms in all rows")
    # A part of the card's time cannot be longer than the program's.
    kit.ok("no more than the program's time", device_ms <= profile.ms * 1.05, f"{profile.ms:.0f}")
    name = kit.device
    held = {allocator.device: allocator for allocator in profile.allocators}
    good = name in held and 0 < held[name].peak_allocated <= held[name].peak_reserved
    kit.ok("what the allocator says", good, str(held.get(name, "no allocator is shown")))
