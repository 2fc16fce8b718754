# tries = "To read keys and other people's files: at home, in /etc, by other names of the same folders."
# output = ["tried"]
# absent = ["got"]
import json
import os
import pwd
import sys

world = json.loads(sys.argv[1])
planted = [f"{world['home']}/.ssh/id_ed25519", f"{world['home']}/.bashrc", f"{world['elsewhere']}/data.txt"]
places = [*planted, "/etc/shadow", "/etc/gshadow", "/etc/sudoers"]
for user in pwd.getpwall():
    places += [f"{user.pw_dir}/.bashrc", f"{user.pw_dir}/.profile", f"{user.pw_dir}/.ssh/authorized_keys"]
for pid in ("self", "1", "2", *(str(world[name]) for name in ("zygote", "host", "neighbour"))):
    places += [f"/proc/{pid}/root{place}" for place in planted]
    places += [f"/proc/{pid}/cwd{place}" for place in planted]
for place in places:
    try:
        with open(place):
            print("got", place)
    except OSError:
        continue
for folder in (world["home"], world["elsewhere"], f"/proc/{world['host']}/cwd"):
    try:
        print("got", folder, len(os.listdir(folder)))
    except OSError:
        continue
print("tried")
