# says = "Arguments arrive."
# arguments = ["--steps", "3", "grüße"]
import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int)
parser.add_argument("name")
print(parser.parse_args())
