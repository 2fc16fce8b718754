# tries = "Nothing: it is stopped and takes it well."
# outcome = ["stopped"]
# sentence = ["Stopped."]
# output = ["ready", "cleaned up"]
# stop_at = "ready"
import time

try:
    print("ready", flush=True)
    time.sleep(1000)
finally:
    print("cleaned up")
