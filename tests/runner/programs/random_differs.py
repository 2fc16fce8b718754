# says = "Random numbers of Python, numpy and torch do not repeat from run to run."
# runs = 2
# same = false
import random

import numpy as np
import torch

print(random.random())
print(np.random.rand(2), np.random.default_rng().random())
print(torch.rand(2), torch.initial_seed())
