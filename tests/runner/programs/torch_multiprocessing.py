# says = "torch.multiprocessing spawns functions of the program; tensors travel through queues."
# torch_before = true
import torch
import torch.multiprocessing as mp


def produce(rank, queue, shared, received):
    shared[rank] = rank + 1
    queue.put(torch.full((2,), float(rank)))
    received.wait()  # the memory of a tensor that was sent lives as long as its sender


if __name__ == "__main__":
    context = mp.get_context("spawn")
    queue, received = context.Queue(), context.Event()
    shared = torch.zeros(1).share_memory_()
    process = context.Process(target=produce, args=(0, queue, shared, received))
    process.start()
    print(queue.get().tolist())
    received.set()
    process.join()
    print(shared.tolist(), process.exitcode)
