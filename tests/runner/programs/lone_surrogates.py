# says = "A string that is not UTF-8 raises UnicodeEncodeError, and what follows is printed."
try:
    print("\ud800")
except UnicodeEncodeError as error:
    print(error)
