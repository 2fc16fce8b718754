# tries = "To abort."
# outcome = ["killed"]
# sentence = ["signal 6 (SIGABRT)"]
# output = ["before"]
import os

print("before")
os.abort()
