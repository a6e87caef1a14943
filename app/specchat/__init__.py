"""The app: command line, terminal UI and the process that runs the engine."""
