"""The words that the host and the worker both speak. Standard library only."""
