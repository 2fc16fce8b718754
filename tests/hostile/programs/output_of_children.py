# tries = "Endless output of child processes that outlive the program."
# outcome = ["done"]
# limits = {output_bytes = 100_000}
import subprocess

for word in ("yes", "no"):
    subprocess.Popen(["yes", word], start_new_session=True)
