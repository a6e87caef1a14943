"""The parts of the chat screen, one a file."""
