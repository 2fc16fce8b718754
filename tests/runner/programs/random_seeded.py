# says = "Seeded random numbers are those of a fresh interpreter."
import random

import numpy as np
import torch

random.seed(1)
np.random.seed(1)
torch.manual_seed(1)
print(random.random(), np.random.rand(), torch.rand(3), torch.randn(2), torch.randperm(5))
