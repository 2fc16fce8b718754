"""Matches regular expressions in a process of its own: run as a script, never imported.

Reads questions, answers with a line of JSON for each pattern of a question. A pattern that takes
more processor time than it may ends the process (`re` cannot be interrupted otherwise), and so
does the end of its input. Needs the standard library alone.
"""

import json
import re
import resource
import signal
import sys
from typing import Any

MEMORY_BYTES = 1 << 30
LONGEST_GROUP = 2_000
"""Characters of a group that are told."""


def main() -> None:
    """Answer until there are no more questions."""
    for limit, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CORE, 0)):
        try:
            resource.setrlimit(limit, (most, most))
        except (ValueError, OSError):
            continue  # the system has a lower limit, or none of this kind
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGPROF])
    compiled: dict[str, re.Pattern[str] | str] = {}
    for line in sys.stdin.buffer:
        question = json.loads(line)
        for text, anywhere, where in question["searches"]:
            # The time of the processor: a busy machine makes no pattern slow.
            signal.setitimer(signal.ITIMER_PROF, question["cpu_s"])
            try:
                subjects = [question["texts"][index] for index in where]
                answer = look(compiled, text, subjects, anywhere=anywhere)
            except MemoryError:
                answer = {"error": "it takes too much memory"}
            signal.setitimer(signal.ITIMER_PROF, 0)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


def look(
    compiled: dict[str, "re.Pattern[str] | str"], text: str, subjects: list[str], *, anywhere: bool
) -> dict[str, Any]:
    """What one pattern finds in the first subject that it fits: "found" is its groups or None.

    With "names" of its groups, or "error" if it is no pattern.
    """
    if text not in compiled:
        compiled[text] = compile_pattern(text)
    pattern = compiled[text]
    if isinstance(pattern, str):
        return {"error": pattern}
    find = pattern.search if anywhere else pattern.match
    found = next(filter(None, map(find, subjects)), None)
    groups = None
    if found is not None:
        groups = {
            name: value and value[:LONGEST_GROUP] for name, value in found.groupdict().items()
        }
    return {"names": list(pattern.groupindex), "found": groups}


def compile_pattern(text: str) -> "re.Pattern[str] | str":
    """The pattern, or what is wrong with it."""
    try:
        pattern = re.compile(text, re.DOTALL)
    except (re.error, RecursionError, OverflowError) as error:
        nested = isinstance(error, RecursionError)
        why = "it is nested too deeply" if nested else error
        return f"this is no regular expression: {why}. Mend it: the syntax is that of Python's `re`"
    if pattern.match(""):
        return "it fits every text. Begin it with the type of the error"
    return pattern


if __name__ == "__main__":
    main()
