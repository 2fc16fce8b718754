# says = "The names that an interpreter gives to a program are there, and no annotations are lost."
answer: int = 42
print(__annotations__, __doc__, __package__, __spec__)
print(type(__builtins__).__name__, __debug__)
