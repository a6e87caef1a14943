"""What fills the terminal: the chat, the help and the first start."""
