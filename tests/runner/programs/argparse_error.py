# says = "A command line that is wrong ends with status 2."
# arguments = ["--unknown"]
# stderr = ["lesson_code.py: error: unrecognized arguments"]
import argparse

argparse.ArgumentParser().parse_args()
