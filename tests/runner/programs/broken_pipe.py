# says = "A child that writes into a closed pipe dies of SIGPIPE, Python gets BrokenPipeError."
import os
import subprocess

reader, writer = os.pipe()
os.close(reader)
try:
    os.write(writer, b"x")
except BrokenPipeError as error:
    print(error)
print(subprocess.run("yes | head -n 1", shell=True, capture_output=True).stdout)
print(subprocess.run("yes >&9", shell=True, pass_fds=[writer], stderr=-3).returncode != 0)
