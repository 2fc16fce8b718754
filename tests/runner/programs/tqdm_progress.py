# says = "tqdm draws its bar with carriage returns, on stderr as ever, on stdout when told to."
# stderr = ["100%", "\r"]
import sys

from tqdm import tqdm, trange

for _ in tqdm(range(50), desc="train"):
    pass
with trange(3, file=sys.stdout, ncols=40, bar_format="{desc}: {n_fmt}/{total_fmt}|{bar}|") as steps:
    for step in steps:
        steps.set_description(f"loss {1 / (step + 1):.2f}")
        tqdm.write(f"step {step}", file=sys.stdout)
print("done")
