# tries = "To leave a daemon that ignores signals, has no descriptors and another name."
# outcome = ["done"]
import ctypes
import json
import os
import signal
import sys
import time

world = json.loads(sys.argv[1])
if os.fork() == 0:
    os.setsid()
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        try:
            signal.signal(number, signal.SIG_IGN)
        except OSError:
            continue
    os.closerange(0, 4096)
    ctypes.CDLL(None).prctl(15, b"[kworker/0:0]", 0, 0, 0)
    if os.fork() == 0:
        os.execve("/bin/sleep", ["sleep", "1000", world["token"]], {})
    while True:
        time.sleep(1000)
