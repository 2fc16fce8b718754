# says = "Two ranks sum over gloo, meeting at a port of the loopback."
# torch_before = true
# layers = ["full"]
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(index, port, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=index, world_size=2)
    total = torch.tensor([index + 1.0])
    dist.all_reduce(total)
    queue.put((index, total.item()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = mp.get_context("fork")
    queue = context.Queue()
    ranks = [context.Process(target=rank, args=(i, port, queue)) for i in range(2)]
    for process in ranks:
        process.start()
    print(sorted(queue.get() for _ in ranks))
    for process in ranks:
        process.join()
    print([process.exitcode for process in ranks])
