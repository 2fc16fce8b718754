# tries = "The same in shared memory."
# known = {landlock = "what is in /dev/shm is not counted there, it is removed at the end"}
# outcome = ["files", "raised", "memory"]
# limits = {wall_s = 1, file_bytes = 4_194_304, memory_bytes = 536_870_912}
import itertools
import json
import sys
import time

token = json.loads(sys.argv[1])["token"]

for number in itertools.count():
    with open(f"/dev/shm/{token}{number}", "wb") as file:
        file.write(bytes(3 << 20))
    time.sleep(0.05 if number < 40 else 1)
