# says = "The program's own handler of SIGINT is called; by default it is KeyboardInterrupt."
import os
import signal

try:
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
except KeyboardInterrupt:
    print("interrupted")
signal.signal(signal.SIGINT, lambda *_: print("handled"))
os.kill(os.getpid(), signal.SIGINT)
print(signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGPIPE).name)
