# says = "A program that is not Python exits with 1."
# stderr = ["SyntaxError", "line 3"]
print("never"
