# tries = "To leave without clean-up, with the status of success."
# outcome = ["exited"]
# sentence = ["ended at once with status 0"]
import os

os._exit(0)
