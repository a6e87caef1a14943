"""The tree that a conversation grows."""

from dataclasses import replace

from specchat.branches import assembled, cut_before, place, siblings, switched
from specchat.chat import Answer, Conversation, answer, ask, messages


def talk(*prompts: str) -> Conversation:
    conversation = Conversation("Be brief.")
    for prompt in prompts:
        conversation = said(conversation, prompt)
    return conversation


def said(conversation: Conversation, prompt: str) -> Conversation:
    asked = answer(ask(conversation, prompt), Answer(f"to {prompt}", "end"))
    *earlier, last = asked.turns
    return replace(asked, turns=(*earlier, replace(last, asked_s=len(asked.turns) + len(asked.others))))


def prompts(conversation: Conversation) -> list[str]:
    return [turn.prompt for turn in conversation.turns]


def test_each_turn_knows_the_one_before_it() -> None:
    first, second = talk("one", "two").turns
    assert first.parent is None
    assert second.parent == first.id


def test_an_edited_prompt_begins_a_branch_and_the_old_one_is_kept() -> None:
    start = talk("one", "two", "three")
    edited = said(cut_before(start, start.turns[1].id), "two, better")
    assert prompts(edited) == ["one", "two, better"]
    assert [turn.prompt for turn in edited.others] == ["two", "three"]
    assert [message.content for message in messages(edited)] == [
        "Be brief.", "one", "to one", "two, better", "to two, better",
    ]  # fmt: skip


def test_branches_are_counted_oldest_first() -> None:
    start = talk("one", "two")
    second = said(cut_before(start, start.turns[1].id), "2b")
    third = said(cut_before(second, second.turns[1].id), "2c")
    assert [turn.prompt for turn in siblings(third, third.turns[1])] == ["two", "2b", "2c"]
    assert place(third, third.turns[1]) == (3, 3)
    assert place(third, third.turns[0]) == (1, 1)


def test_switching_back_shows_the_old_branch_down_to_its_newest_turn() -> None:
    start = talk("one", "two", "three")
    edited = said(said(cut_before(start, start.turns[1].id), "2b"), "3b")
    back = switched(edited, start.turns[1].id)
    assert prompts(back) == ["one", "two", "three"]
    assert sorted(turn.prompt for turn in back.others) == ["2b", "3b"]
    assert back.system == "Be brief."
    assert prompts(switched(back, edited.turns[1].id)) == ["one", "2b", "3b"]


def test_the_first_prompt_may_be_edited_too() -> None:
    start = talk("one", "two")
    edited = said(cut_before(start, start.turns[0].id), "1b")
    assert prompts(edited) == ["1b"]
    assert place(edited, edited.turns[0]) == (2, 2)


def test_a_conversation_is_put_together_from_its_turns_and_where_it_was_left() -> None:
    start = talk("one", "two")
    edited = said(cut_before(start, start.turns[1].id), "2b")
    turns = (*edited.turns, *edited.others)
    assert assembled("Be brief.", turns, edited.turns[-1].id) == edited
    assert prompts(assembled("", turns, start.turns[-1].id)) == ["one", "two"]
    assert prompts(assembled("", turns, None)) == ["one", "2b"]  # the newest, where nobody knows
    assert assembled("", (), 5) == Conversation()


def test_turns_that_lost_their_parent_or_turn_in_a_circle_are_still_there() -> None:
    one, two = talk("one", "two").turns
    orphan = assembled("", [two], two.id)
    assert prompts(orphan) == ["two"] and orphan.turns[0].parent is None
    circle = assembled("", [replace(one, parent=two.id), two], two.id)
    assert sorted(prompts(circle)) == ["one", "two"]
