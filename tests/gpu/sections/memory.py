"""What the waiting processes hold: on the card, and in main memory."""

import subprocess
import sys
import time

from tests.gpu.kit import Kit, run

FREE = "import torch, sys\nprint(torch.cuda.mem_get_info(int(sys.argv[1]))[0])\n"
SETTLED_S = 4.0
BEGINS = """
import torch
print(torch.cuda.memory_allocated(), torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved())
torch.manual_seed(0)
print(torch.randn(3, device=device).tolist(), torch.randn(3).tolist())
"""


def main(kit: Kit, deadline: float) -> None:
    """With one waiting process and with two; then after they have been let go."""
    del deadline
    if not kit.on_cuda:
        kit.skip("memory on the card", "the device is the processor")
        from tests.bench import memory

        total = sum(map(sum, memory.idle_app().values())) if not kit.quick else 0.0
        if total:
            kit.figure("idle app, all its processes", total, "MiB", "PSS")
        return
    with kit.runner() as runner:
        here = run(runner, BEGINS).record.stdout
    plain = subprocess.run(
        [sys.executable, "-c", f"import torch; device = torch.device({kit.device!r})\n{BEGINS}"],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    kit.ok("a program begins as in a new process", here == plain, f"{here.strip()}; {plain}")
    before = free(kit)
    held = {}
    for spares in (1, 2):
        with kit.runner(spares=spares) as runner:
            run(runner, "import torch\ntorch.ones(1, device=device)\n")
            time.sleep(SETTLED_S)
            held[spares] = (before - free(kit)) / 2**20
    kit.figure("card memory held by one waiting process", held[1], "MiB")
    kit.figure("card memory held by two", held[2], "MiB", "the default")
    time.sleep(2)
    after = (before - free(kit)) / 2**20
    kit.figure("card memory held after closing", after, "MiB", "wanted 0", good=abs(after) < 64)
    with kit.runner(idle_s=3.0) as runner:
        run(runner, "import torch\ntorch.ones(1, device=device)\n")
        time.sleep(SETTLED_S + 3)
        idle = (before - free(kit)) / 2**20
        kit.figure("card memory held when idle", idle, "MiB", "wanted 0", good=abs(idle) < 64)
        again = run(runner, "import torch\ntorch.ones(1, device=device)\n")
        kit.ok("the first run after idling", again.outcome == "done", again.last_line)


def free(kit: Kit) -> int:
    """Free bytes of the card, asked for by a process of its own; its own context is in both."""
    index = kit.device.partition(":")[2] or "0"
    done = subprocess.run(
        [sys.executable, "-c", FREE, index], capture_output=True, text=True, check=True
    )
    return int(done.stdout)
