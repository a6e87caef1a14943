"""The terminal UI: screens and widgets around one conversation with the engine."""
