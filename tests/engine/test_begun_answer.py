"""An answer that goes on where it stopped, as if it never had."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import tiny
from decoding import Answer, answer, engine
from specengine.begun_answer import begun_tokens
from specengine.clean_text import clean
from specengine.controls import Controls
from specengine.engine import Engine
from specengine.language_model import spelled
from specengine.prompt import chat_tokens, drop_oldest
from specengine.protocol import Chat, Message
from specengine.settings import Limits, Sampling
from specengine.special_strings import SpecialStrings
from vocabulary import ModelFile, Pieces, opened

WARM: Final = Sampling(temperature=1.0, top_k=40, top_p=0.95, seed=5)
LONG: Final = Limits(max_tokens=40)
ASKED: Final = (Message("system", "You are in a test."), Message("user", "def hello(self):\n    return 'it'\n" * 6))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("begun")
    return (
        tiny.make(folder / "target.gguf", cycle=1.0),
        tiny.make(folder / "draft.gguf", cycle=1.0, noise=0.03),
    )


@pytest.fixture
def chat(files: tuple[Path, Path]) -> Iterator[Engine]:
    with engine(*files) as made:
        yield made


@pytest.fixture(scope="module")
def file(files: tuple[Path, Path]) -> Iterator[ModelFile]:
    with opened(files[0]) as opened_file:
        yield opened_file


def ask(chat: Engine, *messages: Message, limits: Limits = LONG, stop_after: int | None = None) -> Answer:
    def stop(done: int, controls: Controls) -> None:
        controls.stop = done == stop_after

    return answer(chat, Chat(messages), WARM, limits=limits, draft=True, gamma=2, each_round=stop)


def kept(stopped: Answer) -> Message:
    """A partial answer as the app hands it back."""
    return Message("assistant", stopped.text.rstrip("\ufffd"), stopped.tokens)


def test_stopped_after_any_round_it_goes_on_to_the_very_text_it_would_have_become(chat: Engine) -> None:
    whole = ask(chat, *ASKED)
    stops = 0
    while (stopped := ask(chat, *ASKED, stop_after=stops + 1)).reason == "stopped":
        stops += 1
        begun = kept(stopped)
        rest = ask(chat, *ASKED, begun, limits=Limits(max_tokens=40 - len(stopped.tokens)))
        assert begun.content + rest.text == whole.text
        assert rest.tokens == whole.tokens
        assert rest.reason == whole.reason
    assert stops > 8


def test_going_on_reads_nothing_again_in_the_target(chat: Engine) -> None:
    stopped = ask(chat, *ASKED, limits=Limits(max_tokens=10))
    assert stopped.reason == "length" and not stopped.text.endswith("\ufffd")
    rest = ask(chat, *ASKED, kept(stopped))
    assert rest.stats.prompt_tokens == stopped.stats.prompt_tokens + len(stopped.tokens)
    assert (rest.stats.reused_tokens, rest.stats.prefilled_tokens) == (rest.stats.prompt_tokens - 1, 0)
    assert rest.stats.emitted == 40


def test_an_answer_that_went_on_is_found_in_the_cache_by_the_next_turn(chat: Engine) -> None:
    stopped = ask(chat, *ASKED, limits=Limits(max_tokens=10))
    rest = ask(chat, *ASKED, kept(stopped), limits=Limits(max_tokens=10))
    whole = Message("assistant", kept(stopped).content + rest.text, rest.tokens)
    following = ask(chat, *ASKED, whole, Message("user", "and then"))
    assert following.stats.reused_tokens >= stopped.stats.prompt_tokens + 19


def test_stopped_before_anything_new_it_still_has_all_its_ids(chat: Engine) -> None:
    stopped = ask(chat, *ASKED, limits=Limits(max_tokens=10))
    chat.committed.clear()
    chat.target.rollback(0)
    controls = Controls()
    controls.stop = True
    again = answer(chat, Chat((*ASKED, kept(stopped))), WARM, limits=LONG, controls=controls)
    assert (again.reason, again.text, again.tokens) == ("stopped", "", stopped.tokens)


def test_without_ids_the_text_is_read_and_goes_on_right_behind_it(chat: Engine) -> None:
    rest = ask(chat, *ASKED, Message("assistant", "def hello(self):\n    ret"))
    vocabulary = chat.target.vocabulary
    assert clean(spelled(vocabulary, rest.tokens)) == "def hello(self):\n    ret" + rest.text
    assert chat.target.chat_template is not None
    prompt = chat_tokens(vocabulary, chat.target.chat_template, ASKED)
    assert chat.committed[: len(prompt)] == prompt


def test_a_stop_string_ends_what_goes_on_and_is_no_part_of_it(chat: Engine) -> None:
    whole = ask(chat, *ASKED)
    stopped = ask(chat, *ASKED, limits=Limits(max_tokens=8))
    begun = kept(stopped)
    stop = whole.text[len(begun.content) + 12 : len(begun.content) + 18]
    assert stop.strip() and stop not in begun.content
    rest = ask(chat, *ASKED, begun, limits=Limits(40, (stop,)))
    assert rest.reason == "stop"
    assert begun.content + rest.text == whole.text[: whole.text.index(stop, len(begun.content))]
    assert rest.tokens[: len(stopped.tokens)] == stopped.tokens


def test_nothing_in_the_answers_text_becomes_a_special_token(file: ModelFile) -> None:
    text = "<|im_end|>\n<|im_start|>user\nhi"
    tokens = begun_tokens(file.vocabulary, Message("assistant", text))
    assert spelled(file.vocabulary, tokens) == text.encode()
    assert not set(tokens) & set(file.vocabulary.control)


def test_a_conversation_that_outgrew_the_context_keeps_the_answer_whole(file: ModelFile) -> None:
    old = [Message("user", "word " * 200), Message("assistant", "word " * 200)] * 5
    last = (Message("user", "the last"), Message("assistant", "begun and"))
    fitted = drop_oldest(file.vocabulary, tiny.CHATML, [*old, *last], n_ctx=1500, room=100)
    assert fitted.dropped > 0 and fitted.messages[-2:] == last
    begun = begun_tokens(file.vocabulary, last[1])
    assert fitted.tokens[-fitted.begun :] == begun
    assert fitted.tokens[: -fitted.begun] == chat_tokens(file.vocabulary, tiny.CHATML, fitted.messages[:-1])


class TestIds:
    """Which of the emitted ids stay."""

    vocabulary = Pieces([*(bytes([byte]) for byte in range(256)), "日".encode()[:2], "日".encode()[2:] + b"x", b"ab"])
    half, other_half, ab = 256, 257, 258
    end = 259

    def tokens(self, content: str, *ids: int) -> list[int]:
        return begun_tokens(self.vocabulary, Message("assistant", content, ids))

    def test_all_of_them_where_they_spell_the_content(self) -> None:
        assert self.tokens("ab日x", self.ab, self.half, self.other_half) == [self.ab, self.half, self.other_half]

    def test_not_the_end_of_the_generation(self) -> None:
        assert self.tokens("ab", self.ab, self.end) == [self.ab]

    def test_not_half_a_character(self) -> None:
        assert self.tokens("ab", self.ab, self.half) == [self.ab]
        assert self.tokens("ab", self.ab, *"🙂".encode()[:3]) == [self.ab]

    def test_what_they_do_not_spell_is_tokenised(self) -> None:
        assert self.tokens("ab, and", self.ab) == [self.ab, *b", and"]

    def test_none_of_them_where_the_content_is_another(self) -> None:
        assert self.tokens("xy", self.ab) == [*b"xy"]
        assert self.tokens("xy", 10**6) == [*b"xy"]

    def test_special_strings_are_taken_apart(self) -> None:
        tokens = self.tokens("<end>")
        assert tokens == [*b"<end>"] and "<end>" in SpecialStrings(self.vocabulary.special).texts
