"""What a terminal answers when it is asked, told apart from what is typed meanwhile. Pure."""

import re
from collections.abc import Callable, Sequence

PATIENCE_S = 2.0
"""Over a slow line an answer takes its time; after this there is none."""
HELD_S = 0.1
"""The rest of a reply follows at once; what waits longer was typed, the Escape key for example."""

REPLY = re.compile(
    r"\x1b_G[^\x1b]*\x1b\\|\x1b\]11;[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[6;[0-9;]*t|\x1b\[\?[0-9;]*c"
)
BEGUN = re.compile(
    r"\x1b(?:_(?:G[^\x1b]*\x1b?)?|\](?:11?|11;[^\x07\x1b]*\x1b?)?|\[(?:6[0-9;]*|\?[0-9;]*)?)?\Z"
)
LAST = re.compile(r"\x1b\[\?[0-9;]*c")


class LateReplies:
    """Takes replies out of what is typed while nothing is asked.

    They come late over a slow line. A terminal in a browser that is reloaded is sent everything
    anew, and answers old questions once more.
    """

    def __init__(self) -> None:
        self._held = ""
        self._held_since = 0.0

    def take(self, data: str, now: float) -> str:
        """What has come from the terminal. Returns what of it was typed."""
        data = REPLY.sub("", self._held + data)
        self._held = ""
        begun = BEGUN.search(data)
        # An Escape by itself is a key, and nobody is to wait for it.
        if begun is None or begun[0] == "\x1b":
            return data
        self._held, self._held_since = begun[0], now
        return data[: begun.start()]

    def wait(self, now: float) -> str:
        """Time passes. Returns what was held back and is no reply after all."""
        typed = ""
        if self._held and now - self._held_since >= HELD_S:
            typed, self._held = self._held, ""
        return typed


class Question:
    """Something asked of the terminal.

    text: what is sent. It ends by asking for the device's attributes, which every terminal knows,
    tmux too: when these have come, nothing else will. then: is given all replies, once.
    """

    def __init__(self, text: str, then: Callable[[Sequence[str]], object], now: float) -> None:
        self.text = text
        self.is_over = False
        self._then = then
        self._since = now
        self._held = ""
        self._held_since = now
        self._replies: list[str] = []

    def take(self, data: str, now: float) -> str:
        """What has come from the terminal. Returns what of it was typed."""
        if self.is_over:
            return data
        data = self._held + data
        self._held = ""
        typed = ""
        at = 0
        for reply in REPLY.finditer(data):
            typed += data[at : reply.start()]
            at = reply.end()
            self._replies.append(reply[0])
            if LAST.fullmatch(reply[0]):
                self._end()
                return typed + data[at:]
        begun = BEGUN.search(data, at)
        if begun is None:
            return typed + data[at:]
        self._held, self._held_since = begun[0], now
        return typed + data[at : begun.start()]

    def wait(self, now: float) -> str:
        """Time passes. Returns what was held back and is no reply after all."""
        typed = ""
        if self._held and now - self._held_since >= HELD_S:
            typed, self._held = self._held, ""
        if not self.is_over and now - self._since >= PATIENCE_S:
            typed, self._held = typed + self._held, ""
            self._end()
        return typed

    def _end(self) -> None:
        self.is_over = True
        self._then(self._replies)
