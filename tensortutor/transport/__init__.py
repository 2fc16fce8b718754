"""Carries what a zygote and its runs say over one byte stream, to and from another place.

`near` runs here and stands for a zygote; `far` runs in the other place and owns the real one.
"""
