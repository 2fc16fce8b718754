# says = "torch.rand alone does not repeat from run to run."
# runs = 2
# same = false
import torch

print(torch.rand(4).tolist())
