"""What the lens costs a loop on the card, and that it never waits for the card by itself."""

import statistics

from tensortutor.protocol.jobs import Look
from tests.gpu.kit import Kit, run

STEPS = 600
LOOP = """
import time
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
{make}
opt = torch.optim.{optimizer}(model.parameters(), lr=1e-3)

def wait():
    if device.type == "cuda":
        torch.cuda.synchronize()

steps = {steps}
for step in range(steps):
    if step == steps // 4:
        wait()
        begun = time.perf_counter()
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
wait()
print((time.perf_counter() - begun) / (steps - steps // 4) * 1e6)
"""
LOOPS = {
    "MLP, batch 256, AdamW": (
        """
x, y = torch.randn(256, 64, device=device), torch.randint(0, 10, (256,), device=device)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device)
""",
        "AdamW",
    ),
    "CNN, batch 64, SGD": (
        """
x, y = torch.randn(64, 3, 32, 32, device=device), torch.randint(0, 10, (64,), device=device)
model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3),
                      nn.ReLU(), nn.Flatten(), nn.Linear(64 * 13 * 13, 10)).to(device)
""",
        "SGD",
    ),
}
SYNCHRONIZES = """
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

model = nn.Linear(64, 64).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(64, 64, device=device)

with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
    for step in range(40):
        h = model(x)
        loss = h.square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
waits = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "aten::item",
         "aten::_local_scalar_dense", "Memcpy DtoH (Device -> Pageable)")
print({row.key: row.count for row in seen.key_averages() if row.key in waits})
"""
LOOK = Look(trace=True, names=True)


def main(kit: Kit, deadline: float) -> None:
    """Ratios, then waits."""
    del deadline
    rounds = 2 if kit.quick else 5
    steps = 80 if kit.quick else STEPS
    with kit.runner() as runner:
        for name, (make, optimizer) in list(LOOPS.items())[: 1 if kit.quick else None]:
            source = LOOP.format(make=make, optimizer=optimizer, steps=steps)
            times: dict[bool, list[float]] = {False: [], True: []}
            for _ in range(rounds):
                for on, look in ((False, Look()), (True, LOOK)):
                    ran = run(runner, source, look=look)
                    if not kit_ran(kit, name, ran.outcome, ran.last_line):
                        return
                    times[on].append(float(ran.record.stdout))
            off, on_ = (statistics.median(times[key]) for key in (False, True))
            kit.figure(f"{name}: a step", off, "us", f"with the lens {on_:.0f} us")
            wanted = None if kit.quick else on_ / off <= 1.10
            kit.figure(f"{name}: lens on / off", on_ / off, "", "wanted <= 1.10", good=wanted)
        if not kit.on_cuda:
            kit.skip("waits for the card", "the device is the processor")
            return
        plain = run(runner, SYNCHRONIZES)
        seen = run(runner, SYNCHRONIZES, look=LOOK)
        same = plain.record.stdout == seen.record.stdout and seen.outcome == "done"
        text = f"without {plain.record.stdout.strip()}, with {seen.record.stdout.strip()}"
        kit.ok("the lens waits for the card no more than the program", same, text)


def kit_ran(kit: Kit, name: str, outcome: str, line: str) -> bool:
    """Report a loop that does not run at all."""
    return outcome == "done" or not kit.ok(name, False, line)
