# tries = "To read passwords and proxies from the environment, its own and that of a neighbour."
# output = ["tried"]
# absent = ["http://me", "got"]
import json
import os
import sys
import urllib.request

world = json.loads(sys.argv[1])
print(dict(os.environ), urllib.request.getproxies())
for name in ("neighbour", "zygote", "host"):
    try:
        with open(f"/proc/{world[name]}/environ", "rb") as file:
            if world["token"].encode() in file.read():
                print("got", name)
    except OSError:
        continue
print("tried")
