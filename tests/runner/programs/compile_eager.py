# says = "torch.compile with the eager backend."
# torch_before = true
import torch


@torch.compile(backend="eager")
def double(x):
    return torch.sin(x) * 0 + 2 * x


print(double(torch.arange(3.0)))
print(torch._dynamo.utils.counters["stats"]["unique_graphs"])
