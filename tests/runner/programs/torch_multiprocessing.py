# says = "torch.multiprocessing spawns functions of the program; tensors travel through queues."
import torch
import torch.multiprocessing as mp


def produce(rank, queue, shared):
    shared[rank] = rank + 1
    queue.put(torch.full((2,), float(rank)))
    queue.close()
    queue.join_thread()


if __name__ == "__main__":
    mp.set_sharing_strategy("file_system")
    context = mp.get_context("spawn")
    queue = context.Queue()
    shared = torch.zeros(1).share_memory_()
    process = context.Process(target=produce, args=(0, queue, shared))
    process.start()
    print(queue.get().tolist())
    process.join()
    print(shared.tolist(), process.exitcode)
