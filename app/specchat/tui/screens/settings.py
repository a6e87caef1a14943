"""How this chat's answers are made, as a form. Nothing changes before it is applied, and nothing where a field is
wrong."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from specchat.setting_fields import Chosen, FieldErrors, defaults_to_save, fields_for, read, texts
from specchat.tui.screens.confirm import Confirm
from specchat.tui.widgets.key_line import KeyLine
from specchat.tui.widgets.setting_row import SettingRow
from specengine.errors import EngineError


class _Fields(VerticalScroll, inherit_bindings=False):
    """Leaves the arrows to the form: they go from field to field."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup", "page_up", show=False, id="settings.page_up"),
        Binding("pagedown", "page_down", show=False, id="settings.page_down"),
    ]


class SettingsForm(ModalScreen[Chosen | None]):
    """Ends with what was chosen, or None where everything stays as it was."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f2", "apply", "Apply to this chat", priority=True, id="settings.apply"),
        Binding("f5", "reset", "Fill in the defaults", priority=True, id="settings.defaults"),
        Binding("f6", "save", "Save as the defaults of new chats", priority=True, id="settings.save"),
        Binding("escape,ctrl+c", "dismiss(None)", "Close and leave all as it was", id="settings.close"),
        Binding("up", "app.focus_previous", show=False, id="settings.up"),
        Binding("down", "app.focus_next", show=False, id="settings.down"),
    ]

    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-wide")]  # noqa: RUF012 - as Screen declares it

    def __init__(
        self,
        chosen: Chosen,
        defaults: Chosen,
        loaded: bool,
        longest: int | None,
        save: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """
        Args:
            defaults: what a new chat starts with.
            loaded: a model is loaded, so that another context means loading it again.
            longest: context that the loaded model was trained for, if that is known.
            save: writes defaults; raises EngineError.
        """
        super().__init__()
        self._chosen, self._defaults = chosen, defaults
        self._loaded, self._longest, self._save = loaded, longest, save
        self._complained = False

    def compose(self) -> ComposeResult:
        shown = texts(self._chosen)
        with Vertical() as panel:
            panel.border_title = "Settings of this chat"
            with _Fields(can_focus=False):
                for field in fields_for(self._longest):
                    yield SettingRow(field, shown[field.name])
            yield Static(classes="news")
            yield KeyLine()

    def on_mount(self) -> None:
        self._row("temperature").enter()

    # What keys do.

    @on(Input.Submitted)
    def action_apply(self) -> None:
        chosen = self._read()
        if chosen is None:
            return
        if self._loaded and chosen.settings.n_ctx != self._chosen.settings.n_ctx:
            question = "Another context needs the model loaded again. The chat stays. Load it now?"
            self.app.push_screen(Confirm(question), partial(self._reload, chosen))
        else:
            self.dismiss(chosen)

    def action_reset(self) -> None:
        for name, text in texts(self._defaults).items():
            self._row(name).fill(text)
        self._say("These are the defaults of a new chat; apply them to have them here.")

    def action_save(self) -> None:
        chosen = self._read()
        if chosen is None:
            return
        try:
            self._save(defaults_to_save(chosen, seed=bool(self._changed().get("seed", "").strip())))
        except EngineError as error:
            self._say(str(error))
            return
        self._defaults = chosen
        self._say("New chats start like this from the next start on; apply it to have it here too.")

    # What comes of it.

    def _reload(self, chosen: Chosen, sure: bool | None) -> None:
        if sure:
            self.dismiss(chosen)
        else:
            self._say("Nothing was changed: another context needs the model loaded again.")

    def _read(self) -> Chosen | None:
        """What the form says; None, and the first wrong field in focus, where it can't be used."""
        try:
            return read(self._changed(), self._chosen, self._longest)
        except FieldErrors as error:
            wrong = next(row for row in self._rows if row.field.name in error.errors)
            wrong.enter()
            self._say(f"{wrong.field.label}: {error.errors[wrong.field.name]} Nothing was changed.")
            self._complained = True
            return None

    @on(SettingRow.Changed)
    def _check(self, event: SettingRow.Changed) -> None:
        name = event.row.field.name
        try:
            read({name: event.row.text}, self._chosen, self._longest)
        except FieldErrors as error:
            event.row.complain(error.errors[name])
        else:
            event.row.complain("")
        if self._complained:
            self._say("")

    def _changed(self) -> dict[str, str]:
        """The fields whose text is another than at the start: what is shown of a number may be rounded."""
        before = texts(self._chosen)
        return {row.field.name: row.text for row in self._rows if row.text != before[row.field.name]}

    def _say(self, news: str) -> None:
        self._complained = False
        self.query_one(".news", Static).update(Content(news))

    def _row(self, name: str) -> SettingRow:
        return next(row for row in self._rows if row.field.name == name)

    @property
    def _rows(self) -> list[SettingRow]:
        return list(self.query(SettingRow))
