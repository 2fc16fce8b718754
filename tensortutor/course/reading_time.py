"""How long a lesson takes: the one formula, and its constants.

Words are read at a learner's pace: Carver (1992) measured 200 words a minute for reading to learn
and 138 for reading to remember; lessons want something between. A line of a program that the text
explains takes a few seconds, less than the 9 to 18 of a code review. Questions and lines of a
solution are thought about. What may be skipped, a derivation, is not counted.
"""

import re

WORDS_PER_MINUTE = 150
CODE_LINE_S = 4
OUTPUT_LINE_S = 2
QUESTION_S = 60
LOOK_S = 20
TRY_S = 60
EXERCISE_S = 120
"""To understand the task and to run the checks; the writing comes on top."""
SOLUTION_LINE_S = 20
LONGEST = 25
"""Minutes that a lesson of the second edition may take without giving a reason."""

FENCE = re.compile(r"^(`{3,}|~{3,})([^\n]*)\n(.*?)^\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)
STEP = re.compile(r"^(?=## )", re.MULTILINE)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
"""A source, for authors: no reader sees it."""
OPTIONAL = "```python derive"
SECONDS_PER_LINE = {
    "python run": CODE_LINE_S,
    "python predict": CODE_LINE_S,
    "python error": CODE_LINE_S,
    "python solution": SOLUTION_LINE_S,
    "output": OUTPUT_LINE_S,
    "message": OUTPUT_LINE_S,
}
SECONDS = {
    "quiz": QUESTION_S,
    "look": LOOK_S,
    "try": TRY_S,
    "python exercise": EXERCISE_S,
    "python fix": EXERCISE_S,
}


def reading_minutes(text: str) -> int:
    """Whole minutes, at least 1, for a lesson file's text below its front matter.

    Fences are found by a pattern alone: the list of lessons needs the minutes of all of them.
    """
    steps = [step for step in STEP.split(text) if OPTIONAL not in step]
    return max(1, round(sum(map(_seconds, steps)) / 60))


def _seconds(step: str) -> float:
    seconds = 0.0
    for fence in FENCE.finditer(step):
        kind = fence[2].strip().removesuffix("needs=cuda").strip()
        lines = sum(bool(line.strip()) for line in fence[3].split("\n"))
        seconds += SECONDS.get(kind, 0) + SECONDS_PER_LINE.get(kind, 0) * lines
        if kind in ("", "text"):  # a sketch between the paragraphs is read like them
            seconds += len(fence[3].split()) * 60 / WORDS_PER_MINUTE
    prose = COMMENT.sub("", FENCE.sub("", step))
    return seconds + len(prose.split()) * 60 / WORDS_PER_MINUTE
