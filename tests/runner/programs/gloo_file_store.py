# says = "Two ranks sum over gloo, meeting at a file."
# torch_before = true
# layers = ["full"]
import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def rank(index, queue):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + FILE, rank=index, world_size=2)
    total = torch.tensor([index + 1.0])
    dist.all_reduce(total)
    queue.put((index, total.item()))
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    import os

    FILE = os.path.abspath("store")
    context = mp.get_context("fork")
    queue = context.Queue()
    ranks = [context.Process(target=rank, args=(i, queue)) for i in range(2)]
    for process in ranks:
        process.start()
    print(sorted(queue.get() for _ in ranks))
    for process in ranks:
        process.join()
    print([process.exitcode for process in ranks])
