"""Each layer of confinement reaches the card, and still hides what it must hide."""

import os
import tempfile
from pathlib import Path

from tensortutor.runner import Runner
from tensortutor.runner.errors import RunnerError
from tensortutor.runner.sandbox import why_no_full, why_no_landlock
from tests.gpu.kit import Kit, run

WHY_NOT = {"full": why_no_full, "landlock": why_no_landlock, "limits": lambda: ""}

USES_DEVICE = """
import torch
a = torch.randn(256, 256, device=device)
print(device, torch.allclose((a @ a).cpu(), a.cpu() @ a.cpu(), rtol=1e-3, atol=1e-2))
"""
CHILD_USES_DEVICE = """
import subprocess, sys
code = f"import torch; print(int(torch.ones(8, 8, device={str(device)!r}).sum()))"
done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
print(done.stdout.strip() or done.stderr.strip().splitlines()[-1])
"""
COMPILES = """
import torch
f = torch.compile(lambda x: torch.relu(x) * 2 + 1)
x = torch.randn(1000, device=device)
print(torch.allclose(f(x), torch.relu(x) * 2 + 1))
"""
READS_SECRET = "print(open({path!r}).read())"


def main(kit: Kit, deadline: float) -> None:
    """Try each layer."""
    del deadline
    for layer, why_not in WHY_NOT.items():
        if reason := why_not():
            kit.skip(f"layer {layer}", reason)
            continue
        try:
            with kit.runner(layer) as runner:
                used = run(runner, USES_DEVICE)
                said = used.record.stdout.strip() or used.last_line
                good = said.endswith("True") and used.layer == layer
                kit.ok(f"{layer}: a product on {kit.device}", good, f"{said}; layer {used.layer}")
                _child(kit, runner, layer)
                _hides(kit, runner, layer)
                if not kit.quick:
                    made = run(runner, COMPILES, wall_s=120)
                    said = made.record.stdout.strip() or made.last_line
                    kit.ok(f"{layer}: torch.compile", said == "True", said)
        except RunnerError as error:
            kit.ok(f"layer {layer}", False, str(error))


def _child(kit: Kit, runner: Runner, layer: str) -> None:
    """A process that the program starts uses the device."""
    name = f"{layer}: a program that it starts"
    if kit.on_cuda and layer == "landlock" and os.getuid() == 0:
        kit.skip(name, "CUDA writes to /proc, which is closed to root's programs here")
        return
    ran = run(runner, CHILD_USES_DEVICE, wall_s=120)
    said = ran.record.stdout.strip() or ran.last_line
    kit.ok(name, said == "64", said)


def _hides(kit: Kit, runner: Runner, layer: str) -> None:
    """A file in the home folder cannot be read. The layer `limits` promises no such thing."""
    if layer == "limits":
        return
    with tempfile.NamedTemporaryFile("w", dir=Path.home(), prefix=".tensortutor-kit-") as secret:
        secret.write("secret")
        secret.flush()
        tried = run(runner, READS_SECRET.format(path=secret.name))
        hidden = "secret" not in tried.record.stdout
        kit.ok(f"{layer}: the home folder stays hidden", hidden, tried.last_line)
