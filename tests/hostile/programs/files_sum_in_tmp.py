# tries = "The same in the temporary folders."
# outcome = ["files", "raised", "memory"]
# limits = {file_bytes = 4_194_304}
import itertools
import tempfile
import time

kept = []
for number in itertools.count():
    kept.append(open(f"{tempfile.gettempdir()}/part{number}", "wb"))
    kept[-1].write(bytes(3 << 20))
    kept[-1].flush()
    time.sleep(0.05)
