"""The signs that stand beside words: Unicode where the terminal can show it, else ASCII."""

import locale
import os
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple


class Symbols(NamedTuple):
    """One sign per meaning, most of them one cell wide."""

    passed: str = "✓"
    failed: str = "✗"
    stopped: str = "■"
    running: str = "◌"
    pending: str = "○"
    done: str = "●"
    here: str = "◉"
    ahead: str = "○"
    locked: str = "–"
    known: str = "◐"
    opened: str = "▾"
    closed: str = "▸"
    pointer: str = "›"
    chosen: str = "●"
    held: str = "↕"
    full: str = "━"
    empty: str = "─"
    dot: str = "·"
    news: str = "•"
    arrow: str = "→"
    cut: str = "…"
    wrapped: str = "↪"

    @property
    def ascii(self) -> bool:
        """Whether these are the signs for terminals without Unicode."""
        return self.passed.isascii()


UNICODE = Symbols()
ASCII = Symbols(
    passed="+",
    failed="x",
    stopped="#",
    running="*",
    pending=".",
    done="#",
    here="@",
    ahead=".",
    locked="-",
    known="%",
    opened="v",
    closed=">",
    pointer=">",
    chosen="*",
    held="=",
    full="=",
    empty="-",
    dot="|",
    news="*",
    arrow="->",
    cut="~",
    wrapped="\\",
)


COERCED = ("C.UTF-8", "C.utf8", "UTF-8")
"""What Python itself may have put into LC_CTYPE (PEP 538)."""


def use_ascii() -> None:
    """Ask for ASCII, before anything is drawn."""
    os.environ["TENSORTUTOR_ASCII"] = "1"
    current.cache_clear()


def for_encoding(encoding: str | None) -> Symbols:
    """The signs that text in this encoding can hold."""
    return UNICODE if (encoding or "").lower().replace("-", "") == "utf8" else ASCII


def promised(environ: Mapping[str, str], utf8_mode: bool, encoding: str | None) -> str | None:
    """The encoding that the locale promises.

    Where the locale is C, or is not installed, Python writes UTF-8 all the same (its "UTF-8 mode",
    PEP 540) and sets LC_CTYPE to say so; then what the variables say counts. Where they say nothing
    at all, as in many containers, the terminal is most often a modern one.
    """
    if not utf8_mode:
        return encoding
    kind = environ.get("LC_CTYPE", "")
    names = (environ.get("LC_ALL"), "" if kind in COERCED else kind, environ.get("LANG"))
    said = next((name for name in names if name), "C.UTF-8")
    return "utf-8" if "utf8" in said.lower().replace("-", "") else "ascii"


@lru_cache(maxsize=1)
def current() -> Symbols:
    """The signs for this process's terminal.

    `TENSORTUTOR_ASCII=1` asks for ASCII where the locale promises more than the font has.
    """
    if os.environ.get("TENSORTUTOR_ASCII", "0") not in ("", "0"):
        return ASCII
    # Textual draws on standard error.
    output = getattr(sys.__stderr__, "encoding", None)
    encoding = output or locale.getpreferredencoding(False)
    return for_encoding(promised(os.environ, bool(sys.flags.utf8_mode), encoding))
