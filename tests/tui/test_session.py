"""A session and the chat it keeps: on a scripted engine and a real file."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from chatting import LOAD, Gate
from fake_engine import FakeEngine, stats_after
from specchat.chat import Answer, Settings
from specchat.going_on import joined, stats_joined, whole_characters
from specchat.sources import Run
from specchat.store import recorder
from specchat.store.chats import Kept, Store
from specchat.store.keeping import Keeping
from specchat.store.recorder import Recorder
from specchat.tui.jobs import Asked
from specchat.tui.session import Session
from specengine.protocol import Chat, Loaded, Token
from specengine.settings import Sampling
from specengine.stats import Stats, Why


class Shown:
    """Writes down what a view is told."""

    def __init__(self) -> None:
        self.started: list[Asked] = []
        self.text: list[str] = []
        self.ended: list[Answer] = []
        self.errors: list[str] = []

    def on_loading(self, what: str, fraction: float) -> None: ...

    def on_loaded(self, loaded: Loaded) -> None: ...

    def on_notice(self, text: str) -> None: ...

    def on_error(self, text: str) -> None:
        self.errors.append(text)

    async def on_started(self, asked: Asked) -> None:
        self.started.append(asked)

    def on_reading(self, done: int, total: int) -> None: ...

    def on_tokens(self, tokens: Sequence[Token], stats: Stats) -> None:
        self.text += [token.text for token in tokens]

    async def on_ended(self, asked: Asked, given: Answer) -> None:
        self.ended.append(given)


class Talk:
    def __init__(self, engine: FakeEngine, path: Path) -> None:
        self.engine = engine
        self.path = path
        self.shown = Shown()
        self.said: list[str] = []
        self.recorder = Recorder(path, self.said.append)
        settings = Settings(Sampling(seed=5))
        self.session = Session(engine, settings, "Be brief.", self.shown, Keeping(self.recorder))

    async def until(self, condition: object, seconds: float = 20.0) -> None:
        async with asyncio.timeout(seconds):
            while not condition():  # type: ignore[operator]
                await asyncio.sleep(0.005)

    async def idle(self) -> None:
        await self.until(lambda: not self.session.busy)

    async def say(self, *prompts: str) -> None:
        for prompt in prompts:
            self.session.send(prompt, prompt)
            await self.idle()

    def asked(self, number: int) -> list[str]:
        """What the engine was given in this request."""
        prompt = self.engine.requests[number].prompt
        assert isinstance(prompt, Chat)
        return [message.content for message in prompt.messages]

    def kept(self, chat: str | None = None) -> Kept:
        """The chat as it is on the disk once all is written."""
        self.recorder.close()
        with Store(self.path) as store:
            return store.kept(chat or store.last() or "")


@asynccontextmanager
async def talking(engine: FakeEngine, folder: Path) -> AsyncGenerator[Talk]:
    talk = Talk(engine, folder / "chats.db")
    running = asyncio.create_task(talk.session.run())
    talk.session.load(LOAD)
    await talk.idle()
    try:
        yield talk
    finally:
        running.cancel()
        await asyncio.wait([running])
        talk.recorder.close()


def turns(kept: Kept) -> list[tuple[str, str]]:
    return [(turn.prompt, turn.answer.text if turn.answer else "") for turn in kept.conversation.turns]


async def test_every_turn_is_kept_with_its_model_settings_figures_and_ids(tmp_path: Path) -> None:
    """35, 36. A chat is on the disk, not in a window, and says which model wrote what."""
    async with talking(FakeEngine().script("one ", "two").script("three"), tmp_path) as talk:
        await talk.say("first", "second")
        kept = talk.kept()
    assert turns(kept) == [("first", "one two"), ("second", "three")]
    answer = kept.conversation.turns[0].answer
    assert answer == talk.session.conversation.turns[0].answer
    assert answer and (answer.model, answer.draft, answer.tokens) == ("tiny-1b", "tiny-100m", (0, 1))
    assert answer.settings == Settings(Sampling(seed=5)) and answer.stats == stats_after(2)
    assert answer.runs == (Run("target", 2, 7),)
    assert (kept.model, kept.draft, kept.settings) == ("tiny-1b", "tiny-100m", Settings(Sampling(seed=5)))
    assert (kept.listed.title, kept.conversation.system) == ("first", "Be brief.")


async def test_a_stopped_answer_is_kept_and_marked(tmp_path: Path) -> None:
    """32. What was written before the stop stays in the history."""
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate), tmp_path) as talk:
        talk.session.send("first", "first")
        gate.open()
        await talk.until(lambda: talk.shown.text)
        talk.session.stop()
        gate.open()
        await talk.idle()
        kept = talk.kept()
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending, answer.tokens) == ("one ", "stopped", (0,))


async def test_a_chat_deleted_for_good_while_it_is_open_loses_no_turn_and_that_is_said(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("1").script("2").script("3"), tmp_path) as talk:
        await talk.say("one", "two")
        await talk.until(lambda: len(on_disk(talk)) == 2)
        with Store(talk.path) as store, store.writing():
            store.delete(talk.session.keeping.chat, 1.0)
            store.purge(2.0)
        await talk.say("three")
        kept = talk.kept(talk.session.keeping.chat)
    assert turns(kept) == [("one", "1"), ("two", "2"), ("three", "3")]
    assert talk.said == ["This chat was deleted in another window; since it goes on here, it is kept again, whole."]


async def test_an_answer_that_a_killed_window_left_counts_from_its_start_when_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TEXT_S", 0.01)
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two ", "three", pace=gate), tmp_path) as talk:
        talk.session.send("count", "count")
        gate.open(2)
        await talk.until(lambda: on_disk(talk) == [("count", "one two ")])
        with Store(talk.path) as store:  # as after a kill in this moment
            kept = store.kept(store.last() or "")
        gate.open()
        await talk.idle()
    (left,) = kept.conversation.turns
    assert left.answer and (left.answer.ending, left.answer.stats) == ("failed", stats_after(2))
    async with talking(FakeEngine().script("three ", "four"), tmp_path) as again:
        again.session.resume(kept)
        again.session.go_on()
        await again.idle()
        (whole,) = again.session.conversation.turns
    assert whole.answer and whole.answer.text == "one two three four"
    assert whole.answer.stats and whole.answer.stats.emitted == 4
    assert whole.answer.runs == (Run("target", 4, 18),)


def on_disk(talk: Talk) -> list[tuple[str, str]]:
    with Store(talk.path) as store:
        chat = store.last()
        return turns(store.kept(chat)) if chat else []


async def test_what_the_engine_wrote_before_it_died_is_kept(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one ", "two", crash_after=1), tmp_path) as talk:
        await talk.say("first")
        kept = talk.kept()
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending, answer.tokens) == ("one ", "failed", None)


async def test_the_first_answer_after_a_crash_is_kept_with_the_model_that_wrote_it(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one ", crash_after=1).script("two"), tmp_path) as talk:
        await talk.say("first", "second")
        kept = talk.kept()
    answer = kept.conversation.turns[1].answer
    assert answer and (answer.text, answer.model, answer.draft) == ("two", "tiny-1b", "tiny-100m")


async def test_leaving_in_the_middle_of_an_answer_keeps_it(tmp_path: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate), tmp_path) as talk:
        talk.session.send("first", "first")
        gate.open()
        await talk.until(lambda: talk.shown.text)
    with Store(tmp_path / "chats.db") as store:
        kept = store.kept(store.last() or "")
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending) == ("one ", "stopped")


async def test_queued_prompts_are_on_the_disk_before_their_turn_comes(tmp_path: Path) -> None:
    """34. A crash loses no message that was waiting."""
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate), tmp_path) as talk:
        for prompt in ("first", "second", "third"):
            talk.session.send(prompt, prompt)
        gate.open()
        await talk.until(lambda: talk.shown.text)
        kept = talk.kept()
        assert turns(kept) == [("first", "one ")]
        assert [turn.prompt for turn in kept.unanswered] == ["second", "third"]


async def test_a_prompt_that_was_taken_back_is_kept_nowhere(tmp_path: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one", pace=gate), tmp_path) as talk:
        talk.session.send("first", "first")
        await talk.until(lambda: talk.shown.started)
        talk.session.send("queued", "queued")
        taken = talk.session.withdraw()
        assert taken and taken.prompt == "queued"
        talk.session.stop()
        gate.open()
        await talk.idle()
        talk.recorder.close()
    with Store(tmp_path / "chats.db") as store:
        assert store.listed() == []


async def test_a_prompt_that_was_refused_is_kept_to_be_asked_again(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("yes").script(refuse="Too long."), tmp_path) as talk:
        await talk.say("first", "long one")
        assert talk.shown.errors == ["Too long."]
        kept = talk.kept()
    assert turns(kept) == [("first", "yes")]
    assert [turn.prompt for turn in kept.unanswered] == ["long one"]


async def test_a_new_chat_leaves_the_old_one_as_it_was_its_running_answer_included(tmp_path: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate).script("new"), tmp_path) as talk:
        old = talk.session.keeping.chat
        talk.session.send("first", "first")
        gate.open()
        await talk.until(lambda: talk.shown.text)
        talk.session.new()
        gate.open()
        await talk.say("second")
        assert talk.asked(1) == ["Be brief.", "second"]
        assert talk.session.keeping.chat != old
        kept = talk.kept(old)
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending, answer.tokens) == ("one ", "stopped", (0,))
    with Store(tmp_path / "chats.db") as store:
        assert [chat.title for chat in store.listed()] == ["second", "first"]


async def test_an_answer_asked_for_again_has_another_seed_and_the_first_one_stays(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one").script("two").script("three"), tmp_path) as talk:
        await talk.say("first")
        for _ in range(2):
            talk.session.retry()
            await talk.idle()
        assert [request.sampling.seed for request in talk.engine.requests] == [5, 6, 7]
        assert talk.asked(2) == ["Be brief.", "first"]
        assert [turn.prompt for turn in talk.session.conversation.turns] == ["first"]
        assert talk.session.settings.sampling.seed == 5
        kept = talk.kept()
    assert turns(kept) == [("first", "three")]
    assert sorted(turn.answer.text for turn in kept.conversation.others if turn.answer) == ["one", "two"]


async def test_asking_again_in_the_middle_of_an_answer_stops_it_first(tmp_path: Path) -> None:
    gate = Gate()
    async with talking(FakeEngine().script("bad ", "bad", pace=gate).script("good"), tmp_path) as talk:
        talk.session.send("first", "first")
        gate.open()
        await talk.until(lambda: talk.shown.text)
        talk.session.retry()
        gate.open()
        await talk.idle()
        kept = talk.kept()
    assert turns(kept) == [("first", "good")]
    assert [turn.answer.text for turn in kept.conversation.others if turn.answer] == ["bad "]


async def test_an_earlier_prompt_edited_begins_a_branch_and_switching_goes_back(tmp_path: Path) -> None:
    """71. Edit a prompt and go on from there; the old branch is not lost."""
    async with talking(FakeEngine(), tmp_path) as talk:
        await talk.say("one", "two", "three")
        second = talk.session.conversation.turns[1].id
        talk.session.send("two, better", "two, better", beside=second)
        await talk.idle()
        assert talk.asked(3) == ["Be brief.", "one", "Hello", "two, better"]
        talk.session.show_branch(second)
        assert [turn.prompt for turn in talk.session.conversation.turns] == ["one", "two", "three"]
        await talk.say("four")
        assert talk.asked(4)[-1] == "four" and "two" in talk.asked(4)
        kept = talk.kept()
    assert [prompt for prompt, _ in turns(kept)] == ["one", "two", "three", "four"]
    assert [turn.prompt for turn in kept.conversation.others] == ["two, better"]


async def test_the_branch_that_is_shown_is_remembered(tmp_path: Path) -> None:
    async with talking(FakeEngine(), tmp_path) as talk:
        await talk.say("one")
        first = talk.session.conversation.turns[0].id
        talk.session.send("one, better", "one, better", beside=first)
        await talk.idle()
        talk.session.show_branch(first)
        kept = talk.kept()
    assert [prompt for prompt, _ in turns(kept)] == ["one"]


async def test_a_second_try_that_fails_leaves_the_first_answer_in_place(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one").script(refuse="Too long."), tmp_path) as talk:
        await talk.say("first")
        before = talk.session.conversation
        talk.session.retry()
        await talk.idle()
        assert talk.session.conversation == before
        kept = talk.kept()
    assert (turns(kept), kept.conversation.others, kept.unanswered) == ([("first", "one")], (), ())


async def test_a_cut_answer_goes_on_as_one_answer(tmp_path: Path) -> None:
    engine = FakeEngine().script("one ", "tw\ufffd", reason="length").script("two ", "three")
    async with talking(engine, tmp_path) as talk:
        await talk.say("first")
        talk.session.go_on()
        await talk.idle()
        assert talk.asked(1) == ["Be brief.", "first", "one tw"]
        prompt = engine.requests[1].prompt
        assert isinstance(prompt, Chat) and prompt.messages[-1].tokens == (0, 1)
        assert talk.shown.ended[-1] == talk.session.conversation.turns[0].answer
        kept = talk.kept()
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending) == ("one twtwo three", "end")
    assert answer.stats and answer.stats.emitted == 4
    assert sum(run.characters for run in answer.runs) == len(answer.text)
    assert len(kept.conversation.turns) == 1


async def test_going_on_and_dying_keeps_both_parts_and_the_ids_of_the_first(tmp_path: Path) -> None:
    engine = FakeEngine().script("one ", reason="length").script("two ", "three", crash_after=1)
    async with talking(engine, tmp_path) as talk:
        await talk.say("first")
        talk.session.go_on()
        await talk.idle()
        kept = talk.kept()
    answer = kept.conversation.turns[0].answer
    assert answer and (answer.text, answer.ending, answer.tokens) == ("one two ", "failed", (0,))


async def test_going_on_without_a_word_more_changes_the_ending_at_most(tmp_path: Path) -> None:
    engine = FakeEngine().script("one", reason="length").script(refuse="No.").script()
    async with talking(engine, tmp_path) as talk:
        await talk.say("first")
        for ending in ("length", "end"):
            talk.session.go_on()
            await talk.idle()
            answer = talk.session.conversation.turns[0].answer
            assert answer and (answer.text, answer.ending) == ("one", ending)
        kept = talk.kept()
    assert turns(kept) == [("first", "one")]


async def test_there_is_nothing_to_go_on_with_or_to_try_again_in_an_empty_chat(tmp_path: Path) -> None:
    async with talking(FakeEngine(), tmp_path) as talk:
        assert talk.session.go_on() is None
        assert talk.session.retry() is None
        assert not talk.session.busy


async def test_a_resumed_chat_goes_on_with_its_own_settings_in_the_same_chat(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one"), tmp_path) as talk:
        talk.session.adjust("off", 3)
        await talk.say("first")
        kept = talk.kept()
    async with talking(FakeEngine().script("two"), tmp_path) as again:
        again.session.resume(kept)
        await again.say("second")
        assert again.asked(0) == ["Be brief.", "first", "one", "second"]
        assert (again.engine.requests[0].speculation, again.engine.requests[0].gamma) == ("off", 3)
        after = again.kept()
    assert after.listed.id == kept.listed.id
    assert turns(after) == [("first", "one"), ("second", "two")]


async def test_a_prompt_left_unanswered_is_replaced_by_what_is_sent_in_its_place(tmp_path: Path) -> None:
    async with talking(FakeEngine().script("one").script(refuse="Too long."), tmp_path) as talk:
        await talk.say("first", "too long")
        kept = talk.kept()
    async with talking(FakeEngine().script("yes"), tmp_path) as again:
        again.session.resume(kept)
        await again.say("short")
        after = again.kept()
    assert turns(after) == [("first", "one"), ("short", "yes")]
    with Store(tmp_path / "chats.db") as store:
        assert len(store.rows("SELECT * FROM turn")) == 2


async def test_nothing_is_kept_without_a_recorder(tmp_path: Path) -> None:
    engine = FakeEngine()
    session = Session(engine, Settings(), "", Shown())
    running = asyncio.create_task(session.run())
    session.load(LOAD)
    session.send("secret", "secret")
    async with asyncio.timeout(20):
        while session.busy:
            await asyncio.sleep(0.005)
    running.cancel()
    assert len(session.conversation.turns) == 1
    assert not session.keeping.begun


@pytest.mark.parametrize("half", ["", "\ufffd"])
def test_text_runs_and_figures_of_both_parts_are_put_together(half: str) -> None:
    first = Answer("ab" + half, "length", (1, 2), stats_after(10), runs=(Run("lookup", 2, 2 + len(half)),))
    begun = whole_characters(first)
    more = Answer("cd", "end", (1, 2, 3), stats_after(4), "m", runs=(Run("lookup", 1, 1), Run("target", 1, 1)))
    whole = joined(begun, more)
    assert (whole.text, whole.ending, whole.tokens, whole.model) == ("abcd", "end", (1, 2, 3), "m")
    assert whole.runs == (Run("lookup", 3, 3), Run("target", 1, 1))
    stats = whole.stats
    assert stats is not None
    assert (stats.emitted, stats.target_passes, stats.first_token_s) == (14, 7, 0.25)
    assert stats.sources["lookup"].accepted == 7
    assert stats.context_used == 124  # as it is now
    assert stats_joined(Stats(prefill_s=1.0), Stats(prefill_s=0.5)) == Stats(prefill_s=1.5)
    why = Why(free=7, offered=3, behind=2, probes=1, shortest_taken=4, longest_left=2)
    later = Why(free=2, offered=1, behind=1, fixed=5, shortest_taken=9, c=0.5)
    assert stats_joined(Stats(why=why), Stats(why=later)) == Stats(
        why=Why(free=9, offered=4, behind=3, probes=1, fixed=5, shortest_taken=4, longest_left=2, c=0.5)
    )
    assert stats_joined(Stats(emitted=1), None) == Stats(emitted=1)
    assert stats_joined(None, Stats(emitted=1)) is None, "nobody counted the first part"
