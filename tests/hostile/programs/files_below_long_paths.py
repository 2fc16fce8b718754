# tries = "To write more than is allowed where no path reaches."
# outcome = ["files"]
import os
import time

for _ in range(40):
    os.mkdir("x" * 200)
    os.chdir("x" * 200)
for number in range(8):
    time.sleep(0.2)  # what is there at the first look counts as left by an earlier run
    with open(f"{number}", "wb") as file:
        file.write(bytes(4_000_000))
time.sleep(1000)
