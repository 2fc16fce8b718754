"""The learner's own keys: what `[keys]` in the settings file means, held against the bindings."""

import difflib
import re
from collections.abc import Iterable

from textual.binding import Binding
from textual.keys import Keys

from tensortutor.ui import key_bindings

SCOPES: dict[str, list[Binding]] = {
    name.lower(): value
    for name, value in vars(key_bindings).items()
    if name.isupper() and isinstance(value, list)
}
"""The lists of bindings, by the name that stands before the dot in most of their ids."""
FIXED = ("editor.newline", "editor.indent", "editor.dedent")
"""What the editor does with Enter and Tab themselves, in the order of typing."""
MODIFIED = re.compile(r"(?:(?:ctrl|shift|alt|super|hyper|meta)\+)*(.+)")
NAMED = frozenset(key.value.rpartition("+")[2] for key in Keys) | {
    "question_mark", "slash", "backslash", "underscore", "comma", "full_stop", "semicolon",
    "colon", "minus", "plus", "equals_sign", "left_square_bracket", "right_square_bracket",
    "number_sign", "space", "exclamation_mark", "at", "percent_sign", "ampersand", "asterisk",
    "tilde", "apostrophe", "quotation_mark", "grave_accent", "less_than_sign",
    "greater_than_sign", "vertical_line", "circumflex_accent", "dollar_sign",
}  # fmt: skip


def keymap(wanted: Iterable[tuple[str, str]]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The keys to be used, by binding id, and a sentence for each entry that cannot be."""
    known = {binding.id or "": binding for scope in SCOPES.values() for binding in scope}
    chosen: dict[str, str] = {}
    notices: list[str] = []
    for name, text in wanted:
        names = [key.strip() for key in text.split(",")]
        bad = [key for key in names if not is_key(key)]
        if name in FIXED:
            notices.append(f"keys: {name} stays where it is: it is how Enter and Tab write.")
        elif name not in known:
            near = difflib.get_close_matches(name, known, 1, 0.0)[0]
            notices.append(f"keys: there is no {name!r}; the nearest is {near!r}.")
        elif bad:
            notices.append(
                f"keys: {bad[0]!r} for {name} is no key. Write it as f5, ctrl+r, x or slash; "
                "several with commas between them."
            )
        else:
            chosen[name] = ",".join(names)
    return chosen, (*notices, *clashes(chosen))


def is_key(key: str) -> bool:
    """A key as Textual names it."""
    found = MODIFIED.fullmatch(key)
    name = found[1] if found else ""
    return len(name) == 1 or name in NAMED


def clashes(chosen: dict[str, str]) -> list[str]:
    """A sentence for each key that means two things in one place."""
    sentences = []
    for scope, bindings in SCOPES.items():
        taken: dict[str, Binding] = {}
        for binding in bindings if scope == "app" else [*bindings, *key_bindings.APP]:
            for key in chosen.get(binding.id or "", binding.key).split(","):
                other = taken.setdefault(key, binding)
                moved = binding.id in chosen or other.id in chosen
                if other.action != binding.action and moved:
                    sentences.append(
                        f"keys: {key} is for {other.id} and for {binding.id}. Only one of them "
                        "will hear it: give the other another key."
                    )
    return list(dict.fromkeys(sentences))
