# tries = "To swallow every exception, KeyboardInterrupt too."
# outcome = ["stopped"]
# stop_at = "ready"
# patience_s = 1.0
import time

while True:
    try:
        print("ready", flush=True)
        time.sleep(1000)
    except BaseException as error:
        print("swallowed", type(error).__name__)
