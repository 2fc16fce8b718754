"""What the lens costs: training loops with and without it, and how long its report takes.

    python -m tests.bench.lens [STEPS]

The loops are written as lessons write them. Both ways run in turns in this process, on one thread.
Told is the thread's CPU time for a step, looks of the lens included. It is taken over blocks of 10
steps, each from the round in which it was quickest: other programs on the machine only ever add to
it. The first steps, in which torch and the lens prepare what they need, are left out. The memory is
that of the data that the lens keeps while the program runs.
"""

import itertools
import statistics
import sys
import time
import tracemalloc

import torch
import torch._dynamo  # a first optimizer would import it while it is timed

from tensortutor.protocol.events import event_to_json
from tensortutor.protocol.framing import encode
from tensortutor.protocol.jobs import Look
from tensortutor.worker.lens.lens import Lens

STEPS = 2000
ROUNDS = 6
BLOCK = 10
WARM = 10
PATH = "lesson.py"
WANTED = 1.10
HEAD = """
import torch
from torch import nn
import torch.nn.functional as F
torch.manual_seed(0)
"""
LOOPS = {
    "MLP, batch 64, Adam, at the top level": """
x, y = torch.randn(64, 20), torch.randn(64, 1)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
losses = []
for step in range(STEPS):
    opt.zero_grad()
    pred = model(x)
    loss = F.mse_loss(pred, y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
    tick(step)
""",
    "MLP, own class, Adam, in a function": """
class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a, self.b = nn.Linear(20, width), nn.Linear(width, width)
        self.c = nn.Linear(width, 1)

    def forward(self, x):
        h = torch.relu(self.a(x))
        h = torch.relu(self.b(h))
        return self.c(h)

def train(model, opt, x, y):
    losses = []
    for step in range(STEPS):
        opt.zero_grad()
        pred = model(x)
        loss = ((pred - y) ** 2).mean()
        loss.backward()
        opt.step()
        losses.append(loss.item())
        tick(step)
    return losses

model = Net(64)
losses = train(model, torch.optim.Adam(model.parameters()), torch.randn(64, 20), torch.randn(64, 1))
""",
    "the smallest: two layers, SGD": """
x, y = torch.randn(64, 8), torch.randint(0, 3, (64,))
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(STEPS):
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    tick(step)
""",
    "while True with a break, in a function": """
def fit(model, opt, x, y):
    step = 0
    while True:
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        tick(step)
        step += 1
        if step == STEPS:
            break
    return loss

model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loss = fit(model, opt, torch.randn(64, 8), torch.randint(0, 3, (64,)))
""",
    "CNN, batch 64, Adam": """
x, y = torch.randn(64, 1, 14, 14), torch.randint(0, 10, (64,))
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                      nn.Linear(288, 10))
opt = torch.optim.Adam(model.parameters())
for step in range(STEPS // 4):
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    correct = (logits.argmax(1) == y).float().mean()
    tick(step)
""",
    "DataLoader with an own Dataset, two epochs' worth": """
from torch.utils.data import DataLoader, Dataset
class Points(Dataset):
    def __init__(self, n):
        self.x = torch.randn(n, 20)
        self.y = self.x.sum(1, keepdim=True)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], self.y[i]

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 1))
opt = torch.optim.Adam(model.parameters())
step = 0
for xb, yb in DataLoader(Points(64 * (STEPS // 4)), batch_size=64, shuffle=True):
    loss = F.mse_loss(model(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    tick(step)
    step += 1
""",
}


def run(source: str, steps: int, look: Look) -> tuple[list[float], float, int]:
    """Seconds for each block of steps; milliseconds and bytes of the report."""
    times: list[float] = []

    def tick(step: int) -> None:
        if step % BLOCK == 0:
            times.append(time.thread_time())

    names = {"__name__": "__main__", "STEPS": steps, "tick": tick}
    code = compile(source, PATH, "exec")
    lens = Lens(look, source, PATH)
    lens.run(code, names)
    begun = time.perf_counter()
    size = sum(len(encode(event_to_json(event))) for event in lens.report(names, None))
    took = (time.perf_counter() - begun) * 1000
    return [b - a for a, b in itertools.pairwise(times[WARM:])], took, size


def typical(rounds: list[list[float]]) -> float:
    """Microseconds for a step, from the quickest round of each block."""
    quickest = [min(blocks) for blocks in zip(*rounds, strict=False)]
    return statistics.mean(quickest) / BLOCK * 1e6


def kept(source: str) -> int:
    """Bytes that the lens holds when the program has ended."""

    def holds(look: Look) -> int:
        tracemalloc.start()
        names = {"__name__": "__main__", "STEPS": 200, "tick": lambda _: None}
        lens = Lens(look, source, PATH)
        lens.run(compile(source, PATH, "exec"), names)
        names.clear()
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        del lens
        return size

    holds(Look())
    return holds(Look(True, True)) - holds(Look())


def main(steps: int) -> None:
    """Measure and print."""
    torch.set_num_threads(1)
    looks: dict[str, Look] = {"off": Look(), "on": Look(trace=True, names=True)}
    print(f"Python {sys.version.split()[0]}, torch {torch.__version__}; {steps} steps")
    print(f"{'':52}{'off':>9}{'on':>9}   on/off   report        kept")
    for name, loop in LOOPS.items():
        source = HEAD + loop
        rounds: dict[str, list[list[float]]] = {key: [] for key in looks}
        took, size = 0.0, 0
        for _ in range(ROUNDS):
            for key, look in looks.items():
                more, took, size = run(source, steps, look)
                rounds[key].append(more)
        off, on = typical(rounds["off"]), typical(rounds["on"])
        report = f"{took:6.0f} ms{size / 1024:5.0f} KiB{kept(source) / 1024:6.0f} KiB"
        over = "" if on / off <= WANTED else "  over"
        print(f"{name:52}{off:6.0f} µs{on:6.0f} µs   {on / off:5.3f}{report}{over}")
    print(f"wanted: on/off <= {WANTED}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else STEPS)
