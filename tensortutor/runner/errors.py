"""What can go wrong before a program runs."""


class RunnerError(Exception):
    """`str` is a sentence for the learner: what is wrong and what to do."""


class NoSandbox(RunnerError):
    """Nothing confines a program here. The learner may allow it all the same (`allow_limits`)."""
