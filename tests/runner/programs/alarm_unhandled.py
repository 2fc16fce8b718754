# says = "A signal that nobody handles ends the program: 128 + 14."
import signal

print("before", flush=True)
signal.setitimer(signal.ITIMER_REAL, 0.05)
signal.pause()
