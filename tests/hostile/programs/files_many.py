# tries = "A file bomb: small files without end, in the folder that lasts."
# outcome = ["files", "time", "raised"]
# limits = {wall_s = 1, file_bytes = 4_194_304}
import itertools
import os

for number in itertools.count():
    if number % 500 == 0:
        os.mkdir(f"{number // 500}")
    with open(f"{number // 500}/{number}", "w") as file:
        file.write("x")
