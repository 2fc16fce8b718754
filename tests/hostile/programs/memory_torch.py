# tries = "To take all memory with one tensor."
# outcome = ["memory"]
# sentence = ["a run may use 0.5 GiB"]
# limits = {memory_bytes = 536_870_912}
import torch

torch.zeros(1 << 40)
