# tries = "Folders in folders, so deep that no path reaches the end, unreadable ones among them."
# outcome = ["done", "raised"]
import os

for _ in range(800):
    os.mkdir("abcdefgh")
    os.chdir("abcdefgh")
os.mkdir("closed", 0o000)
os.mkfifo("pipe")
