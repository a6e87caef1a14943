"""How the chat may look. Names only: Textual, which knows the colours, isn't loaded for them."""

from typing import Final

DARK: Final = "dark"
LIGHT: Final = "light"
ANSI: Final = "ansi"
"""The terminal's own sixteen colours on its own background."""
THEMES: Final = (
    *(DARK, LIGHT, ANSI),
    *("atom-one-dark", "atom-one-light", "catppuccin-frappe", "catppuccin-latte", "catppuccin-macchiato"),
    *("catppuccin-mocha", "dracula", "flexoki", "gruvbox", "monokai", "nord", "rose-pine", "rose-pine-dawn"),
    *("rose-pine-moon", "solarized-dark", "solarized-light", "tokyo-night"),
)
"""Ours, then Textual's, by name."""
