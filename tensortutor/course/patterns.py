"""Regular expressions of a course, matched by RE2 in time that is linear in the text.

A course comes from strangers, and `re` would take years over `(a+)+$`, holding the interpreter.
RE2 (https://github.com/google/re2/wiki/Syntax) has no look-around and no back-references; the rest
is Python's syntax. A dot matches line breaks too.
"""

from functools import cached_property
from typing import Any

LONGEST = 2_000
"""Characters of a pattern."""


class PatternError(ValueError):
    """A text that is no pattern. The message says why and what to do."""


class Pattern:
    """A regular expression, compiled when it is first matched.

    text: as it was written. `check` says whether it is one.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _compiled(self) -> Any:
        # Imported here: most sessions meet no error.
        import re2

        options = re2.Options()
        options.log_errors = False
        options.dot_nl = True
        return re2.compile(_encodable(self.text), options=options)

    def check(self) -> None:
        """Raises PatternError unless it is a sound pattern that does not fit every text."""
        import re2

        if len(self.text) > LONGEST:
            raise PatternError(f"it has more than {LONGEST:,} characters. Shorten it")
        try:
            fits_all = self._compiled.match("") is not None
        except re2.error as error:
            why = error.args[0].decode("utf-8", "replace")
            raise PatternError(
                f"this is no regular expression: {why}. Mend it: the syntax is that of RE2, which "
                "is Python's without look-around (?=...), (?!...) and back-references"
            ) from None
        if fits_all:
            raise PatternError("it fits every text. Begin it with the type of the error")

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of its groups. The pattern must be sound."""
        return tuple(self._compiled.groupindex)

    def match(self, text: str) -> dict[str, str | None] | None:
        """The named groups if the pattern fits the beginning of a text, else None.

        A pattern that is not sound fits nothing.
        """
        return self._find("match", text)

    def search(self, text: str) -> dict[str, str | None] | None:
        """The same, anywhere in a text."""
        return self._find("search", text)

    def _find(self, how: str, text: str) -> dict[str, str | None] | None:
        import re2

        try:
            found = getattr(self._compiled, how)(_encodable(text))
        except re2.error:
            return None  # the author's gate tells
        return None if found is None else dict(found.groupdict())


def _encodable(text: str) -> str:
    """RE2 reads UTF-8, in which a lone surrogate cannot be written."""
    return text.encode("utf-8", "replace").decode()
