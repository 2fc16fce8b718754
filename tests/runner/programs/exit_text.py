# says = "sys.exit with a text prints it to standard error and exits with 1."
# stderr = ["no data here"]
import sys

sys.exit("no data here")
