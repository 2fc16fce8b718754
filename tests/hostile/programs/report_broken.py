# tries = "To break the report of its own end: str() of what it raises ends the process."
# outcome = ["raised"]
# output = ["line 7", "E: <"]
class E(Exception):
    def __str__(self):
        raise SystemExit(0)
raise E
# ---
# tries = "A message that is no plain str."
# outcome = ["raised"]
# output = ["E: abc"]
class Words(str):
    def __getitem__(self, key):
        return 5


class E(Exception):
    def __str__(self):
        return Words("abc")


raise E
# ---
# tries = "An exception whose class tells nothing about itself."
# outcome = ["raised"]
# output = ["E: x"]
class Silent(type):
    def __getattribute__(self, name):
        raise SystemExit(3)


class E(Exception, metaclass=Silent):
    pass


raise E("x")
# ---
# tries = "A chain of causes that is deeper than the stack."
# outcome = ["raised"]
# output = ["ValueError: 29999"]
error = None
for number in range(30_000):
    above = ValueError(number)
    above.__cause__ = error
    error = above
raise error
# ---
# tries = "Notes that cannot be read."
# outcome = ["raised"]
# output = ["E: x"]
class E(Exception):
    __notes__ = property(lambda self: 1 / 0)


raise E("x")
# ---
# tries = "A syntax error with odd places in the file."
# outcome = ["raised"]
# sentence = ["SyntaxError"]
error = SyntaxError("m")
error.filename, error.lineno, error.text, error.offset = __file__, "x", [1], "z"
raise error
# ---
# tries = "A hook for exceptions that fails itself."
# outcome = ["raised"]
# output = ["ZeroDivisionError: division by zero"]
import sys


def hook(*about):
    raise SystemExit(0)


sys.excepthook = hook
1 / 0
# ---
# tries = "No hook for exceptions at all."
# outcome = ["raised"]
# output = ["ZeroDivisionError: division by zero"]
import sys

del sys.excepthook, sys.__excepthook__
1 / 0
# ---
# tries = "No streams at all."
# outcome = ["raised"]
# output = ["ZeroDivisionError: division by zero"]
import sys

del sys.stdout, sys.stderr
1 / 0
# ---
# tries = "A stream that ends the process whatever one asks it for."
# outcome = ["done"]
import sys


class Stream:
    def __getattr__(self, name):
        raise SystemExit(9)


sys.stdout = sys.stderr = Stream()
# ---
# tries = "A status that cannot be read."
# outcome = ["exited"]
# sentence = ["ended itself with status 1"]
class Stop(SystemExit):
    @property
    def code(self):
        raise ValueError


raise Stop
# ---
# tries = "A status that is no plain number."
# outcome = ["exited"]
# sentence = ["ended itself with status 3"]
class Status(int):
    def __and__(self, other):
        return "a word"


raise SystemExit(Status(3))
# ---
# tries = "To end without its main module."
# outcome = ["done"]
import sys

del sys.modules["__main__"]
