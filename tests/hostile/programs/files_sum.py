# tries = "Files that are small enough one by one."
# outcome = ["files", "raised"]
# limits = {file_bytes = 4_194_304}
import itertools
import time

for number in itertools.count():
    with open(f"part{number}", "wb") as file:
        file.write(bytes(3 << 20))
    time.sleep(0.05)
