"""A conversation as data."""

from specchat.chat import Answer, Conversation, Settings, answer, ask, last_answer, messages, request
from specengine.protocol import Chat


def test_a_request_holds_all_turns_and_the_ids_that_were_emitted() -> None:
    talk = answer(ask(Conversation("Be brief."), "one"), Answer("1", "end", (7, 8)))
    wanted = request(ask(talk, "two"), 5, Settings(speculation="on", gamma=3))
    assert isinstance(wanted.prompt, Chat)
    sent = [(message.role, message.content, message.tokens) for message in wanted.prompt.messages]
    assert sent == [
        ("system", "Be brief.", None),
        ("user", "one", None),
        ("assistant", "1", (7, 8)),
        ("user", "two", None),
    ]
    assert (wanted.id, wanted.speculation, wanted.gamma) == (5, "on", 3)


def test_a_stopped_answer_stays_with_its_ids_and_its_mark() -> None:
    talk = answer(ask(Conversation(), "one"), Answer("par", "stopped", (7,)))
    kept = last_answer(talk)
    assert kept and (kept.text, kept.ending, kept.tokens) == ("par", "stopped", (7,))
    assert [message.content for message in messages(talk)] == ["one", "par"]


def test_an_answer_without_text_takes_its_turn_away_so_that_roles_alternate() -> None:
    talk = answer(ask(Conversation(), "one"), Answer("1", "end"))
    assert answer(ask(talk, "two"), Answer("", "failed")) == talk


def test_steps_leave_the_conversation_they_start_from_alone() -> None:
    start = Conversation()
    ask(start, "one")
    assert start.turns == ()
