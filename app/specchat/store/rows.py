"""How rows of the file become turns, and what chats are asked for with."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, cast, get_args

from specchat.chat import Answer, Conversation, Ending, Turn
from specchat.sources import runs_joined
from specchat.store.values import runs_of, settings_of, stats_of, tokens_of
from specengine.protocol import Reason

LISTED: Final = """
SELECT chat.id, title, created, updated, deleted, system, chat.settings, chat.draft, leaf, chat.model AS next_model,
    (
        WITH RECURSIVE shown (id, parent) AS (
            SELECT id, parent FROM turn WHERE id = COALESCE(
                (SELECT id FROM turn WHERE id = leaf AND turn.chat = chat.id),
                (SELECT id FROM turn WHERE turn.chat = chat.id ORDER BY asked DESC, id DESC LIMIT 1)
            )
            UNION SELECT turn.id, turn.parent FROM turn JOIN shown ON turn.id = shown.parent WHERE turn.chat = chat.id
        )
        SELECT COUNT(*) FROM shown
    ) AS turns,
    COALESCE(
        (SELECT model FROM turn WHERE turn.chat = chat.id AND model <> '' ORDER BY asked DESC LIMIT 1), chat.model
    ) AS last_model
FROM chat
"""
"""Everything about chats but their turns; a WHERE may follow."""
NEWEST_FIRST: Final = "ORDER BY updated DESC, created DESC, id"


def turn_of(row: sqlite3.Row, pieces: Sequence[sqlite3.Row]) -> Turn:
    """A turn, with what was kept of an answer that broke off."""
    text = (row["answer"] or "") + "".join(piece["text"] for piece in pieces)
    runs = runs_joined(runs_of(row["runs"]), *(runs_of(piece["runs"]) for piece in pieces))
    ending = row["ending"] if row["ending"] in _ENDINGS else "failed"
    answer = Answer(
        text,
        cast(Ending, ending),
        tokens_of(row["tokens"]),
        stats_of(row["stats"]),
        row["model"],
        row["draft"],
        settings_of(row["settings"]),
        row["ended"] or 0.0,
        runs,
    )
    shown = row["prompt"] if row["shown"] is None else row["shown"]
    return Turn(row["prompt"], shown, answer if text else None, row["id"], row["parent"], row["asked"])


def settled(conversation: Conversation) -> tuple[Conversation, tuple[Turn, ...]]:
    """The conversation as one can go on from, and the prompts at its end that were never answered."""
    turns = conversation.turns
    answered = next((index for index in range(len(turns), 0, -1) if turns[index - 1].answer), 0)
    others = tuple(turn for turn in conversation.others if turn.answer)
    return replace(conversation, turns=turns[:answered], others=others), turns[answered:]


def storable(value: object) -> object:
    """Half a character, which some terminals send, can't be written; it becomes a question mark."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else value


_ENDINGS: Final = {"failed", *get_args(Reason)}
