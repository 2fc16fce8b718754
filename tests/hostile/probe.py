"""A program that runs after each attack and looks for what that has left."""

import os
import signal
import sys
import tempfile
import threading

import numpy
import torch

token = sys.argv[1]
built_in = (print, isinstance, all, abs, torch.allclose, torch.equal)
most_threads = 1 + 2 * (os.cpu_count() or 1)
facts = {
    "torch": all("site-packages" in str(m.__file__) for m in (torch, numpy)),
    "functions": all(type(function) is type(len) for function in built_in),
    "threads": threading.active_count() == 1 and len(os.listdir("/proc/self/task")) <= most_threads,
    "tracing": sys.gettrace() is None and sys.getprofile() is None,
    "arithmetic": torch.ones(3).sum().item() == 3
    and not torch.equal(torch.ones(2), torch.zeros(2)),
    "environment": not [name for name in os.environ if "HOSTILE" in name],
    "temporary folder": sorted(os.listdir(tempfile.gettempdir())) == ["library", "program"],
    "shared memory": not [name for name in os.listdir("/dev/shm") if token in name],
    "signals": signal.getsignal(signal.SIGTERM) == signal.SIG_DFL,
    "signal mask": not signal.pthread_sigmask(signal.SIG_BLOCK, []),
    "standard streams": sys.stdin.read() == "" and sys.stdout.fileno() == 1,
}
print("clean" if all(facts.values()) else [name for name, so in facts.items() if not so])
