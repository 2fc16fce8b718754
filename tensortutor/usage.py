"""Every command of the command line, with its arguments, in the order of the help text."""

import argparse
from pathlib import Path

from tensortutor.arguments import Command, arg, positive, seed

LESSON = arg("lesson_name", metavar="LESSON", help="its id, its slug, or its number as 1.2")
CHAPTER = arg("name", metavar="CHAPTER", nargs="?", help="its id or its number; default: all")
ANYWAY = arg("--anyway", action="store_true", help="even if the lesson is locked")
OWN_FILE = arg("file", metavar="FILE", nargs="?", help="default: your file of the lesson")
ALL = arg("--all", action="store_true", help="tell every failure in full, not the first alone")
ALLOW_LIMITS = arg(
    "--allow-limits",
    action="store_true",
    help="let the lesson's course use more than the usual limits",
)
STEP = arg("--step", type=positive, metavar="N", help="one step, from 1")

COMMANDS = (
    Command(
        "list", "browse.list_lessons", "show all lessons and which are open", (CHAPTER,), json=True
    ),
    Command(
        "show",
        "browse.show",
        "print a lesson, or what a chapter holds",
        (
            arg("lesson_name", metavar="LESSON", help="or a chapter; an id, a slug or a number"),
            STEP,
            arg("--solution", action="store_true", help="print the solution alone"),
            arg("--spoil", action="store_true", help="print it before you have passed"),
            ANYWAY,
        ),
    ),
    Command("next", "browse.next_step", "print the step to go on with"),
    Command(
        "run",
        "run_and_check.run",
        "run a Python file, or the code of a step",
        (
            arg(
                "file",
                metavar="FILE",
                nargs="?",
                help="a Python file; it runs apart from its folder",
            ),
            arg("arguments", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="for the program"),
            arg("--lesson", metavar="LESSON", help="run the code of this lesson instead"),
            STEP,
            arg("--lens", action="store_true", help="show what its lines, tensors and graph did"),
            arg(
                "--lens-all",
                action="store_true",
                help="as --lens, and follow all passes of every loop, however long it takes",
            ),
            arg("--profile", action="store_true", help="show where its time and memory went"),
            ALLOW_LIMITS,
            ANYWAY,
        ),
        json=True,
    ),
    Command(
        "check",
        "run_and_check.check",
        "put the checks of a lesson to your code",
        (
            LESSON,
            OWN_FILE,
            arg("--seed", type=seed, metavar="N", help="repeat the inputs of an earlier check"),
            ALL,
            ALLOW_LIMITS,
            ANYWAY,
        ),
        json=True,
    ),
    Command(
        "watch",
        "watch.watch",
        "put the checks of a lesson to your code at each save, until Ctrl+C",
        (LESSON, OWN_FILE, ALL, ALLOW_LIMITS, ANYWAY),
        json=True,
    ),
    Command(
        "open",
        "own_program.open_program",
        "edit and run a program of your own, with the lens; without a file, the scratch pad",
        (
            arg("file", metavar="FILE", nargs="?", type=Path, help="the program"),
            arg("words", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="for the program"),
            arg(
                "--read",
                metavar="FOLDER",
                type=Path,
                action="append",
                default=[],
                help="let it read this folder, too; may be said again",
            ),
            arg(
                "--write",
                metavar="FOLDER",
                type=Path,
                action="append",
                default=[],
                help="let it read and write this folder; may be said again",
            ),
        ),
    ),
    Command(
        "answer",
        "answer.answer",
        "answer a question of a lesson",
        (
            LESSON,
            arg("step", type=positive, metavar="STEP", help="the step that asks, from 1"),
            arg("value", metavar="VALUE", nargs="+", help="your answer"),
            arg("--question", type=positive, metavar="N", help="which, if the step asks several"),
            ANYWAY,
        ),
    ),
    Command(
        "explain",
        "explain.explain",
        "say what an error means, from a traceback or a log",
        (
            arg("file", metavar="FILE", nargs="?", help="default: standard input"),
            arg("--list", action="store_true", dest="all", help="show all errors that are known"),
        ),
        json=True,
    ),
    Command(
        "reference",
        "reference.reference",
        "look a call or a term up",
        (
            arg("term", metavar="TERM", nargs="*", help="as view or Tensor.view; default: pages"),
            arg("--page", metavar="PAGE", help="print a whole page"),
            arg(
                "--sheet",
                nargs="?",
                const="text",
                choices=("text", "markdown"),
                help="print the calls that matter most: one page, 131 columns wide",
            ),
        ),
        json=True,
    ),
    Command("hint", "browse.hint", "show the next hint of a lesson", (LESSON, ANYWAY)),
    Command(
        "compare",
        "compare.compare",
        "print a solution beside your code, and what others get wrong",
        (
            LESSON,
            OWN_FILE,
            arg("--spoil", action="store_true", help="print it before you have passed"),
            ANYWAY,
        ),
    ),
    Command(
        "skip",
        "skip.skip",
        "answer a question of each lesson that a locked one builds on, and open it",
        (LESSON,),
    ),
    Command(
        "reset",
        "reset_and_where.reset",
        "begin a lesson again; your code is kept as a backup",
        (LESSON, arg("--yes", action="store_true", help="do not ask")),
    ),
    Command(
        "where",
        "reset_and_where.where",
        "print where your things are, or the file of a lesson",
        (
            arg("lesson_name", metavar="LESSON", nargs="?", help="print its file's path"),
            STEP,
            ANYWAY,
        ),
    ),
    Command(
        "progress",
        "progress.progress",
        "tell what you know well and what not",
        (CHAPTER,),
        json=True,
    ),
    Command(
        "review",
        "review.review",
        "tell what is due for another look, and ask it",
        (
            arg("--ask", action="store_true", help="ask the questions that are due, one by one"),
            arg("--fresh", metavar="LESSON", help="write a fresh start of a lesson's exercise"),
        ),
        json=True,
    ),
    Command(
        "drill",
        "drill.drill",
        "draw a tensor that one line of PyTorch makes, and check your line",
        (
            arg("name", metavar="DRILL", nargs="?", help="as tensors/last_columns; default: list"),
            arg("line", metavar="LINE", nargs="?", help="your line, in quotes"),
            arg("--seed", type=seed, metavar="N", help="repeat the inputs of an earlier check"),
        ),
        json=True,
    ),
    Command(
        "export",
        "export.export",
        "write lessons as Jupyter notebooks, with your code in them",
        (
            arg("name", metavar="LESSON", nargs="?", help="or a chapter"),
            arg("--all", action="store_true", help="the whole course"),
            arg("--to", metavar="FOLDER", help="where to; default: this folder"),
        ),
    ),
    Command("tour", "app.tour", "see in ninety seconds what the app does; nothing is kept"),
    Command(
        "teach",
        "app.teach",
        "open the app to show lessons to a room; nothing is kept",
        (arg("lesson_name", metavar="LESSON", nargs="?", help="begin with this lesson"),),
    ),
    Command(
        "share",
        "class_folder.share",
        "say what you share with your class; begin or stop sharing",
        (arg("turn", nargs="?", choices=("on", "off"), metavar="on|off", help="begin or stop"),),
    ),
    Command(
        "ask-for-help",
        "class_folder.ask_for_help",
        "send your code of a lesson to your class's teacher, and ask for help with it",
        (
            LESSON,
            OWN_FILE,
            STEP,
            arg("--withdraw", action="store_true", help="no help is needed any more"),
            ANYWAY,
        ),
    ),
    Command(
        "hand-in",
        "class_folder.hand_in",
        "send your code of a lesson's exercise to your class's teacher",
        (LESSON, OWN_FILE, ANYWAY),
    ),
    Command(
        "class",
        "class_folder.show_class",
        "for teachers: show where the learners of a class are, and who is stuck",
        (
            arg(
                "folder",
                metavar="FOLDER",
                nargs="?",
                help="the class's folder; default: the one that you share with",
            ),
            arg("--csv", action="store_true", help="print a table for a spreadsheet"),
            arg(
                "--recheck",
                action="store_true",
                help="put the checks, with new inputs, to the code that was sent",
            ),
            arg(
                "--seeds",
                type=positive,
                metavar="N",
                default=3,
                help="how often, with other inputs each time: 3",
            ),
        ),
        json=True,
    ),
    Command(
        "worker",
        "worker.listen",
        "share one PyTorch among your sessions on this machine, which say --on unix:SOCKET",
        (
            arg(
                "--listen", metavar="SOCKET", required=True, help="a path; other users are refused"
            ),
            arg("--idle", type=positive, default=60, metavar="S", help="end after so long unused"),
        ),
    ),
    Command("doctor", "doctor.doctor", "tell what works on this machine", json=True),
    Command(
        "new",
        "author.new_lesson",
        "begin a lesson: for those who write them",
        (arg("name", metavar="CHAPTER/LESSON", help="the chapter by id or number, and a slug"),),
    ),
    Command(
        "verify",
        "author.verify_lessons",
        "prove lessons: for those who write them",
        (
            arg("lessons", metavar="LESSON", nargs="*", help="or a chapter; default: all"),
            arg("--seeds", type=positive, metavar="N", default=20, help="inputs per solution: 20"),
            arg("--jobs", type=positive, metavar="N", default=2, help="runs at once: 2"),
            arg(
                "--mutate",
                action="store_true",
                help="also edit the solutions: do the checks notice? (needs libcst)",
            ),
            arg(
                "--mutate-since",
                metavar="REV",
                help="with --mutate: only where the checks differ from this git revision",
            ),
            arg(
                "--watch",
                action="store_true",
                help="prove a lesson again whenever its files are saved, until Ctrl+C",
            ),
            arg(
                "--changed",
                metavar="REV",
                help="only lessons that differ from this git revision",
            ),
        ),
        json=True,
    ),
)
