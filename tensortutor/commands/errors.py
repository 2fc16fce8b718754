"""What a command says when it cannot be done."""

MISUSE = 2


class Refused(Exception):
    """A command cannot be done. `str` is the sentence for the learner, `status` the exit status."""

    def __init__(self, sentence: str, status: int = MISUSE) -> None:
        super().__init__(sentence)
        self.status = status
