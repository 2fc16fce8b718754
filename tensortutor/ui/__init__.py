"""The terminal app. Nothing here imports torch, nor runs what the learner wrote."""
