"""What `plot(losses)` at every step costs a training loop, in a run of the real runner.

    python -m tests.bench.plotting [STEPS]

The same loop with and without it, in turns; the thread's own processor time, so that a busy
machine does not count.
"""

import sys
import tempfile
from pathlib import Path

from tensortutor.protocol.drawings import Plot
from tensortutor.protocol.events import Output, event_to_json
from tensortutor.protocol.framing import encode
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.runner import Runner, Settings

PROGRAM = """
import sys, time, torch
from tensortutor.lab import plot

torch.set_num_threads(1)
steps = int(sys.argv[1])
net = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(64, 10)
y = x.sum(1, keepdim=True)

def train(steps, plotted):
    losses = []
    spent = 0.0
    begun = time.thread_time()
    for step in range(steps):
        loss = ((net(x) - y) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        before = time.thread_time()
        if plotted:
            plot(losses)
        spent += time.thread_time() - before
    return time.thread_time() - begun, spent

train(200, False)
for turn in range(3):
    bare, empty = train(steps, False)
    whole, spent = train(steps, True)
    spent -= empty
    print(f"{bare / steps * 1e6:.0f} us a step; plot takes {spent / steps * 1e6:.1f} us of "
          f"{whole / steps * 1e6:.0f} us, {spent / whole:.1%}")
"""


def main() -> None:
    """Print the figures."""
    steps = sys.argv[1] if len(sys.argv) > 1 else "10000"
    job = Job(PROGRAM, arguments=(steps,), limits=Limits(wall_s=600.0))
    settings = Settings(Path(tempfile.mkdtemp()), device="cpu")
    sent = count = 0
    with Runner(settings) as runner:
        runner.prepare()
        for event in runner.start(job):
            if isinstance(event, Plot):
                count += 1
                sent += len(encode(event_to_json(event)))
            elif isinstance(event, Output):
                print(event.text, end="", flush=True)
    print(f"{count} states of the plot were sent, {sent / max(count, 1) / 1000:.1f} kB each")


if __name__ == "__main__":
    main()
