# tries = "To ignore SIGTERM and SIGINT."
# outcome = ["stopped"]
# sentence = ["did not react"]
# stop_at = "ready"
# patience_s = 1.0
import signal
import time

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_IGN)
    except OSError:
        continue  # of the C library's own
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print("ready", flush=True)
while True:
    time.sleep(1000)
