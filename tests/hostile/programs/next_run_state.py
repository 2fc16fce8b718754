# tries = "To leave state for the next run: environment, limits, mask, priority, folders, threads, defaults."
import gc
import os
import resource
import signal
import sys
import warnings

import torch

os.environ["HOSTILE"] = "1"
os.umask(0o777)
os.nice(19)
resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
signal.signal(signal.SIGTERM, signal.SIG_IGN)
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch.set_num_threads(1)
torch.manual_seed(0)
torch.allclose = lambda *a: True
sys.path.insert(0, os.getcwd())
sys.modules["json"] = sys
warnings.simplefilter("error")
gc.disable()
# ---
# tries = "To find it."
# output = ["found []"]
import gc
import os
import resource
import signal
import sys
import warnings

import torch

facts = {
    "environment": "HOSTILE" in os.environ,
    "umask": os.umask(0o22) == 0o777,
    "priority": os.nice(0) == 19,  # every run is niced a little
    "files": resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 20,
    "mask": bool(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "handler": signal.getsignal(signal.SIGTERM) == signal.SIG_IGN,
    "dtype": torch.get_default_dtype() != torch.float32,
    "device": torch.get_default_device().type == "meta",
    "path": os.getcwd() in sys.path,
    "modules": sys.modules.get("json") is sys,
    "warnings": any(f[0] == "error" for f in warnings.filters),
    "collector": not gc.isenabled(),
}
print("found", [name for name, so in facts.items() if so])
