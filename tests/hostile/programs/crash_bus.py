# tries = "To read a mapped file that is no longer there."
# outcome = ["killed"]
# sentence = ["bus error"]
import mmap

with open("area", "w+b") as file:
    file.truncate(8192)
    area = mmap.mmap(file.fileno(), 8192)
    file.truncate(0)
    print(area[5000])
