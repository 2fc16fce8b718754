# tries = "An endless loop."
# outcome = ["time"]
# sentence = ["Stopped after 0.5 s", "a loop that does not end"]
# limits = {wall_s = 0.5}
while True:
    pass
