"""Three calm themes of our own; most of Textual's are there as well (`looks.THEMES`)."""

from typing import Final

from textual.theme import Theme

from specchat import looks

DARK: Final = Theme(
    name=looks.DARK,
    primary="#8fb4d8",
    secondary="#a7b8c9",
    accent="#d8b07a",
    success="#8fbf9a",
    warning="#d8b07a",
    error="#d98a8a",
    foreground="#d5d9de",
    background="#14171b",
    surface="#1a1e23",
    panel="#232830",
    dark=True,
)
LIGHT: Final = Theme(
    name=looks.LIGHT,
    primary="#2f5f8f",
    secondary="#52687d",
    accent="#8a5a12",
    success="#2f6f45",
    warning="#8a5a12",
    error="#a33a3a",
    foreground="#22272d",
    background="#f7f6f3",
    surface="#efeeea",
    panel="#e4e2dc",
    dark=False,
)
ANSI: Final = Theme(
    name=looks.ANSI,
    ansi=True,
    primary="ansi_blue",
    secondary="ansi_cyan",
    accent="ansi_magenta",
    success="ansi_green",
    warning="ansi_yellow",
    error="ansi_red",
    foreground="ansi_default",
    background="ansi_default",
    surface="ansi_default",
    panel="ansi_default",
    boost="ansi_default",
    variables={
        # Nothing is known of the background, so what must stand out is reversed or takes a pair of colours.
        "ansi-background": "ansi_default",
        "ansi-foreground": "ansi_default",
        "border-blurred": "ansi_bright_black",
        "block-cursor-foreground": "ansi_black",
        "block-cursor-background": "ansi_cyan",
        "input-cursor-background": "ansi_default",
        "input-cursor-foreground": "ansi_default",
        "input-cursor-text-style": "reverse",
        "input-selection-background": "ansi_cyan",
        "input-selection-foreground": "ansi_black",
        "screen-selection-background": "ansi_cyan",
        "screen-selection-foreground": "ansi_black",
    },
)
OURS: Final = (DARK, LIGHT, ANSI)
