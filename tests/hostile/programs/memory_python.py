# tries = "To take all memory with Python objects."
# outcome = ["memory"]
# sentence = ["a run may use 0.5 GiB"]
# limits = {memory_bytes = 536_870_912}
kept = []
while True:
    kept.append(bytearray(50_000_000))
