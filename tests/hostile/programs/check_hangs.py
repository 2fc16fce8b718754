# tries = "Never to answer."
# outcome = ["time"]
# limits = {wall_s = 0.5}
# judged = true
def double(x):
    while True:
        pass
