# tries = "To swallow every exception, KeyboardInterrupt too."
# outcome = ["stopped"]
# stop_at = "ready"
import time

while True:
    try:
        print("ready", flush=True)
        time.sleep(1000)
    except BaseException as error:
        print("swallowed", type(error).__name__)
