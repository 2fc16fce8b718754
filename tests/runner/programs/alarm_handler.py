# says = "SIGALRM reaches the program's handler; blocking calls are interrupted."
import signal
import time


class Late(Exception):
    pass


def ring(number, frame):
    raise Late(signal.Signals(number).name)


signal.signal(signal.SIGALRM, ring)
signal.setitimer(signal.ITIMER_REAL, 0.05)
try:
    time.sleep(30)
except Late as late:
    print("rang", late)
