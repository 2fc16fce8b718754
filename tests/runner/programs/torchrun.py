# says = "torchrun starts two ranks of the same file."
# layers = ["full"]
import os
import subprocess
import sys

if "RANK" in os.environ:
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    total = torch.tensor(dist.get_rank() + 1)
    dist.all_reduce(total)
    os.write(1, f"of {dist.get_world_size()}: {total.item()}\n".encode())
    dist.destroy_process_group()
else:
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
    sys.exit(subprocess.run([sys.executable, *command]).returncode)
