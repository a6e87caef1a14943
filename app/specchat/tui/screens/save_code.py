"""Asks under which name a block of code is to be saved."""

from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from specchat.saving import save, suggested_name
from specchat.tui.widgets.line import Line
from specengine.errors import EngineError


class SaveCode(ModalScreen[Path | None]):
    """Ends with the file's path, or with None where nothing was saved."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss", "Save nothing", id="save.cancel"),
    ]

    def __init__(self, code: str, language: str) -> None:
        super().__init__()
        self._code = code
        self._language = language
        self._warned = ""
        """The name of an existing file that the user was told of."""

    def compose(self) -> ComposeResult:
        with Vertical():
            lines = self._code.count("\n")
            yield Static(Content(f"Save {lines:,} line{'s' * (lines != 1)} as"))
            yield Line(suggested_name(self._language, Path.cwd()), select_on_focus=False)
            yield Static(classes="news")
            yield Static(Content(f"enter saves it in {Path.cwd()} · esc goes back"), classes="last")

    @on(Input.Changed)
    def _changed(self) -> None:
        self._warned = ""
        self._tell("")

    @on(Input.Submitted)
    def _save(self, event: Input.Submitted) -> None:
        name = event.value.strip()
        if not name:
            self._tell("A file needs a name.")
            return
        path = Path(name).expanduser()
        try:
            save(path, self._code, replace=name == self._warned)
        except FileExistsError:
            self._warned = name
            self._tell(f"{name} is there already. Enter again replaces it.")
        except EngineError as error:
            self._tell(str(error))
        else:
            self.dismiss(path)

    def _tell(self, news: str) -> None:
        self.query_one(".news", Static).update(Content(news))
