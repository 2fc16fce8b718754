# says = "Only eight bits of a status arrive."
import sys

sys.exit(256 + 7)
