# tries = "To leave a file that runs code when torch.load opens it."
import os

import torch


class Bomb:
    def __reduce__(self):
        return print, ("got the next run",)


torch.save({"weight": Bomb()}, "model.pt")
print(os.path.getsize("model.pt") > 0)
# ---
# tries = "To open it as lessons do."
# outcome = ["raised"]
# output = ["UnpicklingError"]
# absent = ["got the next run"]
import torch

torch.load("model.pt")
