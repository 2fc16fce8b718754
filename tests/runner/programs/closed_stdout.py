# says = "A program may close its standard output and still end well."
import sys

print("last words", flush=True)
sys.stdout.close()
sys.stdout = None
print("nowhere")
