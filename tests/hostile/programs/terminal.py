# tries = "To write to a terminal outside, to type in it, to change its size and its settings, to take it."
# output = ["tried"]
# absent = ["got"]
import contextlib
import fcntl
import json
import os
import struct
import sys
import termios

world = json.loads(sys.argv[1])
with contextlib.suppress(OSError):  # whoever leads a session may get a terminal by opening one
    os.setsid()
paths = [world["terminal"], "/dev/tty", "/dev/console", "/dev/tty1"]
for pid in (os.getppid(), world["host"], world["zygote"], world["neighbour"]):
    paths += [f"/proc/{pid}/fd/{number}" for number in range(3)]
found = [0, 1, 2]
for path in paths:
    for flags in (os.O_RDWR, os.O_WRONLY, os.O_RDONLY):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, flags)
            if os.isatty(descriptor):
                print("got", path)
            found.append(descriptor)
size = struct.pack("HHHH", 7, 7, 0, 0)
for descriptor in found:
    for request, argument in ((termios.TIOCSTI, b"x"), (termios.TIOCSWINSZ, size), (termios.TIOCSCTTY, 1)):
        with contextlib.suppress(OSError):
            fcntl.ioctl(descriptor, request, argument)
            print("got", request, "of", descriptor)
    with contextlib.suppress(OSError, termios.error):
        settings = termios.tcgetattr(descriptor)
        settings[3] &= ~termios.ECHO
        termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        print("got the settings of", descriptor)
print("tried")
