# tries = "To take all memory with Python objects."
# outcome = ["memory"]
# sentence = ["a run may use 1 GiB"]
# limits = {memory_bytes = 1_073_741_824, wall_s = 10}
kept = []
while True:
    kept.append(bytearray(50_000_000))
