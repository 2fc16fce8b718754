# says = "exit() and quit() of the site module work, and finally blocks run."
try:
    exit()
finally:
    print("finally")
