"""Markdown as lessons use it: no guessing of links, code in the editor's colours."""

from markdown_it import MarkdownIt
from pygments.token import Token  # type: ignore[import-untyped,unused-ignore]
from textual.app import ComposeResult
from textual.await_complete import AwaitComplete
from textual.content import Content
from textual.highlight import HighlightTheme, highlight
from textual.widgets import Markdown
from textual.widgets.markdown import MarkdownBlock, MarkdownFence

from tensortutor.plaintext import visible
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.wrapping import CodeLabel


class CodeColours(HighlightTheme):
    """The same few colours as in the editor."""

    STYLES = {  # noqa: RUF012
        Token.Comment: "$foreground 66% italic",
        Token.Keyword: "$text-secondary",
        Token.Operator.Word: "$text-secondary",
        Token.Literal.Number: "$text-warning",
        Token.Keyword.Constant: "$text-warning",
        Token.Literal.String: "$text-success",
        Token.String: "$text-success",
        Token.Name.Function: "$text-primary bold",
        Token.Name.Class: "$text-primary bold",
        Token.Name.Builtin: "$text-primary",
        Token.Name.Decorator: "$text-warning",
    }


MESSAGE = "message"
"""The language of a fence that holds the message of an error."""


class Fence(MarkdownFence):
    """A block of code, or, in the language MESSAGE, what an error says."""

    DEFAULT_CSS = """
    Fence {
        overflow: hidden hidden;
        & > Label { width: 1fr; }
    }
    """

    def on_mount(self) -> None:
        """An error's message has a colour of its own: beside code it looks like code."""
        self.set_class(self.lexer == MESSAGE, "-message")

    def compose(self) -> ComposeResult:
        """The code; long lines are broken, with a mark."""
        yield CodeLabel(self._highlighted_code, id="code-content", expand=True)

    @classmethod
    def highlight(cls, code: str, language: str, ansi: bool = False, dark: bool = False) -> Content:
        """The code in colours, which follow the app's theme."""
        if ansi:
            return super().highlight(code, language, ansi, dark)
        # Without a language there is nothing to colour, and guessing would be wrong.
        content = highlight(code, language=language or "text", theme=CodeColours)
        # Textual lays "$text", the strongest contrast, below all; the style sheet's is softer.
        return Content(content.plain, [span for span in content.spans if span.style != "$text"])


def _parser() -> MarkdownIt:
    # Link guessing would turn names such as `notes.md` into addresses.
    return MarkdownIt("commonmark").enable(["table", "strikethrough"])


class Text(Markdown):
    """A passage of Markdown."""

    BLOCKS: dict[str, type[MarkdownBlock]] = {  # noqa: RUF012
        **Markdown.BLOCKS,
        "fence": Fence,
        "code_block": Fence,
    }

    def __init__(self, markdown: str, *, classes: str | None = None) -> None:
        super().__init__(
            visible(markdown, tabs=0), classes=classes, parser_factory=_parser, open_links=False
        )
        if symbols.current().ascii:
            self.BULLETS = ["* ", "- "]

    def update(self, markdown: str) -> AwaitComplete:
        """Show another passage."""
        return super().update(visible(markdown, tabs=0))
