# tries = "To find or to gain privileges: capabilities, setuid helpers, other users."
# output = ["tried", "NoNewPrivs 1", "Seccomp 2", "CapEff 0000000000000000", "CapPrm 0000000000000000"]
# absent = ["got"]
import os
import subprocess

for line in open("/proc/self/status"):
    if line.startswith(("Cap", "NoNewPrivs", "Seccomp:")):
        print(line.replace(":\t", " ").strip())
for user in {1, 1000, 65534} - {os.getuid()}:
    for call in (os.setuid, os.seteuid, os.setgid):
        try:
            call(user)
            print("got", call.__name__, user)
        except OSError:
            continue
for command in ("sudo -n id", "ping -c 1 -W 1 1.1.1.1", "chsh -s /bin/sh nobody", "crontab -l"):
    done = subprocess.run(command, shell=True, capture_output=True, stdin=-3, start_new_session=True)
    if done.returncode == 0:
        print("got", command)
print("tried")
