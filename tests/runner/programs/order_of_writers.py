# says = "Python's streams and the descriptor keep their order."
import os

for i in range(50):
    print("print", i, flush=True)
    os.write(1, b"write %d\n" % i)
