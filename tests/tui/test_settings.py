"""The settings form: every key of it, and that nothing changes before it is applied."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from textual.widgets import Input, Static, TextArea

from chatting import Gate, Talk, talking
from fake_engine import FakeEngine
from specchat import config
from specchat.setting_fields import FIELDS
from specchat.tui.screens.confirm import Confirm
from specchat.tui.screens.settings import SettingsForm
from specchat.tui.widgets.choice import Choice
from specchat.tui.widgets.setting_row import SettingRow
from specengine.protocol import Chat
from specengine.settings import Sampling


class Form:
    """The open form."""

    def __init__(self, talk: Talk) -> None:
        self.talk = talk

    @property
    def screen(self) -> SettingsForm:
        screen = self.talk.app.screen
        assert isinstance(screen, SettingsForm)
        return screen

    @property
    def news(self) -> str:
        return str(self.screen.query_one(".news", Static).render())

    def row(self, name: str) -> SettingRow:
        return next(row for row in self.screen.query(SettingRow) if row.field.name == name)

    def beside(self, name: str) -> str:
        return str(self.row(name).query_one(".said", Static).render()).splitlines()[0]

    async def fill(self, **texts: str) -> None:
        for name, text in texts.items():
            self.row(name).fill(text)
        await self.talk.pilot.pause()

    async def press(self, *keys: str) -> None:
        await self.talk.pilot.press(*keys)
        await self.talk.pilot.pause()


@asynccontextmanager
async def filling(
    engine: FakeEngine | None = None, size: tuple[int, int] = (110, 50), **changes: object
) -> AsyncGenerator[Form]:
    async with talking(engine or FakeEngine(), size=size, **changes) as talk:
        await talk.idle()
        await talk.pilot.press("f2")
        form = Form(talk)
        await talk.until(lambda: isinstance(talk.app.screen, SettingsForm))
        await talk.pilot.pause()
        yield form


def closed(talk: Talk) -> bool:
    return talk.app.screen is talk.screen


async def test_it_shows_what_is_set_with_an_explanation_and_bounds() -> None:
    async with filling(sampling=Sampling(temperature=0.2, seed=7), gamma=3, system="Be brief.") as form:
        shown = {row.field.name: row.text for row in form.screen.query(SettingRow)}
        assert (shown["temperature"], shown["seed"], shown["gamma"], shown["max_tokens"]) == ("0.2", "7", "3", "")
        assert (shown["spec"], shown["lookup"], shown["coupling"]) == ("auto", "on", "shared")
        assert shown["system"] == "Be brief."
        assert form.beside("temperature") == "0 to 100"
        for field in FIELDS:
            said = str(form.row(field.name).query_one(".said", Static).render()).splitlines()
            assert said == [part for part in (field.bounds, field.explanation) if part]


async def test_f2_applies_all_of_it_from_the_next_message_on() -> None:
    engine = FakeEngine()
    async with filling(engine) as form:
        await form.fill(temperature="0", top_k="40", max_tokens="50", spec="off", lookup="off", system="Two\nlines.")
        await form.press("f2")
        assert closed(form.talk)
        await form.talk.say("hi")
        await form.talk.idle()
        wanted = engine.requests[0]
        assert (wanted.sampling.temperature, wanted.sampling.top_k, wanted.limits.max_tokens) == (0.0, 40, 50)
        assert (wanted.speculation, wanted.lookup) == ("off", False)
        assert isinstance(wanted.prompt, Chat) and wanted.prompt.messages[0].content == "Two\nlines."
        assert "SPEC off" in form.talk.status
        assert len(engine.loads) == 1, "none of these needs the model loaded again"


async def test_enter_in_a_field_applies_too_and_escape_leaves_everything_as_it_was() -> None:
    engine = FakeEngine()
    async with filling(engine) as form:
        await form.fill(top_k="40")
        form.row("top_k").enter()
        await form.press("enter")
        assert closed(form.talk) and form.talk.screen.session.settings.sampling.top_k == 40
        await form.press("f2")
        await form.fill(top_k="9")
        await form.press("escape")
        assert closed(form.talk) and form.talk.screen.session.settings.sampling.top_k == 40


async def test_the_command_opens_it_too() -> None:
    async with talking(FakeEngine()) as talk:
        await talk.say("/settings")
        assert isinstance(talk.app.screen, SettingsForm)


async def test_speculation_and_gamma_take_effect_in_the_running_answer() -> None:
    gate = Gate()
    engine = FakeEngine().script("one ", "two", pace=gate)
    async with talking(engine) as talk:
        await talk.say("hi")
        gate.open()
        await talk.until(lambda: talk.answers == ["one "])
        await talk.pilot.press("f2")
        form = Form(talk)
        await talk.until(lambda: isinstance(talk.app.screen, SettingsForm))
        await form.fill(spec="on", gamma="5")
        await form.press("f2")
        assert [(adjust.speculation, adjust.gamma) for adjust in engine.adjusted] == [("on", 5)]
        gate.open(2)
        await talk.idle()


async def test_a_wrong_field_is_explained_beside_it_and_nothing_changes() -> None:
    async with filling() as form:
        before = form.talk.screen.session.settings
        await form.fill(top_k="40", temperature="200", seed="x")
        assert form.beside("temperature") == "temperature is 200.0; it must lie between 0 and 100."
        assert form.beside("seed") == "It must be a whole number."
        assert form.beside("top_k") == "0 or more; 0 keeps all"
        await form.press("f2")
        assert form.news == "Temperature: temperature is 200.0; it must lie between 0 and 100. Nothing was changed."
        assert form.row("temperature").query_one(Input).has_focus
        await form.press("f6")
        assert "Nothing was changed" in form.news
        await form.fill(temperature="0.5", seed="1")
        assert form.beside("temperature") == "0 to 100" and not form.row("seed").error
        await form.press("escape")
        assert form.talk.screen.session.settings == before


async def test_another_context_says_that_it_reloads_and_does_so_when_confirmed() -> None:
    engine = FakeEngine()
    async with filling(engine) as form:
        await form.fill(ctx="4096", top_k="9")
        for refusal in ("n", "escape"):
            await form.press("f2")
            assert isinstance(form.talk.app.screen, Confirm)
            await form.press(refusal)
            assert form.news.startswith("Nothing was changed")
        assert len(engine.loads) == 1 and form.talk.screen.session.settings.n_ctx is None
        await form.press("f2")
        await form.press("y")
        await form.talk.idle()
        assert closed(form.talk)
        assert [load.n_ctx for load in engine.loads] == [None, 4096]
        assert form.talk.screen.session.settings.sampling.top_k == 9
        await form.talk.say("/model other-3b")
        await form.talk.idle()
        assert engine.loads[-1].n_ctx == 4096, "the chat's context holds for its next model too"


async def test_without_a_model_another_context_asks_nothing() -> None:
    engine = FakeEngine()
    async with filling(engine, load=None) as form:
        await form.fill(ctx="4096")
        await form.press("f2")
        assert closed(form.talk) and engine.loads == []
        await form.talk.say("/model mine")
        await form.talk.idle()
        assert engine.loads[0].n_ctx == 4096


async def test_reset_fills_in_the_defaults_of_a_new_chat() -> None:
    async with filling(sampling=Sampling(temperature=0.2, seed=7), n_ctx=2048, system="Be brief.") as form:
        await form.fill(temperature="1.5", ctx="", spec="off", system="Be long.")
        await form.press("f2")
        await form.press("y")
        await form.talk.idle()
        await form.press("f2", "f5")
        shown = {row.field.name: row.text for row in form.screen.query(SettingRow)}
        assert (shown["temperature"], shown["ctx"], shown["spec"], shown["system"]) == (
            "0.2",
            "2048",
            "auto",
            "Be brief.",
        )
        assert "apply them to have them here" in form.news


async def test_save_as_default_writes_config_toml_and_applies_nothing(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("# mine\nmodel = 'x'\ntop_p = 0.5\n")
    async with filling(config_file=file) as form:
        before = form.talk.screen.session.settings
        await form.fill(temperature="0.3", ctx="4096", system="Be brief.")
        await form.press("f6")
        assert "New chats start like this" in form.news
        saved = config.from_file(file)
        assert (saved.model, saved.temperature, saved.ctx, saved.system) == ("x", 0.3, 4096, "Be brief.")
        assert (saved.top_p, saved.seed) == (None, None), "the form says 0.8, the built-in default"
        assert file.read_text().startswith("# mine\n")
        await form.fill(temperature="1", seed="42")
        await form.press("f6", "f5")
        assert config.from_file(file).seed == 42 and form.row("temperature").text == "1"
        await form.press("escape")
        assert form.talk.screen.session.settings == before


async def test_where_nothing_can_be_saved_the_form_says_so(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("wrong = 1\n")
    async with filling(config_file=file) as form:
        await form.fill(temperature="0.3")
        await form.press("f6")
        assert "there is no setting called wrong" in form.news
        assert file.read_text() == "wrong = 1\n"


async def test_the_arrows_and_tab_go_from_field_to_field() -> None:
    async with filling() as form:
        assert form.row("temperature").query_one(Input).has_focus
        await form.press("down")
        assert form.row("top_k").query_one(Input).has_focus
        await form.press("up", "up")
        assert form.row("max_tokens").query_one(Input).has_focus
        form.row("seed").enter()
        await form.press("tab")
        assert form.row("coupling").query_one(Choice).has_focus
        spec = form.row("spec")
        spec.enter()
        for key, value in (("right", "on"), ("space", "off"), ("right", "auto"), ("left", "off")):
            await form.press(key)
            assert spec.text == value
        await form.talk.pilot.click(spec.query_one(Choice))
        assert spec.text == "auto"
        form.row("system").enter()
        await form.press("a", "enter", "b")
        assert form.row("system").query_one(TextArea).text == "a\nb"


async def test_it_can_be_used_on_60_columns_and_16_rows() -> None:
    async with filling(size=(60, 16)) as form:
        form.row("system").enter()
        await form.talk.until(lambda: form.row("system").query_one(TextArea).region.bottom <= 15)
        for part in (".news", "KeyLine"):
            assert form.screen.query_one(part).region.bottom <= 16
        row = form.row("temperature")
        row.enter()
        await form.talk.until(lambda: 0 < row.region.y < 14)
        assert row.query_one(Input).size.width >= 10 and row.query_one(".said").size.width >= 20
