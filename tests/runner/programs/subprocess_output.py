# says = "Child processes print where the program prints."
import subprocess
import sys

print("before", flush=True)
subprocess.run(["echo", "by echo"], check=True)
print("between", flush=True)
subprocess.run([sys.executable, "-c", "import sys; print(sys.argv, __name__)", "a"], check=True)
print(subprocess.run(["cat"], input=b"piped", capture_output=True, check=True).stdout)
print(subprocess.run("exit 4", shell=True).returncode)
