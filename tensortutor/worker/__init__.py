"""The guest side of a run. Standard library and torch only."""
