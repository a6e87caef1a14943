"""Which keys do what: actions have names that stay, so that a user may give them other keys."""

import difflib
import importlib
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from textual.binding import Binding, BindingsMap
from textual.dom import DOMNode
from textual.keys import KEY_NAME_REPLACEMENTS, Keys, _character_to_key, key_to_character
from textual.screen import Screen

from specengine.errors import EngineError

_CHAT: Final = "chat"
_CHOSEN: Final = "block"
"""The keys that hold while something in the transcript is chosen: like those of a screen, they type nothing."""
_MODIFIERS: Final = frozenset({"ctrl", "alt", "shift", "super", "meta", "hyper"})
_SAME_KEY: Final = {"ctrl+i": "tab", "ctrl+m": "enter", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape"}
"""Keys that most terminals can't tell apart."""
_EDITING: Final = ("left", "right", "up", "down", "home", "end", "delete", "backspace", "enter", "tab")
"""Keys without which nothing can be typed."""
_NAMES: Final = frozenset((*(key.value.rpartition("+")[2] for key in Keys), *KEY_NAME_REPLACEMENTS.values()))


@dataclass(frozen=True, slots=True)
class Action:
    """What a key does."""

    id: str
    keys: tuple[str, ...]
    description: str
    screen: str
    """Where it holds: "chat", or the first part of the ids of a screen that lies over the chat."""
    owner: type[DOMNode]
    act: str
    """What `owner` is told to do, as Textual writes it."""


def actions(keymap: Mapping[str, str]) -> list[Action]:
    """Every action that has a name, with its own keys or those that `keymap` gives it; screens before widgets, whose
    bindings may repeat a screen's where they would hide it."""
    bindings = sorted(_bindings(), key=lambda pair: not issubclass(pair[0], Screen))
    over = {_CHOSEN, *(_first(binding) for owner, binding in bindings if _lies_over_chat(owner))}
    found: dict[str, Action] = {}
    for owner, binding in bindings:
        id, first = str(binding.id), _first(binding)
        if id not in found or not found[id].description:
            keys = _keys(keymap.get(id, binding.key))
            screen = first if first in over else _CHAT
            found[id] = Action(id, keys, binding.description, screen, owner, binding.action)
    return list(found.values())


def key_of(id: str, keymap: Mapping[str, str]) -> str:
    """The first key of an action."""
    return next(action.keys[0] for action in actions(keymap) if action.id == id)


def checked(keymap: Mapping[str, str]) -> dict[str, str]:
    """`keymap` as Textual takes it.

    Raises:
        EngineError: an action that doesn't exist, a key that can't be pressed, or two actions on one key; one sentence.
    """
    known = {action.id: action for action in actions({})}
    for id, keys in keymap.items():
        if id not in known:
            close = difflib.get_close_matches(id, known, n=1)
            hint = f"did you mean {close[0]}?" if close else "`specchat config keys` shows them all."
            raise EngineError(f"keymap: there is no action called {id}; {hint}")
        for key in _keys(keys):
            if problem := _problem(key, known[id]):
                raise EngineError(f"keymap: {id}: {problem}")
    _refuse_clashes(keymap)
    return {id: ",".join(_keys(keys)) for id, keys in keymap.items()}


def make_room(node: DOMNode, keymap: Mapping[str, str]) -> None:
    """Settles a widget that has many keys of its own, before `keymap` is laid over it.

    Keys that the user gave to actions of others are no longer its own. Those that its own actions lost go back to its
    base class: where Up no longer goes through the history, it still moves the cursor.
    """
    bindings = node._bindings.key_to_bindings
    for key in {key for keys in keymap.values() for key in _keys(keys)}:
        bindings.pop(key, None)
    moved = [binding for _, binding in BindingsMap(_own(type(node))) if binding.id in keymap]
    for binding in moved:
        bindings.pop(binding.key, None)
        if (inherited := _of_bases(type(node).__mro__[1:], binding.key)) is not None:
            bindings[binding.key] = [inherited]
    for binding in moved:
        for key in _keys(keymap[str(binding.id)]):
            bindings[key] = [binding.with_key(key)]


def _bindings() -> Iterator[tuple[type[DOMNode], Binding]]:
    """Named bindings of every class of this app, screen by screen."""
    importlib.import_module("specchat.tui.app")  # and with it all that has keys
    for owner in _classes(DOMNode):
        yield from ((owner, binding) for binding in _own(owner) if binding.id)


def _classes(base: type[DOMNode]) -> Iterator[type[DOMNode]]:
    for known in base.__subclasses__():
        if known.__module__.startswith("specchat.tui."):
            yield known
        yield from _classes(known)


def _own(owner: type) -> list[Binding]:
    """The bindings that a class itself defines."""
    return [binding for binding in owner.__dict__.get("BINDINGS", ()) if isinstance(binding, Binding)]


def _of_bases(bases: Iterable[type], key: str) -> Binding | None:
    """What `key` does in the first of these classes that knows it."""
    for base in bases:
        for binding in _own(base):
            if key in _keys(binding.key):
                return binding.with_key(key)
    return None


def _lies_over_chat(owner: type[DOMNode]) -> bool:
    return issubclass(owner, Screen) and owner.__name__ != "ChatScreen"


def _first(binding: Binding) -> str:
    return str(binding.id).partition(".")[0]


def _keys(keys: str) -> tuple[str, ...]:
    """The keys in a list with commas, each as Textual calls it: alt+? is alt+question_mark."""
    return tuple(_called(key.strip()) for key in keys.split(","))


def _called(key: str) -> str:
    modifiers, plus, name = key.rpartition("+")
    return f"{modifiers}{plus}{_character_to_key(name)}" if len(name) == 1 else key


def _problem(key: str, action: Action) -> str:
    """Why this key can't do this; empty if it can."""
    *modifiers, name = key.split("+")
    if not name or not _MODIFIERS.issuperset(modifiers) or not (len(name) == 1 or name in _NAMES or _spelled(name)):
        return f"there is no key called {key or 'nothing'}; keys are written like ctrl+y, f9 or alt+up."
    if key in _SAME_KEY:
        return f"most terminals send {_SAME_KEY[key]} for {key}; choose another key."
    if action.screen != _CHAT:
        return ""
    if (key_to_character(name) or "\0").isprintable() and {"shift"}.issuperset(modifiers):
        return f"{key} types into the prompt; add ctrl+ or alt+, or take a function key."
    if key in _EDITING and not action.id.startswith("prompt."):
        return f"{key} belongs to the prompt; choose another key."
    return ""


def _spelled(name: str) -> bool:
    """Whether it is a character's name, such as question_mark."""
    try:
        unicodedata.lookup(name.replace("_", " "))
    except KeyError:
        return False
    return len(name) > 1


def _refuse_clashes(keymap: Mapping[str, str]) -> None:
    """
    Raises:
        EngineError: a key of `keymap` does something else on the same screen.
    """
    users: dict[tuple[str, str], list[Action]] = defaultdict(list)
    for action in actions(keymap):
        for key in action.keys:
            users[action.screen, key].append(action)
    for (_, key), both in users.items():
        if len(both) > 1 and any(action.id in keymap for action in both):
            what = " and ".join(f"{action.id} ({action.description})" for action in both)
            raise EngineError(f"keymap: {key} would do {what}; give one of them another key.")
