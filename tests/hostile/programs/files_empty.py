# tries = "A file bomb: empty files, which take no bytes."
# outcome = ["files"]
# limits = {file_bytes = 16_777_216}
import itertools

for number in itertools.count():
    open(f"{number}", "w").close()
