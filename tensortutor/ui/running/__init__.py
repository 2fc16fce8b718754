"""Runs as the screens see them: batched events, explanations, the use of the GPU."""
