# says = "What one run saves, the next one loads."
# torch_before = true
# runs = 2
import os

import torch

if os.path.exists("model.pt"):
    state = torch.load("model.pt")
    print("loaded", state["step"], state["weight"].tolist())
else:
    torch.save({"weight": torch.arange(3.0), "step": 7}, "model.pt")
    print("saved", os.listdir())
