# tries = "Endless lines."
# outcome = ["time"]
# limits = {wall_s = 0.5, output_bytes = 100_000}
while True:
    print("all work and no play makes jack a dull boy")
