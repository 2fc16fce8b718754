"""tensortutor: a terminal tutor that shows what PyTorch does."""

__version__ = "0.1.0"
