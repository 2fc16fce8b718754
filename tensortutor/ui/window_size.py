"""The sizes of a window that decide what is shown. Importing this costs nothing."""

SMALLEST = (60, 16)
"""Columns and rows below which the app shows nothing but a sentence."""
WIDE = 120
"""Columns from which panes stand beside each other."""
