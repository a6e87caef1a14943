"""The tree that a conversation grows where a prompt is edited or answered again. No turn is lost, only not shown."""

from collections.abc import Iterable
from dataclasses import replace

from specchat.chat import Conversation, Turn


def siblings(conversation: Conversation, turn: Turn) -> tuple[Turn, ...]:
    """The turns that share this one's place, itself included, oldest first."""
    found = [other for other in (*conversation.turns, *conversation.others) if other.parent == turn.parent]
    return tuple(sorted(found, key=_age))


def place(conversation: Conversation, turn: Turn) -> tuple[int, int]:
    """Which of how many branches the turn begins: (2, 3) is the second of three."""
    beside = siblings(conversation, turn)
    return [other.id for other in beside].index(turn.id) + 1, len(beside)


def places(conversation: Conversation) -> dict[int, tuple[int, int]]:
    """`place` of each shown turn that has siblings, by its id."""
    beside: dict[int | None, list[Turn]] = {}
    for turn in (*conversation.turns, *conversation.others):
        beside.setdefault(turn.parent, []).append(turn)
    found = {}
    for turn in conversation.turns:
        if len(turns := sorted(beside[turn.parent], key=_age)) > 1:
            found[turn.id] = ([other.id for other in turns].index(turn.id) + 1, len(turns))
    return found


def cut_before(conversation: Conversation, id: int) -> Conversation:
    """The branch ends before the turn `id`, so that what is asked next stands beside it. A turn that is not there any
    more changes nothing."""
    turns = (*conversation.turns, *conversation.others)
    turn = next((turn for turn in turns if turn.id == id), None)
    if turn is None:
        return conversation
    if turn.parent is None:
        return Conversation(conversation.system, (), tuple(sorted(turns, key=_age)))
    return assembled(conversation.system, turns, turn.parent)


def switched(conversation: Conversation, id: int) -> Conversation:
    """Shows the branch of the turn `id`, down to its newest turn."""
    turns = (*conversation.turns, *conversation.others)
    return assembled(conversation.system, turns, _newest_below(turns, id))


def assembled(system: str, turns: Iterable[Turn], leaf: int | None) -> Conversation:
    """The conversation whose shown branch ends with the turn `leaf`; the newest turn where that is not among them."""
    by_id = {turn.id: turn for turn in turns}
    # A turn whose parent is not here begins a branch of its own.
    known = {id: turn if turn.parent in by_id else replace(turn, parent=None) for id, turn in by_id.items()}
    if leaf not in known:
        leaf = max(known.values(), key=_age).id if known else None
    path: dict[int, Turn] = {}
    while leaf is not None and leaf not in path:
        path[leaf] = known[leaf]
        leaf = known[leaf].parent
    others = sorted((turn for turn in known.values() if turn.id not in path), key=_age)
    return Conversation(system, tuple(reversed(path.values())), tuple(others))


def _newest_below(turns: Iterable[Turn], id: int) -> int:
    """The end of the branch that goes on from `id` by the newest turn each time."""
    newest: dict[int | None, Turn] = {}
    for turn in sorted(turns, key=_age):
        newest[turn.parent] = turn
    seen = {id}
    while id in newest and newest[id].id not in seen:
        id = newest[id].id
        seen.add(id)
    return id


def _age(turn: Turn) -> tuple[float, int]:
    return turn.asked_s, turn.id
