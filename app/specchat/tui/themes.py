"""Two calm themes of our own; Textual's are there as well."""

from textual.theme import Theme

DARK = Theme(
    name="specchat-dark",
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
LIGHT = Theme(
    name="specchat-light",
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
