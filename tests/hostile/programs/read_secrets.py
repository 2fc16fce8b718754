# tries = "To read keys and other people's files: at home, in /etc, by other names of the same folders."
# output = ["tried"]
# absent = ["got"]
import glob
import json
import os
import pwd
import sys

world = json.loads(sys.argv[1])
places = [
    world["home"] + "/.ssh/id_ed25519", world["home"] + "/.bashrc", world["elsewhere"] + "/data.txt",
    "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/root/.bashrc", "/root/.profile",
    *(user.pw_dir + "/.ssh/id_rsa" for user in pwd.getpwall()), *(user.pw_dir + "/.bashrc" for user in pwd.getpwall()),
]  # fmt: skip
for pid in ("self", "1", "2", str(os.getppid()), str(world["zygote"]), str(world["host"])):
    places += [f"/proc/{pid}/root{place}" for place in places[:3]]
    places += [f"/proc/{pid}/cwd/../home/.bashrc"]
places += glob.glob("/var/log/*log") + glob.glob("/var/lib/docker/*") + glob.glob("/run/secrets/*")
for place in places:
    try:
        with open(place) as file:
            print("got", place, file.read(50))
    except (OSError, UnicodeDecodeError):
        continue
for folder in (world["home"], world["elsewhere"], "/root"):
    try:
        print("got", folder, os.listdir(folder))
    except OSError:
        continue
print("tried")
