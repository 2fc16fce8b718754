"""What can go wrong before a program runs."""


class RunnerError(Exception):
    """`str` is a sentence for the learner: what is wrong and what to do."""
