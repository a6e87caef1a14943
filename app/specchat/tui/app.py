"""The Textual application."""

from specchat.tui.options import Engine, TuiOptions

__all__ = ["Engine", "TuiOptions"]
