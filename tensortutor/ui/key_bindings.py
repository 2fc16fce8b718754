"""Every key of the app, by name. The names are what a keymap file refers to.

Function keys work everywhere, their Ctrl twins survive terminals that keep function keys for
themselves, and single letters work outside the editor and other fields. Keys that SSH or tmux
lose (Ctrl+Enter, Alt+digit) are not used.
"""

from textual.binding import Binding


def _key(
    name: str, keys: str, action: str, text: str, *, show: bool = False, first: bool = False
) -> Binding:
    return Binding(keys, action, text, show=show, id=name, priority=first)


APP = [
    _key("app.help", "f1,question_mark", "app.help", "Help", show=True),
    _key("app.palette", "ctrl+p", "command_palette", "Palette", show=True, first=True),
    _key("app.search", "slash", "search", "Search the course"),
    _key("app.reference", "ctrl+right_square_bracket,d", "reference", "Look up a name"),
    _key("app.aside", "ctrl+z", "step_aside", "Back to the shell; fg returns"),
    _key("app.quit", "ctrl+q", "quit", "Quit", first=True),
]

HOME = [
    _key("home.open", "enter", "open", "Open", show=True),
    _key("home.fold", "space", "fold", "Fold", show=True),
    _key("home.search", "slash", "search", "Search", show=True),
    _key("home.continue", "c", "continue", "Continue"),
    _key("home.review", "v", "review", "Review"),
    _key("home.progress", "p", "app.progress", "Progress"),
    _key("home.class", "S", "app.turn_sharing", "Share with the class, or stop"),
    _key("home.quit", "q", "app.quit", "Quit", show=True),
]

COURSE_LIST = [
    _key("list.up", "up,k", "move(-1)", "Up"),
    _key("list.down", "down,j", "move(1)", "Down"),
    _key("list.page_up", "pageup", "page(-1)", "Page up"),
    _key("list.page_down", "pagedown", "page(1)", "Page down"),
    _key("list.first", "home,g", "edge(-1)", "First"),
    _key("list.last", "end,G", "edge(1)", "Last"),
    _key("list.unfold", "right", "unfold(True)", "Show the chapter's lessons"),
    _key("list.close", "left", "unfold(False)", "Hide the chapter's lessons"),
]

LESSON = [
    _key("lesson.run", "f5,ctrl+r,r", "run", "Run", show=True),
    _key("lesson.check", "f9,ctrl+t,c", "check", "Check", show=True),
    _key("lesson.next", "f8,ctrl+l,n", "next", "Next", show=True),
    _key("lesson.hint", "f2,ctrl+o,h", "hint", "Hint", show=True),
    _key("lesson.turn", "f3,ctrl+g", "turn", "Code or results", show=True),
    _key("lesson.stop", "f4,ctrl+backslash", "stop", "Stop", show=True),
    _key("lesson.previous", "f7,shift+f8,p", "previous", "Back"),
    _key("lesson.solution", "s", "solution", "A solution beside your code"),
    _key("lesson.explain", "f12,i", "explain", "Lesson about the error"),
    _key("lesson.check_again", "C", "check(True)", "Check with the inputs that failed"),
    _key("lesson.skip", "x", "skip", "Run without a guess"),
    _key("lesson.point", "t", "point", "Look there, or try it; again: take the edit back"),
    _key("lesson.reset", "R", "reset", "Reset: start the code afresh"),
    _key("lesson.save", "ctrl+s", "save", "Save now"),
    _key("lesson.format", "ctrl+j", "format", "Lay the code out, with ruff"),
    _key("lesson.own_editor", "f6,e", "own_editor", "Your own editor"),
    _key("lesson.watch", "w", "watch", "Check when saved elsewhere, or not"),
    _key("lesson.card", "y", "card", "Save a picture of code, plot and checks"),
    _key("lesson.ask", "A", "ask_for_help", "Ask for help: sends this code to the class"),
    _key("lesson.profile", "P", "profile", "Run under the profiler"),
    _key("lesson.broadcast", "b", "broadcast", "Broadcasting under the cursor"),
    _key("lesson.notes", "v", "notes", "Notes behind the lines, or none"),
    _key("lesson.lens", "I", "lens", "Follow runs line by line: first passes, all, or not"),
    _key("lesson.tab", "right_square_bracket", "tab(1)", "Next tab of the results", show=True),
    _key("lesson.tab_back", "left_square_bracket", "tab(-1)", "Previous tab of the results"),
    *(
        _key(f"lesson.tab{n}", str(n), f"tab_at({n})", "A tab of the results by its number")
        for n in range(1, 8)
    ),
    _key("lesson.wider", "greater_than_sign", "widen(1)", "More room for the text"),
    _key("lesson.narrower", "less_than_sign", "widen(-1)", "Less room for the text"),
    _key("lesson.higher", "plus", "heighten(1)", "More room for the results"),
    _key("lesson.lower", "minus", "heighten(-1)", "Less room for the results"),
    _key("lesson.sizes", "equals_sign", "usual_sizes", "Sizes as at first"),
    _key("lesson.leave", "escape", "leave", "To the text", show=True),
    _key("lesson.home", "l,f10", "home", "Lessons"),
    _key("lesson.quit", "q", "app.quit", "Quit"),
]

READER = [
    _key("reader.page", "space", "page_down", "Page", show=True),
    _key("reader.code", "enter", "screen.turn", "To the code"),
]

TEACH = [
    _key(
        "teach.more", "space", "more", "The next block or statement, then the next step", show=True
    ),
    _key("teach.answer", "a", "answer", "The answer to the question", show=True),
    _key("teach.less", "backspace", "less", "One block or statement back"),
    _key("teach.code", "O", "whole_code", "All of the code"),
    _key("teach.everything", "o", "everything", "All blocks of the step"),
]

BOARD = [
    _key("board.more", "pagedown,right", "screen.more", "The next block, as pointers send it"),
    _key("board.less", "pageup,left", "screen.less", "One block back"),
]

EDITOR = [
    _key("editor.newline", "enter", "newline", "New line, indented"),
    _key("editor.indent", "tab", "indent", "Indent"),
    _key("editor.dedent", "shift+tab", "dedent", "Dedent"),
    _key("editor.comment", "ctrl+underscore,ctrl+slash", "comment", "Comment in or out"),
    _key(
        "editor.complete",
        "ctrl+n",
        "complete",
        "Names that fit; again: what PyTorch says of one",
        show=True,
    ),
    _key("editor.explain", "f11", "explain", "What PyTorch says of the name at the cursor"),
    _key("editor.find", "ctrl+f", "find", "Find", show=True),
    _key("editor.first", "ctrl+home", "edge(-1)", "To the first line"),
    _key("editor.last", "ctrl+end", "edge(1)", "To the last line"),
    _key("editor.select_first", "ctrl+shift+home", "edge(-1, True)", "Select to the first line"),
    _key("editor.select_last", "ctrl+shift+end", "edge(1, True)", "Select to the last line"),
    _key("editor.own_editor", "f6", "screen.own_editor", "Your own editor"),
    _key("editor.previous", "f7", "screen.previous", "Back, as elsewhere"),
    _key("editor.leave", "escape", "leave", "Leave the editor", show=True, first=True),
]

FIND = [
    _key("find.next", "down,ctrl+f", "step(1)", "Next match; Enter, too", first=True),
    _key("find.previous", "up", "step(-1)", "Match before", first=True),
    _key("find.close", "escape", "close", "Back to the code", first=True),
]

POINTER = [
    _key("pointer.choose", "enter", "choose", "Look there, or try it; again: take it back"),
]

CHECK_LIST = [
    _key("checks.fold", "enter", "fold", "Unfold", show=True),
    _key("checks.down", "down,j", "step(1)", "The next check"),
    _key("checks.up", "up,k", "step(-1)", "The check before"),
]

ORDER = [
    _key("order.hold", "space", "hold", "Pick up or put down the line"),
    _key("order.up", "shift+up", "carry(-1)", "Move the line up"),
    _key("order.down", "shift+down", "carry(1)", "Move the line down"),
]

REVIEW = [
    _key("review.next", "n,f8", "next", "Next", show=True),
    _key("review.answer", "f2,ctrl+o", "answer", "Show the answer of a drill", show=True),
    _key("review.open", "o", "open", "Begin the exercise anew"),
    _key("review.back", "escape", "back", "Back", show=True),
]

SKIP = [
    _key("skip.next", "n,f8", "next", "Next", show=True),
    _key("skip.open", "o", "open", "Open the lesson", show=True),
    _key("skip.back", "escape", "back", "Back", show=True),
]

PROGRESS = [
    _key("progress.kind", "right,f", "kind(1)", "Other lessons", show=True),
    _key("progress.kind_back", "left", "kind(-1)", "The lessons before"),
    _key("progress.again", "R", "begin_again", "Begin the lesson again", show=True),
    _key("progress.back", "escape,q", "back", "Back", show=True),
]

CLASS = [
    _key("class.open", "o,enter", "open", "The code that was sent", show=True),
    _key("class.view", "right,f", "view(1)", "Failing checks", show=True),
    _key("class.view_back", "left", "view(-1)", "The other list"),
    _key("class.help", "h", "next_help", "Next call for help", show=True),
    _key("class.quit", "q", "app.quit", "Quit", show=True),
]

TENSORS = [
    _key("tensors.pair", "m", "pair", "Mark, to see it beside another"),
    _key("tensors.sort", "o", "sort", "Another order"),
    _key("tensors.filter", "f", "filter", "Show some: name, dtype:, shape:, nan, inf"),
]

TENSOR = [
    _key("tensor.along", "right", "along(1)", "Along the dimension"),
    _key("tensor.back", "left", "along(-1)", "Back along it"),
    _key("tensor.dimension", "down", "dimension(1)", "The next dimension"),
    _key("tensor.dimension_back", "up", "dimension(-1)", "The dimension before"),
]

GRAPH = [
    _key("graph.step", "full_stop", "step(1)", "Walk on, as backward goes"),
    _key("graph.step_back", "comma", "step(-1)", "Walk back"),
]

PROFILE = [
    _key("profile.sort", "o", "sort", "By time or by memory"),
]

SEARCH = [
    _key("search.up", "up", "move(-1)", "Up"),
    _key("search.down", "down", "move(1)", "Down"),
    _key("search.page_up", "pageup", "page(-1)", "Page up"),
    _key("search.page_down", "pagedown", "page(1)", "Page down"),
    _key("search.field", "slash", "search", "Type other words"),
    _key("search.back", "escape", "back", "Back", show=True),
]

REFERENCE = [
    _key("reference.up", "up", "move(-1)", "Up"),
    _key("reference.down", "down", "move(1)", "Down"),
    _key("reference.page_up", "pageup", "scroll_page(-1)", "Scroll the page up"),
    _key("reference.page_down", "pagedown", "scroll_page(1)", "Scroll the page down"),
    _key("reference.search", "slash", "search", "Search", show=True),
    _key("reference.back", "escape", "back", "Back", show=True),
]

DIALOG = [
    _key("dialog.yes", "y", "answer(True)", "Yes"),
    _key("dialog.no", "n,escape", "answer(False)", "No"),
]

LOCKED = [
    _key("locked.read", "r", "answer('read')", "Read it"),
    _key("locked.skip", "a", "answer('skip')", "Answer questions"),
    _key("locked.back", "n,escape", "answer('')", "Back"),
]

PAGE = [
    _key("page.close", "escape,q", "close", "Close", show=True),
    _key("page.help", "f1,question_mark", "app.help", "Help"),
]

BINDINGS: dict[str, Binding] = {
    binding.id or "": binding
    for scope in [value for name, value in globals().items() if name.isupper()]
    for binding in scope
}
"""Every binding, by its name."""


def named(name: str) -> Binding:
    """The binding of this name."""
    return BINDINGS[name]


HEADINGS = {
    "lesson.reset": "Its code",
    "lesson.profile": "What a run shows",
    "lesson.tab": "Results and sizes",
    "lesson.leave": "Leaving",
}
"""The headings of the help screen, by the binding that comes first below each."""

OFFERED = (
    ("up,down", "Choose"),
    ("tab", "Take the name; Enter does, too, once you have chosen"),
    ("escape", "Write on without"),
)
"""What keys mean while the editor offers names; shown by the help screen."""

STANDARD_EDITOR = (
    ("ctrl+z", "Undo"),
    ("ctrl+y", "Redo"),
    ("ctrl+c", "Copy"),
    ("ctrl+x", "Cut"),
    ("ctrl+v", "Paste"),
    ("ctrl+k", "Delete to the end of the line"),
    ("ctrl+u", "Delete to the start of the line"),
)
"""What Textual's text area brings along; shown by the help screen."""
