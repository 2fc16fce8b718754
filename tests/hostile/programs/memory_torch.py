# tries = "To take all memory with one tensor."
# outcome = ["memory"]
# sentence = ["a run may use 1 GiB"]
# limits = {memory_bytes = 1_073_741_824, wall_s = 10}
import torch

torch.zeros(1 << 40)
