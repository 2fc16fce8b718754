"""What a learner has: progress, what it opens, and the code they wrote."""
