# tries = "A call of C code that holds Python's lock and never looks for signals."
# outcome = ["stopped"]
# sentence = ["did not react"]
# stop_at = "ready"
import collections
import itertools

print("ready", flush=True)
collections.deque(itertools.repeat(0), maxlen=0)
