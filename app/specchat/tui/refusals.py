"""Sentences for what can't be done here as it was asked for, with the key that helps, as the user has it."""

from collections.abc import Mapping
from typing import Final, Literal

from specchat.tui.keymap import key_of

Act = Literal["copy", "save", "open", "change"]
"""What is done with a chosen item."""
_SHOWN_BY: Final = {
    "`specchat models list`": "chat.models",
    "`specchat chats list`": "chat.resume",
}
"""Commands that errors name, and the action that shows the same in the chat."""


def refusal(act: Act, by_source: bool, keymap: Mapping[str, str]) -> str:
    """Why this can't be done with the chosen item; `by_source` where answers are coloured by who wrote what."""
    match act:
        case "copy":
            return "There is no text here to copy."
        case "save" if by_source:
            sources, save = key_of("chat.sources", keymap), key_of("block.save", keymap)
            return (
                "Coloured by source, an answer is one piece of text. "
                f"Press {sources} to have its blocks of code back: {save} saves the chosen one."
            )
        case "save":
            above = key_of("block.above", keymap)
            return f"Only a block of code can be saved; {above} goes to the one above, where there is one."
        case "open":
            return "There is nothing to open here: only thoughts and long pastes are folded."
        case "change":
            return "This prompt has not been asked yet; it can be changed once its turn has come."


def in_chat(error: str, keymap: Mapping[str, str]) -> str:
    """An error as it is told in the chat, where a key shows what a command shows elsewhere."""
    for command, action in _SHOWN_BY.items():
        error = error.replace(command, key_of(action, keymap)) if command in error else error
    return error
