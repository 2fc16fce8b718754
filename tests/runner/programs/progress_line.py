# says = "A progress line rewritten with carriage returns stays as written."
import sys

for step in range(4):
    print(f"\r{step + 1}/4 [{'#' * step:<4}]", end="", flush=True)
print()
for step in range(3):
    sys.stderr.write(f"\rstep {step}")
sys.stdout.write("no newline at the end")
