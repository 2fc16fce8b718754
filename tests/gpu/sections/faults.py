"""Programs that break a card's context, fill it or keep it busy: each ends in its sentence."""

import threading
import time
from dataclasses import dataclass

from tensortutor.course.atlas import check_atlas
from tensortutor.course.catalog import find_course, load_course
from tensortutor.course.explain import complaint_of, known
from tensortutor.protocol.events import Finished, Started
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner
from tensortutor.runner.errors import RunnerError
from tests.gpu.kit import Kit, Ran, run

WORKS = "import torch\nprint(int(torch.ones(8, 8, device=device).sum()))\n"


@dataclass(frozen=True)
class Fault:
    """A program that must end in `outcome`, with `says` in its last line, and known to `entry`."""

    name: str
    source: str
    outcome: str
    says: str
    entry: str = ""
    wall_s: float = 60.0


ON_CUDA = (
    Fault(
        "out of memory",
        "import torch\nx = torch.ones(10**13, device=device)\n",
        "memory", "out of memory", "cuda_memory",
    ),
    Fault(
        "a device-side assert",
        """
import torch
import torch.nn.functional as F
logits = torch.randn(4, 3, device=device)
loss = F.cross_entropy(logits, torch.tensor([0, 1, 2, 3], device=device))
print(loss)
""",
        "raised", "device-side assert", "device_assert",
    ),
    Fault(
        # A tensor over memory far beyond its allocation, made as other libraries hand theirs over.
        "an illegal address",
        """
import torch
x = torch.zeros(1024, dtype=torch.uint8, device=device)
class Beyond:
    __cuda_array_interface__ = {
        "shape": (1 << 44,), "typestr": "|u1", "data": (x.data_ptr(), False), "version": 3}
y = torch.as_tensor(Beyond(), device=device)
y[-4096:].fill_(1)
torch.cuda.synchronize()
""",
        "raised", "illegal memory access", "illegal_memory_access",
    ),
    Fault(
        "a kernel that does not end",
        "import torch\ntorch.ones(1, device=device)\n"
        "torch.cuda._sleep(10**14)\ntorch.cuda.synchronize()\n",
        "time", "", wall_s=5.0,
    ),
    Fault(
        "a loader's worker that uses the card",
        """
import torch
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 4
    def __getitem__(self, index):
        return torch.ones(2, device=device)
torch.ones(1, device=device)
next(iter(DataLoader(Rows(), num_workers=1, multiprocessing_context="fork")))
""",
        "raised", "", "cuda_after_fork",
    ),
)  # fmt: skip
ON_CPU = (
    Fault(
        "out of memory", "import torch\nx = torch.ones(10**15, device=device)\n",
        "memory", "can't allocate memory",
    ),
    Fault(
        "an index out of range",
        "import torch\ntorch.ones(3, device=device)[torch.tensor([3])]\n",
        "raised", "out of bounds",
    ),
    Fault(
        "an illegal address", "import ctypes\nctypes.string_at(0)\n", "killed", "",
    ),
    Fault("a loop that does not end", "while True:\n    pass\n", "time", "", wall_s=2.0),
)  # fmt: skip

STOPPED = """
import torch
torch.ones(1, device=device)
print("begun", flush=True)
if device.type == "cuda":
    torch.cuda._sleep(10**14)
    torch.cuda.synchronize()
while True:
    pass
"""
TWO = """
import torch
a = torch.randn({size}, {size}, device=device)
for _ in range(100):
    a = torch.tanh(a @ a / 32)
print(bool(torch.isfinite(a).all()))
"""
FILLS = """
import torch
free, total = torch.cuda.mem_get_info()
held = [torch.empty(size, dtype=torch.uint8, device=device)
        for size in (free - (256 << 20), 192 << 20) if size > 0]
print("full", flush=True)
import time
time.sleep(30)
"""
NEEDS_ROOM = """
import torch
free, total = torch.cuda.mem_get_info()
x = torch.empty(free + (1 << 30), dtype=torch.uint8, device=device)
"""


def main(kit: Kit, deadline: float) -> None:
    """Each fault, and after each that the next run works."""
    del deadline
    course = load_course(find_course())
    entries, _ = check_atlas(course)
    with kit.runner() as runner:
        for fault in ON_CUDA if kit.on_cuda else ON_CPU:
            ended = run(runner, fault.source, wall_s=fault.wall_s)
            told = f"{ended.outcome}: {ended.last_line[:160]}"
            good = (not fault.outcome or ended.outcome == fault.outcome) and (
                fault.says.lower() in ended.last_line.lower()
            )
            kit.ok(fault.name, good, told)
            if fault.entry:
                kit.ok(f"{fault.name}: explained", fault.entry in _entries(entries, ended), told)
            _next_works(kit, runner, fault.name)
        _stop(kit, runner)
        _two_at_once(kit, runner)
        if kit.on_cuda and not kit.quick:
            _full_card(kit, runner)


def _entries(entries: object, ended: Ran) -> list[str]:
    """The atlas's entries that know the error, or what the program wrote of a child's error."""
    if ended.record.raised is not None:
        complaint = complaint_of(ended.record.raised)
        return [entry.id for entry in known(entries, complaint)[1]]  # type: ignore[arg-type]
    lines = [line for line in ended.record.stderr.splitlines() if "Error: " in line]
    return [
        entry.id
        for line in lines
        for entry in entries  # type: ignore[attr-defined]
        if entry.pattern.search(line)
    ]


def _next_works(kit: Kit, runner: Runner, after: str) -> None:
    ran = run(runner, WORKS)
    good = ran.record.stdout.strip() == "64"
    kit.ok(f"the run after {after}", good, f"{ran.finished_s * 1000:.0f} ms, {ran.last_line}")


def _stop(kit: Kit, runner: Runner) -> None:
    """The learner stops a program that the card keeps busy."""
    job = Job(STOPPED)
    under_way = runner.start(job)
    asked = 0.0
    outcome = ""
    for event in under_way:
        if not asked and not isinstance(event, Started) and "begun" in getattr(event, "text", ""):
            asked = time.perf_counter()
            under_way.stop()
        if isinstance(event, Finished):
            outcome = event.outcome
    took = time.perf_counter() - asked
    kit.ok("stopped by the learner", outcome == "stopped", f"{outcome} after {took:.2f} s")
    _next_works(kit, runner, "a stop")


def _two_at_once(kit: Kit, runner: Runner) -> None:
    """Two programs share the device."""
    source = TWO.format(size=2048 if kit.on_cuda else 128)
    ran: list[Ran] = []
    threads = [threading.Thread(target=lambda: ran.append(run(runner, source))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    said = [one.record.stdout.strip() or one.last_line for one in ran]
    kit.ok("two runs at once", said == ["True", "True"], ", ".join(said))


def _refused(kit: Kit) -> None:
    """A tutor that starts while the card is full says so, and nothing else is amiss."""
    try:
        with kit.runner() as second:
            said = run(second, WORKS).last_line
    except RunnerError as error:
        said = str(error)
    kit.ok("a start while the card is full", "out of memory" in said.lower(), said[:200])


def _full_card(kit: Kit, runner: Runner) -> None:
    """Another program has filled the card: a sentence, and once it is gone the next run works."""
    other = runner.start(Job(FILLS))
    for event in other:
        if "full" in getattr(event, "text", ""):
            for name in ("a card that is full", "a full card, a new process"):
                ran = run(runner, NEEDS_ROOM)
                good = "out of memory" in ran.last_line.lower()
                kit.ok(name, good, f"{ran.outcome}: {ran.last_line[:160]}")
            _refused(kit)
            other.stop()
    _next_works(kit, runner, "a full card")
