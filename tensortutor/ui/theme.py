"""How it looks: one dark theme with one accent colour. Textual's own themes can be chosen too."""

from textual.theme import Theme

NAME = "tensortutor"

TUTOR = Theme(
    name=NAME,
    primary="#7fb4ca",
    secondary="#a292c9",
    accent="#7fb4ca",
    foreground="#cdd3da",
    background="#15181c",
    surface="#15181c",
    panel="#1d2127",
    success="#98bb6c",
    warning="#d8a657",
    error="#e07b72",
    dark=True,
    variables={
        "border": "#7fb4ca",
        "border-blurred": "#39414b",
        "block-cursor-background": "#2a323c",
        "block-cursor-foreground": "#eef1f4",
        "block-cursor-text-style": "none",
        "block-cursor-blurred-background": "#20262d",
        "block-cursor-blurred-foreground": "#cdd3da",
        "input-cursor-background": "#cdd3da",
        "input-cursor-foreground": "#15181c",
        "input-selection-background": "#7fb4ca 30%",
        "scrollbar": "#2e353e",
        "scrollbar-hover": "#46505c",
        "scrollbar-active": "#7fb4ca",
        "scrollbar-background": "#15181c",
        "scrollbar-background-hover": "#15181c",
        "scrollbar-background-active": "#15181c",
        "scrollbar-corner-color": "#15181c",
        "footer-background": "#15181c",
        "footer-key-foreground": "#7fb4ca",
    },
)
