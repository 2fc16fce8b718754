# tries = "A call of C code that holds Python's lock and never returns."
# outcome = ["stopped"]
# sentence = ["did not react"]
# stop_at = "ready"
import re

print("ready", flush=True)
re.match("(a+)+$", "a" * 60 + "b")
