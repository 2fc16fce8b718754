# tries = "Names that are no text, and names that look like options."
# outcome = ["done"]
import os

for name in (b"\xff\xfe", b"-rf", b"a\nb", b"\x1b[2J", b" ", b"~", b"*" * 200):
    with open(name, "w") as file:
        file.write("x")
os.mkdir("locked")
os.chmod("locked", 0)
os.symlink("locked", "loop")
os.symlink("circle", "circle")
