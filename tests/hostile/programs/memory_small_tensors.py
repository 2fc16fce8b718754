# tries = "To take all memory with many small tensors."
# outcome = ["memory"]
# limits = {memory_bytes = 536_870_912}
import torch

kept = []
while True:
    kept.append(torch.ones(5000))
