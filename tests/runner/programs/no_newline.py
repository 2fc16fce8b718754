# says = "print(end='') with and without flush."
print("a", end="")
print("b", end="", flush=True)
print("c", sep="", end="|")
