# tries = "Nothing: as many processes as allowed, when a lesson allows many."
# outcome = ["done"]
# output = ["80 ended"]
# limits = {processes = 100}
import os
import time

reader, writer = os.pipe()
for _ in range(80):
    if os.fork() == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
time.sleep(0.5)  # long enough to be counted
os.close(writer)
print(sum(os.wait()[1] == 0 for _ in range(80)), "ended")
