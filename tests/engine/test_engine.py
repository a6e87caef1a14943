"""A conversation with a loaded model: what is read again and what is not, how answers end, and what is refused."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

import pytest

import tiny
from decoding import EXACT, Answer, StopAt, answer, engine
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.errors import EngineError
from specengine.language_model import spelled
from specengine.protocol import Chat, Chunk, Done, Generate, Infill, Message, Prefilling, Raw
from specengine.settings import Limits, Sampling

GREEDY: Final = Sampling(temperature=0)
WARM: Final = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=5)
SHORT: Final = Limits(max_tokens=24)
SYSTEM: Final = Message("system", "You are in a test.")
CODE: Final = "def hello(self):\n    return 'the world'\n" * 6


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("engine")
    return (
        tiny.make(folder / "target.gguf", cycle=1.0),
        tiny.make(folder / "draft.gguf", cycle=1.0, noise=0.03),
    )


@pytest.fixture
def chat(files: tuple[Path, Path]) -> Iterator[Engine]:
    with engine(*files) as made:
        yield made


@pytest.fixture
def cold(files: tuple[Path, Path]) -> Iterator[Engine]:
    """Another engine, to answer what no other conversation was read for."""
    with engine(*files) as made:
        yield made


def ask(engine: Engine, *messages: Message, sampling: Sampling = WARM, limits: Limits = SHORT) -> Answer:
    return answer(engine, Chat(messages), sampling, limits=limits, lookup=True, draft=True, speculation="auto")


def plain(engine: Engine, *messages: Message, sampling: Sampling = WARM, limits: Limits = SHORT) -> Answer:
    """Without speculation and from empty caches."""
    engine.committed.clear()
    engine.target.rollback(0)
    return answer(engine, Chat(messages), sampling, limits=limits)


def said(answered: Answer) -> Message:
    return Message("assistant", answered.text, answered.tokens)


def user(text: str) -> Message:
    return Message("user", text)


@pytest.mark.parametrize("end", [0.0, 6.0])
def test_the_next_turn_reads_only_what_is_new_in_target_and_draft(tmp_path: Path, end: float) -> None:
    target = tiny.make(tmp_path / "target.gguf", cycle=1.0, end=end)
    draft = tiny.make(tmp_path / "draft.gguf", cycle=1.0, end=end, noise=0.03)
    with engine(target, draft) as chat, engine(target) as fresh:
        assert chat.model is not None
        messages = [SYSTEM, user(CODE)]
        reasons = set()
        held = held_by_draft = 0
        for question in ("in the world", "hello", "return", "and not that"):
            answered = answer(chat, Chat(tuple(messages)), WARM, limits=SHORT, draft=True, gamma=2)
            stats = answered.stats
            assert stats.prompt_tokens == stats.reused_tokens + stats.prefilled_tokens + 1
            assert stats.reused_tokens == max(0, held - 1)
            if stats.draft_passes:
                # The first token doesn't wait for the draft model, which reads it with the prompt.
                assert stats.draft_prefilled_tokens == stats.prompt_tokens - held_by_draft
            assert answered.tokens == plain(fresh, *messages).tokens
            reasons.add(answered.reason)
            held, held_by_draft = len(chat.committed), chat.model.model.length
            assert held - held_by_draft <= 2 or not stats.draft_passes
            messages += [said(answered), user(question)]
        assert stats.prefilled_tokens < 20 < stats.prompt_tokens - 20
        assert ("end" in reasons) == (end > 0)


def test_an_answer_asked_for_again_reads_nothing(chat: Engine, cold: Engine) -> None:
    messages = (SYSTEM, user(CODE))
    first = ask(chat, *messages)
    other = replace(WARM, seed=99)
    again = ask(chat, *messages, sampling=other)
    assert (again.stats.reused_tokens, again.stats.prefilled_tokens) == (first.stats.prompt_tokens - 1, 0)
    assert again.stats.draft_prefilled_tokens == 0
    assert again.rounds[0].drafted > 0
    assert again.tokens == plain(cold, *messages, sampling=other).tokens != first.tokens


def test_an_edited_message_is_read_from_the_edit_on(chat: Engine, cold: Engine) -> None:
    start, edited = user(CODE + "for the world"), user(CODE + "to the world")
    ask(chat, SYSTEM, start)
    second = ask(chat, SYSTEM, edited)
    assert second.tokens == plain(cold, SYSTEM, edited).tokens
    new = second.stats.prompt_tokens - second.stats.reused_tokens
    assert 2 < new < 16
    assert second.stats.prefilled_tokens == new - 1


def test_another_conversation_starts_from_what_the_two_share(chat: Engine, cold: Engine) -> None:
    ask(chat, SYSTEM, user(CODE))
    other = (Message("system", "You are another."), user("hello " * 30))
    answered = ask(chat, *other)
    assert answered.tokens == plain(cold, *other).tokens
    assert 0 < answered.stats.reused_tokens < 20


@pytest.mark.parametrize("dropped_at", ["start", "middle", "end"])
def test_a_history_rewritten_anywhere_gives_the_answer_of_a_fresh_start(
    chat: Engine, cold: Engine, dropped_at: str
) -> None:
    messages = [SYSTEM, user(CODE)]
    for question in ("in", "on", "of"):
        messages += [said(ask(chat, *messages)), user(question)]
    where = {"start": 1, "middle": 3, "end": 5}[dropped_at]
    rewritten = [*messages[:where], user("self"), Message("assistant", "None"), user("class")]
    assert ask(chat, *rewritten).tokens == plain(cold, *rewritten).tokens


def test_after_a_stop_in_any_round_the_next_turn_is_that_of_a_fresh_start(chat: Engine, cold: Engine) -> None:
    messages = (SYSTEM, user(CODE))
    whole = answer(chat, Chat(messages), WARM, limits=SHORT, draft=True, gamma=2)
    assert len(whole.rounds) > 8
    for last in range(1, len(whole.rounds)):

        def stop(done: int, controls: Controls, last: int = last) -> None:
            controls.stop = done == last

        stopped = answer(chat, Chat(messages), WARM, limits=SHORT, draft=True, gamma=2, each_round=stop)
        assert stopped.reason == "stopped"
        assert stopped.tokens == whole.tokens[: len(stopped.tokens)]
        assert whole.text.startswith(stopped.text)
        following = (*messages, said(stopped), user("and the world"))
        assert ask(chat, *following).tokens == plain(cold, *following).tokens


def test_closing_the_stream_after_any_message_leaves_the_conversation_usable(chat: Engine, cold: Engine) -> None:
    request = Generate(1, Chat((SYSTEM, user(CODE))), WARM, SHORT)
    expected = plain(cold, SYSTEM, user(CODE)).tokens
    for taken in range(1, 12):
        stream = chat.generate(request, Controls())
        for _ in islice(stream, taken):
            pass
        stream.close()  # type: ignore[attr-defined]
        assert chat.target.length <= len(chat.committed)
        assert ask(chat, SYSTEM, user(CODE)).tokens == expected


def test_a_stop_while_the_prompt_is_read_keeps_what_was_read(chat: Engine, cold: Engine) -> None:
    document = user(CODE * 5)
    expected = plain(cold, document)
    counting = StopAt(10**9)
    answer(chat, Chat((document,)), WARM, limits=Limits(max_tokens=1), speculation="off", controls=counting)
    assert expected.stats.prefilled_tokens > chat.target.n_batch
    kept = set()
    for limit in range(0, counting.times - 1, max(1, counting.times // 20)):
        chat.committed.clear()
        chat.target.rollback(0)
        stopped = answer(chat, Chat((document,)), WARM, limits=SHORT, controls=StopAt(limit))
        assert (stopped.reason, stopped.tokens) == ("stopped", ())
        assert stopped.stats.prefilled_tokens == chat.target.length == len(chat.committed)
        kept.add(chat.target.length)
        again = ask(chat, document)
        assert again.tokens == expected.tokens
        assert again.stats.reused_tokens == stopped.stats.prefilled_tokens
    assert kept == {0, chat.target.n_batch}


@pytest.mark.parametrize("speculation", ["off", "auto"])
def test_a_stop_string_ends_the_answer_wherever_it_comes(chat: Engine, cold: Engine, speculation: str) -> None:
    messages = (SYSTEM, user(CODE))
    whole = plain(cold, *messages, sampling=GREEDY, limits=Limits(max_tokens=60))
    vocabulary = chat.target.vocabulary
    offsets = set()
    for end in range(2, 50):
        text = spelled(vocabulary, whole.tokens[:end]).decode(errors="replace")
        stop = text[-3:]
        if not whole.text.startswith(text) or text.find(stop) != len(text) - 3:
            continue
        ended = answer(
            chat,
            Chat(messages),
            GREEDY,
            limits=Limits(max_tokens=60, stop=("never said", stop)),
            lookup=speculation == "auto",
            draft=speculation == "auto",
        )
        assert (ended.text, ended.reason) == (text[:-3], "stop")
        assert ended.tokens == whole.tokens[: len(ended.tokens)]
        assert ended.text.startswith(spelled(vocabulary, ended.tokens).decode(errors="replace"))
        offsets.add(ended.rounds[-1].last_offset)
    assert len(offsets) > 2 or speculation == "off"


def test_text_is_attributed_to_who_wrote_it(chat: Engine) -> None:
    request = Generate(1, Chat((SYSTEM, user(CODE))), GREEDY, Limits(max_tokens=60), speculation="on")
    tokens = [
        token
        for message in chat.generate(request, Controls(speculation="on"))
        if isinstance(message, Chunk)
        for token in message.tokens
    ]
    assert {token.source for token in tokens} >= {"target", "draft"}
    assert {token.source for token in tokens} <= {"target", "draft", "lookup"}


def test_a_conversation_that_outgrows_the_context_drops_whole_turns_and_says_so(files: tuple[Path, Path]) -> None:
    with engine(*files, options=replace(EXACT, n_ctx=512)) as small, engine(files[0]) as large:
        turns = [message for i in range(8) for message in (user(f"question {i} " * 12), Message("assistant", "is"))]
        messages = (SYSTEM, *turns, user("the last question"))
        answered = ask(small, *messages)
        text = spelled(small.target.vocabulary, small.committed).decode(errors="replace")
        assert SYSTEM.content in text
        assert "the last question" in text
        assert "question 0" not in text
        kept = [i for i in range(8) if f"question {i}" in text]
        assert kept == list(range(kept[0], 8))
        assert answered.notices == [
            f"The conversation outgrew the context: the oldest {kept[0]} turns were left out of the prompt."
        ]
        remaining = (SYSTEM, *turns[2 * kept[0] :], user("the last question"))
        assert answered.tokens == plain(large, *remaining).tokens


def test_a_message_too_large_for_the_context_is_refused_and_the_conversation_goes_on(chat: Engine) -> None:
    before = ask(chat, SYSTEM, user(CODE))
    for prompt in (Chat((SYSTEM, user("word " * 3000))), Raw("word " * 3000)):
        with pytest.raises(EngineError, match=r"takes [\d,]+ tokens.*context holds 1,024") as refused:
            answer(chat, prompt, WARM, limits=SHORT)
        assert "\n" not in str(refused.value)
    again = ask(chat, SYSTEM, user(CODE))
    assert again.tokens == before.tokens
    assert again.stats.prefilled_tokens == 0


def test_an_empty_prompt_is_refused(chat: Engine) -> None:
    with pytest.raises(EngineError, match="prompt is empty"):
        answer(chat, Raw(""), WARM, limits=SHORT)


@pytest.mark.parametrize("used", [0, 1, 30])
def test_a_full_context_ends_the_answer_and_says_why(chat: Engine, used: int) -> None:
    tokens = chat.target.vocabulary.tokenize("hello world" * 1000)
    text = spelled(chat.target.vocabulary, tokens[: chat.target.n_ctx - 1 - used]).decode()
    ended = answer(chat, Raw(text), WARM, limits=Limits(), lookup=True, draft=True)
    assert ended.reason == "context"
    assert len(ended.tokens) == used + 1
    assert len(chat.committed) == chat.target.n_ctx
    assert answer(chat, Raw("hello"), WARM, limits=SHORT).reason == "length"


def test_raw_text_is_continued_without_a_template(chat: Engine) -> None:
    answered = answer(chat, Raw(CODE), WARM, limits=SHORT, lookup=True, draft=True)
    assert answered.stats.prompt_tokens == len(chat.target.vocabulary.tokenize(CODE))
    assert chat.committed[: answered.stats.prompt_tokens] == chat.target.vocabulary.tokenize(CODE)


def test_a_gap_is_asked_for_with_the_models_own_marks(chat: Engine) -> None:
    marks = chat.target.vocabulary.fill_in_middle
    assert marks is not None
    answered = answer(chat, Infill("def hello", "return"), WARM, limits=SHORT)
    prompt = chat.committed[: answered.stats.prompt_tokens]
    assert (prompt[0], prompt[-1]) == (marks.prefix, marks.middle)
    assert prompt.count(marks.suffix) == 1


def test_a_gap_keeps_the_nearest_text_where_the_context_is_too_small_for_all(chat: Engine) -> None:
    prefix = "".join(f"before {number}\n" for number in range(2000))
    suffix = "".join(f"after {number}\n" for number in range(2000))
    answered = answer(chat, Infill(prefix, suffix), WARM, limits=SHORT)
    text = spelled(chat.target.vocabulary, chat.committed[: answered.stats.prompt_tokens]).decode()
    before, _, after = text.partition("1999\n")
    assert "before 1998" in before and "before 0\n" not in before
    assert after.startswith("after 0\nafter 1\n") and "after 1999" not in after
    assert answered.stats.prompt_tokens == chat.target.n_ctx - 24
    (notice,) = answered.notices
    assert notice.startswith("The text outgrew the context: ") and notice.endswith(" after it were read.")


def test_a_short_text_before_a_gap_leaves_its_room_to_the_text_after_it(chat: Engine) -> None:
    marks = chat.target.vocabulary.fill_in_middle
    assert marks is not None
    answered = answer(chat, Infill("def hello", "word " * 3000), WARM, limits=SHORT)
    prompt = chat.committed[: answered.stats.prompt_tokens]
    assert prompt[: prompt.index(marks.suffix)] == [marks.prefix, *chat.target.vocabulary.tokenize("def hello")]
    assert len(prompt) == chat.target.n_ctx - 24


def test_speculation_leaves_a_filled_gap_as_it_is_and_drafts_from_the_text_around_it(chat: Engine) -> None:
    limits = Limits(max_tokens=80)
    gap = Infill(CODE * 3, CODE * 3)
    expected = answer(chat, gap, GREEDY, limits=limits)
    for lookup, draft in ((True, False), (False, True), (True, True)):
        filled = answer(chat, gap, GREEDY, limits=limits, lookup=lookup, draft=draft)
        assert filled.tokens == expected.tokens
        assert 0 < filled.stats.accepted <= filled.stats.drafted
        assert filled.stats.target_passes < expected.stats.target_passes


def test_a_model_without_a_template_or_marks_takes_raw_text_only(tmp_path: Path) -> None:
    with engine(tiny.make_sentencepiece(tmp_path / "plain.gguf")) as made:
        with pytest.raises(EngineError, match="no chat template"):
            answer(made, Chat((user("hello"),)), WARM, limits=SHORT)
        with pytest.raises(EngineError, match="fill-in-the-middle"):
            answer(made, Infill("a", "b"), WARM, limits=SHORT)
        assert len(answer(made, Raw("the world"), WARM, limits=SHORT, lookup=True).tokens) == 24


def test_sources_can_be_left_out_request_by_request(chat: Engine, cold: Engine) -> None:
    messages = Chat((SYSTEM, user(CODE)))
    expected = plain(cold, *messages.messages, limits=Limits(max_tokens=60)).tokens
    for lookup, draft in ((True, False), (False, True), (False, False), (True, True)):
        answered = answer(chat, messages, WARM, limits=Limits(max_tokens=60), lookup=lookup, draft=draft)
        assert answered.tokens == expected
        allowed = {name for name, on in (("lookup", lookup), ("draft", draft)) if on}
        assert set(answered.stats.sources) <= allowed
        assert (answered.stats.drafted > 0) == (lookup or draft)


def test_the_stream_tells_what_was_read_and_ends_with_done(chat: Engine) -> None:
    messages = list(chat.generate(Generate(7, Chat((user(CODE * 5),)), WARM, SHORT), Controls()))
    reading = [message for message in messages if isinstance(message, Prefilling)]
    assert [message.done for message in reading] == sorted(message.done for message in reading)
    assert reading[-1].done == reading[-1].total
    assert isinstance(messages[-1], Done)
    assert {message.id for message in messages} == {7}
    stats = messages[-1].stats
    assert stats.first_token_s is not None
    assert stats.context_used == len(chat.committed)
    assert stats.emitted == len(messages[-1].tokens) == 24


def test_forgetting_leaves_text_and_caches_as_they_are(chat: Engine, cold: Engine) -> None:
    messages = (SYSTEM, user(CODE))
    ask(chat, *messages)
    chat.forget()
    again = ask(chat, *messages)
    assert again.stats.prefilled_tokens == 0
    assert again.tokens == plain(cold, *messages).tokens


def test_measuring_width_noise_finds_none_in_fp32_and_leaves_the_conversation_usable(
    chat: Engine, cold: Engine
) -> None:
    messages = (SYSTEM, user(CODE))
    ask(chat, *messages)
    noise = chat.measure_width_noise()
    assert noise.identical_text_expected
    assert 0 <= noise.rms_difference <= noise.max_difference < 1e-3
    again = ask(chat, *messages)
    assert again.stats.reused_tokens == 0
    assert again.tokens == plain(cold, *messages).tokens


@pytest.mark.parametrize("lookup", [True, False], ids=["lookup", "draft"])
@pytest.mark.parametrize("ends", ["length", "stop"])
def test_each_emitted_token_is_told_once_with_the_source_that_the_counters_name(
    chat: Engine, ends: str, lookup: bool
) -> None:
    prompt = Chat((SYSTEM, Message("user", CODE)))
    limits = Limits(max_tokens=60)
    if ends == "stop":
        text = answer(chat, prompt, GREEDY, limits=limits).text
        latest = max(text.find(text[at : at + 3]) for at in range(len(text) - 2))
        limits = replace(limits, stop=(text[latest : latest + 3],))
    answered = answer(chat, prompt, GREEDY, limits=limits, lookup=lookup, draft=not lookup, gamma=5)
    assert answered.reason == ends
    accepted = {name: source.accepted for name, source in answered.stats.sources.items()}
    assert sum(accepted.values()) > 0
    assert answered.sources == Counter({**accepted, "target": answered.stats.emitted - answered.stats.accepted})


def test_the_index_knows_which_tokens_the_model_wrote_over_all_turns(chat: Engine) -> None:
    first = ask(chat, SYSTEM, user(CODE))
    then = ask(chat, SYSTEM, user(CODE), said(first), user("hello"))
    own = [token for token, written in zip(chat.committed, chat.lookup._written, strict=True) if written]
    assert tuple(own) == (*first.tokens, *then.tokens)


def test_a_chat_opened_again_is_indexed_as_when_it_was_written(chat: Engine, cold: Engine) -> None:
    """Its answers come back with their tokens; all but the last one of each, which may be the template's, are known."""
    first = ask(chat, SYSTEM, user(CODE))
    asked = (SYSTEM, user(CODE), said(first), user("hello"), said(first), user("again"))
    ask(cold, *asked, limits=Limits(1))
    own = [token for token, written in zip(cold.committed, cold.lookup._written, strict=True) if written]
    assert own[:-1] == [*first.tokens[:-1], *first.tokens[:-1]]


def test_answers_that_were_left_out_of_the_prompt_hide_none_that_it_holds(chat: Engine, cold: Engine) -> None:
    """What the first one said is asked about again, behind one that is still there."""
    kept = ask(chat, SYSTEM, user("hello"))
    words = "world of None"
    gone = Message("assistant", words, (*chat.target.vocabulary.tokenize(words), kept.tokens[-1]))
    asked = (SYSTEM, user(CODE * 8), gone, user("hello"), said(kept), user(words))
    answered = ask(cold, *asked, limits=Limits(1))
    assert len(answered.notices) == 1
    own = [token for token, written in zip(cold.committed, cold.lookup._written, strict=True) if written]
    assert own[:-1] == [*kept.tokens[:-1]]


def test_an_answer_that_goes_on_is_indexed_as_the_models_own(chat: Engine, cold: Engine) -> None:
    first = ask(chat, SYSTEM, user(CODE))
    more = ask(cold, SYSTEM, user(CODE), said(first), limits=Limits(1))
    own = [token for token, written in zip(cold.committed, cold.lookup._written, strict=True) if written]
    assert len(own) >= len(first.tokens) - 1 and tuple(own) == more.tokens


def test_an_answer_of_another_model_is_text_that_was_given(chat: Engine) -> None:
    ask(chat, SYSTEM, user(CODE), Message("assistant", "Hello there."), user("hello"), limits=Limits(1))
    assert sum(chat.lookup._written) == 1
