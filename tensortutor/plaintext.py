"""Text from outside, made safe to show: nothing in it acts on a terminal.

Programs, courses, files, exceptions and the environment give text that no one has checked. Here
is the one list of characters that act on a terminal or hide what stands there, and what is shown
in their place: `^G` for a bell, `<U+202E>` for a direction override, a replacement sign for a byte
that is not UTF-8. Letters of any script, combining marks included, stay as they are.
"""

import re

LONGEST = 4_000
"""Characters of one line that are shown; the rest is counted."""
LONGEST_TEXT = 200_000
"""Characters of a whole text that are shown; the rest is counted."""
LONGEST_TITLE = 200
"""Characters of a title, a name, a cell of a table."""

HIDDEN = (
    "\u00ad\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\u3164\ufeff\uffa0\ufff9-\ufffb\ufffe\uffff\ud800-\udfff\U000e0000-\U000e007f"
)
"""Zero-width and blank signs, direction marks, tags, line separators, what is no character."""
JOINERS = r"(?<![^\x00-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f])"
"""Joiners shape Persian and Indian words and emoji; elsewhere they only hide."""


def pattern(controls: str) -> "re.Pattern[str]":
    """Matches these control characters and whatever hides."""
    return re.compile(f"[{controls}{HIDDEN}]|{JOINERS}")


ACTIVE = pattern("\x00-\x1f\x7f-\x9f")
"""Whatever has no place within a line."""
BUT_LINES = pattern("\x00-\x08\x0b-\x1f\x7f-\x9f")
"""The same without tabs and ends of lines."""
BUT_MOVES = pattern("\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f")
"""The same without tabs, ends of lines and carriage returns."""
SEQUENCE = re.compile(
    r"""\x1b(?:
        \[[0-?]{0,256}[\ -/]{0,16}[@-~]               # CSI: colours, cursor, erase
      | \][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)        # OSC: titles, links, the clipboard
      | [PX^_][^\x1b\n]{0,4096}\x1b\\                 # DCS, SOS, PM, APC
      | [\ -/]{1,16}[0-~]                             # character sets and the like
      | [0-OQ-WYZ\\`-~]                               # two characters
    )""",
    re.VERBOSE,
)
"""A whole control sequence."""


def shown(match: "re.Match[str]") -> str:
    """What stands for one character that is not shown itself."""
    code = ord(match.group())
    if code < 0x20 or code == 0x7F:
        return "^" + chr(code ^ 0x40)
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"<U+{code:04X}>"


def visible(text: str, *, tabs: int = 8) -> str:
    """A text of any number of lines, ready to be shown. Control sequences are dropped whole.

    tabs: the width of a tab, 0 to leave tabs as they are.
    """
    if ACTIVE.search(text):
        # Cut first: what is not shown need not be read.
        text = SEQUENCE.sub("", bounded(text)).replace("\r\n", "\n")
        text = BUT_LINES.sub(shown, text.expandtabs(tabs) if tabs else text)
    return bounded(text)


def one_line(text: str, longest: int = LONGEST_TITLE) -> str:
    """A title, a name, a cell: one line of at most so many characters, and a word on the rest."""
    start = visible(text[: longest * 4], tabs=0)
    line = re.sub(r"[\t\n\r\v\f]+", " ", start).strip()  # runs of spaces part columns
    return cut(line, longest, max(0, len(text) - longest * 4))


def cut(text: str, longest: int, more: int = 0) -> str:
    """The start of a text, and how many characters are left out. more: those already left out."""
    more += max(0, len(text) - longest)
    return f"{text[:longest]}… {more:,} more characters" if more else text


def bounded(text: str) -> str:
    """A text whose lines, and which itself, are cut where they would take too long to draw."""
    if len(text) <= LONGEST:
        return text
    lines = [cut(line, LONGEST) for line in text.split("\n")]
    return cut("\n".join(lines), LONGEST_TEXT)


SIGNS = str.maketrans(
    {
        **dict.fromkeys("─━═╌╍┄┅┈┉╴╶╸╺—–‐‑‒−▔▁⎯", "-"),
        **dict.fromkeys("│┃║╎╏┆┇┊┋╵╷╹╻▏▎▍▌▐▕", "|"),
        **dict.fromkeys("┌┐└┘├┤┬┴┼╭╮╰╯╔╗╚╝╠╣╦╩╬┏┓┗┛┣┫┳┻╋┍┑┕┙┝┥┞┡", "+"),
        **dict.fromkeys("▂▃▄▀▅▆▇█▓▒■▪●◉⬤◼▉▊▋", "#"),
        **dict.fromkeys("░·∙⋅◦○◌◯□", "."),
        **dict.fromkeys("•‣★☆⭘", "*"),
        **dict.fromkeys("▶▷►▸›»→⇒↦", ">"),
        **dict.fromkeys("◀◁◄◂‹«←⇐", "<"),
        **dict.fromkeys("▼▽▾▿↓⇓", "v"),
        **dict.fromkeys("▲△▴▵↑⇑", "^"),
        **dict.fromkeys("‘’‚′", "'"),
        **dict.fromkeys("“”„″", '"'),
        **dict.fromkeys("×✗✘✕", "x"),
        **dict.fromkeys("✓✔", "+"),
        **dict.fromkeys("≈≃∼", "~"),
        "⏎": "<", "↵": "<", "↕": "=", "…": "~", "≤": "<", "≥": ">", "≠": "!", "÷": "/", "°": "o",
        "±": "+", "√": "V", "∞": "8", "∂": "d", "∑": "S", "∏": "P", "∈": "e", "⊙": "o", "⊤": "T",
        "α": "a", "β": "b", "γ": "g", "δ": "d", "Δ": "D", "ε": "e", "η": "n", "θ": "t", "λ": "l",
        "μ": "u", "π": "p", "ρ": "r", "σ": "s", "Σ": "S", "τ": "t", "φ": "f", "ω": "w",
    }
)  # fmt: skip
"""Signs beyond ASCII, each as one of ASCII, for terminals and streams that have nothing else."""
WORDY = SIGNS | str.maketrans(
    {
        "…": "...",
        "→": "->",
        "←": "<-",
        "≤": "<=",
        "≥": ">=",
        "≠": "!=",
        "·": "-",
        "●": "*",
        "○": "o",
    }
)
"""The same where a line may get longer: what the command line prints."""
