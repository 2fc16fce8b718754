# says = "A class of the program reaches DataLoader workers that are forked."
# torch_before = true
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 10

    def __getitem__(self, i):
        return torch.tensor([i, i * i])


for batch in DataLoader(Squares(), batch_size=4, num_workers=2, multiprocessing_context="fork"):
    print(batch.tolist())
