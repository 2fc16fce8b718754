# tries = "To read passwords and proxies from the environment, its own and that of others."
# output = ["tried"]
# absent = ["http://me"]
import glob
import json
import os
import sys
import urllib.request

world = json.loads(sys.argv[1])
print(dict(os.environ), urllib.request.getproxies())
for path in [*glob.glob("/proc/[0-9]*/environ"), f"/proc/{world['host']}/environ", "/proc/self/environ"]:
    try:
        with open(path, "rb") as file:
            print(path, file.read())
    except OSError:
        continue
print("tried")
