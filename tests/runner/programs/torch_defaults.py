# says = "torch is as a fresh import leaves it."
import torch

print(torch.get_default_dtype(), torch.get_default_device(), torch.is_grad_enabled())
print(torch.get_num_threads(), torch.get_num_interop_threads())
print(torch.are_deterministic_algorithms_enabled())
print(torch._C._get_tracing_state(), torch.is_inference_mode_enabled(), torch.get_rng_state().shape)
print(torch.tensor([1 / 3, 1e6]), torch.ones(2, 2, requires_grad=True).sum().backward())
