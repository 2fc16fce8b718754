# tries = "An endless loop."
# outcome = ["time"]
# sentence = ["Stopped after 1 s", "a loop that does not end"]
# limits = {wall_s = 1}
while True:
    pass
