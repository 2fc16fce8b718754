# says = "A class of the program is pickled by name and reaches workers that are spawned."
# torch_before = true
import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.tensor([i, i * i])


if __name__ == "__main__":
    context = "spawn"
    for batch in DataLoader(
        Squares(), batch_size=2, num_workers=1, multiprocessing_context=context
    ):
        print(batch.tolist())
