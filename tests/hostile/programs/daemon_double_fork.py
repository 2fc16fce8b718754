# tries = "To leave a daemon, forked twice, in a session of its own."
# outcome = ["done"]
# output = ["the program ends"]
import os
import time

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.chdir("/")
        while True:
            time.sleep(1000)
    os._exit(0)
print("the program ends")
