# tries = "To crash in a child: the program goes on."
# outcome = ["done"]
# output = ["child -11"]
import ctypes
import multiprocessing

child = multiprocessing.get_context("fork").Process(target=ctypes.string_at, args=(0,))
child.start()
child.join()
print("child", child.exitcode)
