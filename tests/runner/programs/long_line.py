# says = "Ten million characters on one line arrive whole."
# limits = {output_bytes = 20_000_000}
import sys

sys.stdout.write("0123456789" * 1_000_000)
