# says = "A program that is not Python does not begin, and exits with 1."
# stderr = ["SyntaxError: 'return' outside function", "line 4"]
print("never")
return  # noqa: F706
