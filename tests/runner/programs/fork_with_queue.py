# says = "Forked processes share tensors and print."
# torch_before = true
import torch
import torch.multiprocessing as mp


def work(shared, queue):
    shared += 1
    print("from the child", flush=True)
    queue.put("done")


if __name__ == "__main__":
    context = mp.get_context("fork")
    shared = torch.zeros(3).share_memory_()
    queue = context.Queue()
    child = context.Process(target=work, args=(shared, queue))
    child.start()
    answer = queue.get()
    child.join()
    print(answer, shared.tolist(), child.exitcode)
