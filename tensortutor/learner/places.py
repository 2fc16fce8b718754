"""Where programs run: what `--on` means."""

import shlex
import shutil

from tensortutor.options import Place


class UnknownPlace(Exception):
    """`str` is a sentence for the learner."""


def find_place(on: str, places: tuple[Place, ...], python: str | None) -> Place | None:
    """The place of this name, or the one that a command leads to; None for "", this machine.

    python: the interpreter there, if the learner has named one. Raises UnknownPlace.
    """
    if not on:
        return None
    found = next((place for place in places if place.name == on), None)
    if found is None:
        try:
            words = tuple(shlex.split(on))
        except ValueError as error:
            raise UnknownPlace(f"--on {on!r} cannot be read as a command: {error}.") from None
        is_socket = on.startswith("unix:/") and len(words) == 1
        if not words or not (is_socket or shutil.which(words[0])):
            names = ", ".join(place.name for place in places) or "none"
            raise UnknownPlace(
                f"There is no command {words[0] if words else ''!r} for --on, and no place of that "
                f"name in settings.toml (there: {names})."
            )
        found = Place(on, words)
    return Place(found.name, found.launch, found.setup, python or found.python)
