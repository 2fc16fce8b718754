# tries = "To crash with faulthandler on: its report is shown."
# outcome = ["killed"]
# output = ["Fatal Python error: Segmentation fault"]
import faulthandler

faulthandler.enable()
faulthandler._sigsegv()
