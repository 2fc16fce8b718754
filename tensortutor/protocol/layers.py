"""How strongly programs are confined: the layers by name, the strongest first."""

FULL = "full"
"""bubblewrap: a root, processes and a network of its own."""
LANDLOCK = "landlock"
"""The kernel's rules for files and system calls."""
LIMITS = "limits"
"""Time, memory and disk alone: the program can do what the learner can."""
LAYERS = (FULL, LANDLOCK, LIMITS)
