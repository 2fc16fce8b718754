# says = "No signal is blocked, ignored or handled that plain Python leaves alone."
import signal

print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
for number in sorted(signal.valid_signals()):
    handler = signal.getsignal(number)
    if handler is not signal.SIG_DFL and number != signal.SIGINT:
        print(number, handler)
