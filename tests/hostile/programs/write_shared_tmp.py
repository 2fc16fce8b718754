# tries = "To leave files in the machine's temporary folders and in shared memory."
# output = ["tried"]
import json
import os
import sys
from multiprocessing import resource_tracker, shared_memory

world = json.loads(sys.argv[1])
for folder in ("/tmp", "/var/tmp", "/dev/shm", "/run", "/dev/mqueue"):
    try:
        with open(os.path.join(folder, world["token"]), "w") as file:
            file.write("left")
    except OSError as error:
        print(error)
try:
    memory = shared_memory.SharedMemory(world["token"] + "m", create=True, size=100)
    resource_tracker.unregister(memory._name, "shared_memory")
except OSError as error:
    print(error)
print("tried")
