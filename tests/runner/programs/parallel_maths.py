# says = "Parallel operations work in the program and in a process that it forks."
# torch_before = true
import torch

x = torch.arange(4_000_000, dtype=torch.float64)
print(x.sum().item(), (x.view(2000, 2000) @ torch.ones(2000, 1, dtype=torch.float64)).sum().item())
torch.set_num_threads(1)
print(torch.get_num_threads(), x.std().item() > 0)
