"""Every key and command of the chat screen, on a scripted engine."""

import msgspec
import pytest
from textual.content import Content

from chatting import LOAD, Gate, talking
from fake_engine import FakeEngine, Script
from specchat.tui.screens.help import Help
from specengine.protocol import Chat, Load

LOAD_ALONE = Load(model=LOAD.model, name=LOAD.name)


async def test_enter_sends_and_the_answer_streams_below() -> None:
    async with talking(FakeEngine().script("Hel", "lo ", "there")) as talk:
        talk.prompt.insert("hi")
        await talk.pilot.press("enter")
        await talk.idle()
        assert talk.questions == ["hi"]
        assert talk.answers == ["Hello there"]
        assert talk.prompt.text == ""
        assert "3 tokens" in talk.footers[0]


@pytest.mark.parametrize("key", ["ctrl+j", "shift+enter", "alt+enter"])
async def test_a_new_line_is_one_key_away(key: str) -> None:
    async with talking(FakeEngine()) as talk:
        talk.prompt.insert("a")
        await talk.pilot.press(key)
        talk.prompt.insert("b")
        assert talk.prompt.text == "a\nb"


async def test_ctrl_t_toggles_speculation_in_the_middle_of_an_answer() -> None:
    gate = Gate()
    engine = FakeEngine().script("one ", "two", pace=gate)
    async with talking(engine) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.pilot.press("ctrl+t")
        assert "SPEC off" in talk.status
        await talk.pilot.press("ctrl+t")
        assert "SPEC auto" in talk.status
        assert [adjust.speculation for adjust in engine.adjusted] == ["off", "auto"]
        gate.open(2)
        await talk.idle()
        assert talk.answers == ["one two"]


async def test_the_next_answer_takes_the_toggled_setting() -> None:
    engine = FakeEngine()
    async with talking(engine, speculation="on", gamma=3, lookup=False) as talk:
        await talk.pilot.press("ctrl+t")
        await talk.say("hi")
        await talk.idle()
        wanted = engine.requests[0]
        assert (wanted.speculation, wanted.gamma, wanted.lookup) == ("off", 3, False)


async def test_escape_stops_at_once_and_keeps_the_partial_answer_marked() -> None:
    gate = Gate()
    engine = FakeEngine().script("one ", "two ", "three", pace=gate)
    async with talking(engine) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.pilot.press("escape")
        gate.open()
        await talk.idle()
        assert talk.answers == ["one "]
        assert talk.footers[0].endswith("stopped")
        await talk.say("go on")
        await talk.idle()
        prompt = engine.requests[1].prompt
        assert isinstance(prompt, Chat)
        assert [(m.content, m.tokens) for m in prompt.messages] == [("hi", None), ("one ", (0,)), ("go on", None)]


async def test_escape_before_the_first_token_brings_the_prompt_back() -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one", prefill=(10, 6000), pace=gate)) as talk:
        await talk.say("hi")
        await talk.until(lambda: "reading 10/6,000 tokens" in talk.status)
        await talk.pilot.press("escape")
        gate.open()
        await talk.idle()
        assert (talk.questions, talk.answers, talk.prompt.text) == ([], [], "hi")
        assert talk.screen.session.conversation.turns == ()


async def test_ctrl_c_clears_then_stops_then_arms_then_quits() -> None:
    gate = Gate()
    async with talking(FakeEngine().script("one ", "two", pace=gate)) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        talk.prompt.insert("draft")
        await talk.pilot.press("ctrl+c")
        assert talk.prompt.text == "" and talk.screen.session.answering
        await talk.pilot.press("ctrl+c")
        gate.open()
        await talk.idle()
        assert talk.footers[0].endswith("stopped")
        await talk.pilot.press("ctrl+c")
        assert talk.prompt.border_subtitle == "press ctrl+c again to quit"
        await talk.pilot.press("ctrl+c")
        assert talk.app.return_code == 0 and talk.app._exit


async def test_ctrl_c_copies_a_selection_first() -> None:
    async with talking(FakeEngine()) as talk:
        talk.prompt.insert("some [/text]")
        talk.prompt.select_all()
        await talk.pilot.press("ctrl+c")
        assert talk.app.clipboard == "some [/text]"
        assert talk.prompt.text == "some [/text]"


async def test_typing_disarms_quitting() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.pilot.press("ctrl+c", "x", "ctrl+c", "ctrl+c")
        assert not talk.app._exit


async def test_ctrl_d_deletes_in_text_and_quits_on_an_empty_prompt() -> None:
    async with talking(FakeEngine()) as talk:
        talk.prompt.insert("ab")
        await talk.pilot.press("home", "ctrl+d")
        assert talk.prompt.text == "b"
        await talk.pilot.press("ctrl+d", "ctrl+d")
        assert talk.prompt.border_subtitle == "press ctrl+d again to quit" and not talk.app._exit
        await talk.pilot.press("ctrl+d")
        assert talk.app._exit


async def test_ctrl_q_quits_at_once_also_while_an_answer_streams() -> None:
    engine = FakeEngine().script("one", pace=Gate())
    async with talking(engine) as talk:
        await talk.say("hi")
        await talk.pilot.press("ctrl+q")
        assert talk.app._exit
    assert engine.closed


@pytest.mark.parametrize("how", ["ctrl+n", "/new", "/clear"])
async def test_a_new_chat_forgets_turns_and_keeps_the_system_prompt(how: str) -> None:
    engine = FakeEngine()
    async with talking(engine, system="Be brief.") as talk:
        await talk.say("one")
        await talk.idle()
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        await talk.until(lambda: not talk.questions)
        await talk.say("two")
        await talk.idle()
        prompt = engine.requests[1].prompt
        assert isinstance(prompt, Chat)
        assert [message.content for message in prompt.messages] == ["Be brief.", "two"]


async def test_a_new_chat_in_the_middle_of_an_answer_leaves_nothing_of_it() -> None:
    gate = Gate()
    engine = FakeEngine().script("old ", "old", pace=gate)
    async with talking(engine) as talk:
        await talk.say("one")
        gate.open()
        await talk.until(lambda: talk.answers == ["old "])
        await talk.pilot.press("ctrl+n")
        await talk.until(lambda: not talk.questions)
        gate.open()
        await talk.say("two")
        await talk.idle()
        assert (talk.questions, talk.answers) == (["two"], ["Hello"])
        assert len(talk.screen.session.conversation.turns) == 1


@pytest.mark.parametrize("how", ["f1", "/help", "/?"])
async def test_the_help_lists_keys_and_commands(how: str) -> None:
    async with talking(FakeEngine()) as talk:
        await (talk.say(how) if how.startswith("/") else talk.pilot.press(how))
        await talk.until(lambda: isinstance(talk.app.screen, Help))
        await talk.pilot.pause()
        shown = [str(static.render()) for static in talk.app.screen.query(".key")]
        for wanted in ("ctrl+t", "ctrl+q", "ctrl+p", "/spec [on|off|auto]", "/stats"):
            assert wanted in shown
        await talk.pilot.press("escape")
        assert talk.app.screen is talk.screen


async def test_spec_and_gamma_are_set_by_command() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        for command, speculation, gamma in (
            ("/spec on", "on", None),
            ("/gamma 5", "on", 5),
            ("/spec off", "off", 5),
            ("/gamma auto", "off", None),
        ):
            await talk.say(command)
            assert (engine.adjusted[-1].speculation, engine.adjusted[-1].gamma) == (speculation, gamma)
        assert "SPEC off" in talk.status
        assert engine.requests == []


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("/spec maybe", "/spec takes one of auto, on, off."),
        ("/gamma -1", "/gamma takes a number of tokens, 0 to 127, or auto."),
        ("/gamma 99999", "/gamma takes a number of tokens, 0 to 127, or auto."),
        ("/stats now", "This command takes nothing after its name."),
        ("/model nonsense", "There is no model called 'nonsense'; ctrl+o shows them all."),
        ("/wrong", "There is no command /wrong; /help shows them all."),
    ],
)
async def test_a_wrong_command_is_one_sentence_and_changes_nothing(command: str, sentence: str) -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.say(command)
        assert talk.notes == [sentence]
        assert engine.requests == [] and engine.adjusted == [] and len(engine.loads) == 1


async def test_bare_commands_say_what_is_set_and_what_else_there_is() -> None:
    engine = FakeEngine()
    async with talking(engine, gamma=4) as talk:
        await talk.idle()
        await talk.say("/spec")
        assert talk.notes[-1].splitlines() == [
            "Speculation is auto: drafts where they pay.",
            "γ is fixed at 4.",
            "Drafts come from prompt lookup and the draft model tiny-100m.",
            "/spec on: drafts even where they don't pay; /spec off: no drafts",
            "/gamma N: drafts of N tokens; /gamma auto: the engine's choice",
        ]
        await talk.say("/gamma")
        assert talk.notes[-1] == talk.notes[-2]
        await talk.say("/draft")
        assert talk.notes[-1].startswith(
            "The draft model is tiny-100m; speculation uses it where it pays. Both run on CPU, 2 threads.\n/draft NAME"
        )
        assert engine.adjusted == [] and len(engine.loads) == 1


async def test_a_bare_draft_command_says_why_there_is_none() -> None:
    async with talking(FakeEngine(draft_refused="Its vocabulary differs at token 3."), load=LOAD_ALONE) as talk:
        await talk.idle()
        await talk.say("/draft")
        assert talk.notes[-1].startswith("There is no draft model: Its vocabulary differs at token 3.\n/draft NAME")


async def test_a_model_that_drafts_for_itself_is_named_so() -> None:
    async with talking(FakeEngine(), load=msgspec.structs.replace(LOAD_ALONE, self_draft=True)) as talk:
        await talk.until(lambda: "+ self" in talk.status)
        await talk.say("/draft")
        assert "drafts for itself, with some of its layers left out" in talk.notes[-1]


async def test_stats_explain_the_last_answer() -> None:
    async with talking(FakeEngine().script(*"abcdefghij")) as talk:
        await talk.say("/stats")
        await talk.say("hi")
        await talk.idle()
        await talk.say("/stats")
        assert talk.notes[0].startswith("No answer yet")
        assert "10 in 5 target passes" in talk.notes[1]


async def test_while_an_answer_is_written_stats_are_those_of_the_one_before_it() -> None:
    gate = Gate()
    engine = FakeEngine().script(*"abcdefghij", pace=gate).script(*"abcdef", pace=gate)
    async with talking(engine) as talk:
        await talk.say("hi")
        await talk.say("/stats")
        assert talk.notes == ["The first answer is being written; its figures come with its end."]
        gate.open(10)
        await talk.idle()
        await talk.pilot.press("f5")
        gate.open(2)
        await talk.until(lambda: talk.answers == ["ab"])
        await talk.say("/stats")
        assert talk.notes[-2] == "An answer is being written; these are the figures of the one before it."
        assert "10 in 5 target passes" in talk.notes[-1]
        gate.open(10)


async def test_errors_name_the_key_that_the_user_has_for_what_a_command_shows() -> None:
    async with talking(FakeEngine(), keymap={"chat.models": "f9"}) as talk:
        await talk.say("/model nonsense")
        assert talk.notes == ["There is no model called 'nonsense'; f9 shows them all."]


async def test_the_system_prompt_is_shown_set_and_dropped() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.say("/system Be [brief].")
        await talk.say("hi")
        await talk.idle()
        await talk.say("/system")
        await talk.say("/system none")
        prompt = engine.requests[0].prompt
        assert isinstance(prompt, Chat) and prompt.messages[0].content == "Be [brief]."
        assert talk.notes == ["System prompt: Be [brief]."] * 2 + ["There is no system prompt."]


async def test_model_and_draft_load_again() -> None:
    engine = FakeEngine()
    async with talking(engine) as talk:
        await talk.say("/model other-3b")
        await talk.until(lambda: "other-3b + tiny-100m" in talk.status)
        await talk.say("/draft none")
        await talk.until(lambda: "other-3b   " in talk.status)
        assert [load.name for load in engine.loads] == ["tiny-1b", "other-3b", "other-3b"]


@pytest.mark.parametrize("command", ["/quit", "exit", ":q", "/bye"])
async def test_quitting_by_word(command: str) -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say(command)
        assert talk.app._exit


async def test_the_palette_offers_every_command() -> None:
    async with talking(FakeEngine()) as talk:
        commands = talk.app.get_system_commands(talk.screen)
        offered = {Content.from_markup(command.title).plain: command for command in commands}
        offered["/spec [on|off|auto]"].callback()
        assert talk.prompt.text == "/spec "
        offered["/stats"].callback()
        await talk.pilot.pause()
        assert talk.notes[0].startswith("No answer yet")
        await talk.pilot.press("ctrl+p")
        await talk.until(lambda: talk.app.screen is not talk.screen)


async def test_a_prompt_from_the_command_line_is_sent_first() -> None:
    engine = FakeEngine()
    async with talking(engine, prompt="hi there") as talk:
        await talk.idle()
        assert (talk.questions, talk.answers) == (["hi there"], ["Hello"])
        await talk.pilot.press("up")
        assert talk.prompt.text == "hi there"


async def test_page_keys_scroll_the_transcript_and_typing_goes_on() -> None:
    async with talking(FakeEngine().script("line\n\n" * 200), size=(60, 16)) as talk:
        await talk.say("hi")
        await talk.idle()
        bottom = talk.transcript.scroll_y
        await talk.pilot.press("pageup", "pageup", "x")
        assert talk.transcript.scroll_y < bottom
        assert talk.prompt.text == "x"
        await talk.pilot.press("pagedown", "pagedown")
        assert talk.transcript.following
        await talk.pilot.press("ctrl+home")
        await talk.until(lambda: talk.transcript.scroll_y == 0)
        await talk.pilot.press("ctrl+end")
        await talk.until(lambda: talk.transcript.scroll_y == talk.transcript.max_scroll_y)


async def test_while_loading_one_can_type_and_send_and_is_told_that_it_waits() -> None:
    gate = Gate()
    engine = FakeEngine(load_steps=(0.25, 0.5), load_pace=gate)
    async with talking(engine) as talk:
        await talk.until(lambda: "loading the model 25%" in talk.status)
        await talk.say("early")
        question = talk.screen.query_one("QuestionView")
        assert str(question.render()) == "early\nqueued"
        assert engine.requests == []
        gate.open(2)
        await talk.idle()
        assert talk.answers == ["Hello"]
        assert str(question.render()) == "early"


async def test_escape_takes_a_queued_prompt_back() -> None:
    gate = Gate()
    async with talking(FakeEngine(load_steps=(0.5,), load_pace=gate)) as talk:
        await talk.say("early")
        await talk.pilot.press("escape")
        await talk.pilot.pause()
        assert (talk.prompt.text, talk.questions) == ("early", [])
        gate.open()
        await talk.idle()
        assert talk.answers == []


async def test_prompts_sent_during_an_answer_are_answered_in_order() -> None:
    gate = Gate()
    engine = FakeEngine()
    engine.scripts.extend([Script(("first",), pace=gate), Script(("second",))])
    async with talking(engine) as talk:
        await talk.say("one")
        await talk.say("two")
        gate.open()
        await talk.idle()
        kinds = [type(item).__name__ for item in talk.transcript.items]
        assert kinds == ["Question", "Stretch", "Foot"] * 2
        assert (talk.questions, talk.answers) == (["one", "two"], ["first", "second"])


async def test_a_load_that_fails_is_one_sentence_and_the_chat_stays_usable() -> None:
    engine = FakeEngine(load_error="tiny-1b.gguf is cut short; fetch it again.")
    async with talking(engine) as talk:
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["tiny-1b.gguf is cut short; fetch it again."]
        engine.load_error = None
        await talk.say("/model other-3b")
        await talk.until(lambda: "other-3b" in talk.status)


async def test_a_refused_draft_is_said_once() -> None:
    async with talking(FakeEngine(draft_refused="The draft's vocabulary differs at token 3.")) as talk:
        await talk.until(lambda: talk.notes)
        assert talk.notes == ["The draft's vocabulary differs at token 3."]


async def test_a_crash_is_one_sentence_the_partial_answer_stays_and_the_next_message_works() -> None:
    engine = FakeEngine().script("one ", "two ", "three", crash_after=2).script("fine")
    async with talking(engine) as talk:
        await talk.say("hi")
        await talk.idle()
        assert talk.answers == ["one two "]
        assert talk.footers[0].endswith("broken off")
        assert "The engine ended in the middle of its work" in talk.notes[0]
        await talk.say("again")
        await talk.idle()
        assert talk.answers == ["one two ", "fine"]
        prompt = engine.requests[1].prompt
        assert isinstance(prompt, Chat)
        assert [message.content for message in prompt.messages] == ["hi", "one two ", "again"]


async def test_what_happens_while_prompts_wait_is_told_above_them() -> None:
    gate, later = Gate(), Gate()
    engine = FakeEngine().script("one ", "two", crash_after=1, pace=gate).script("fine", pace=later)
    async with talking(engine) as talk:
        await talk.say("first")
        await talk.say("second")
        await talk.say("third")
        await talk.say("/nonsense")
        await talk.say("/system Be kind.")
        gate.open(2)
        await talk.until(lambda: len(talk.notes) == 3)
        unknown, system, crash = talk.notes
        assert "middle of its work" in crash
        later.open()
        await talk.idle()
        assert talk.column == ["> first", "one ", unknown, system, crash, "> second", "fine", "> third", "Hello"]


async def test_a_refused_prompt_is_one_sentence_and_the_next_one_does_not_carry_it() -> None:
    engine = FakeEngine().script(refuse="The prompt has 9,000 tokens; the context holds 8,192.").script("fine")
    async with talking(engine) as talk:
        await talk.say("too long")
        await talk.idle()
        assert talk.notes == ["The prompt has 9,000 tokens; the context holds 8,192."]
        await talk.say("short")
        await talk.idle()
        prompt = engine.requests[1].prompt
        assert isinstance(prompt, Chat)
        assert [message.content for message in prompt.messages] == ["short"]


async def test_notices_are_dim_lines_above_the_answer_they_concern() -> None:
    async with talking(FakeEngine().script("ok", notices=("2 turns were dropped.",))) as talk:
        await talk.say("hi")
        await talk.idle()
        assert talk.notes == ["2 turns were dropped."] and talk.screen.query_one("NoteView").has_class("-info")
        assert [type(item).__name__ for item in talk.transcript.items] == ["Question", "Note", "Stretch", "Foot"]


async def test_user_and_model_text_is_never_markup() -> None:
    nasty = "[/x] [bold]not bold[/] [@click=app.quit]x[/]"
    engine = FakeEngine().script(nasty, notices=(nasty,)).script(refuse=nasty)
    async with talking(engine) as talk:
        await talk.say(nasty)
        await talk.say("/" + "x" * 5 + nasty)
        await talk.say(nasty)
        await talk.idle()
        assert talk.questions[0] == nasty
        assert str(talk.screen.query("QuestionView").first().render()) == nasty
        assert "[bold]not bold[/]" in str(talk.screen.query("NoteView").first().render())


async def test_everything_important_shows_on_60_columns_and_16_rows() -> None:
    async with talking(FakeEngine().script("ok"), size=(60, 16)) as talk:
        await talk.say("hi")
        await talk.idle()
        assert "tok/s" in talk.status and "SPEC auto" in talk.status and len(talk.status) <= 60
        assert talk.prompt.region.bottom <= 16 and talk.transcript.size.height >= 8
        talk.prompt.insert("\n" * 40)
        await talk.pilot.pause()
        assert talk.prompt.size.height <= 10 and talk.transcript.size.height >= 1
