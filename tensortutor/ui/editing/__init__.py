"""Editing Python: what the editor knows of the text it holds."""
