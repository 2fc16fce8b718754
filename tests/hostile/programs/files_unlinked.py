# tries = "To fill the disk with open files that have no name any more."
# outcome = ["files"]
# limits = {file_bytes = 16_777_216}
import os
import time

kept = []
for number in range(10):
    kept.append(open(str(number), "wb"))
    os.unlink(str(number))
    kept[-1].write(bytes(10_000_000))
    kept[-1].flush()
time.sleep(1000)
