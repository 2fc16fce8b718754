# says = "Pools of processes map functions of the program."
import concurrent.futures
import multiprocessing


def square(x):
    return x * x


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        print(pool.map(square, range(5)))
    context = multiprocessing.get_context("forkserver")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        print(list(executor.map(square, range(5))))
