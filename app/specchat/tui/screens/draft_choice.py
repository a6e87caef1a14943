"""Which model drafts for another one."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from specchat.choice import NO_DRAFT
from specchat.model_facts import ModelFacts
from specchat.tui.widgets.key_line import KeyLine
from specengine.transfer import megabytes


class DraftChoice(ModalScreen[str | None]):
    """Ends with a name, a path or "none"; with None where nothing was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "take", "Choose the draft model", priority=True, id="draft.choose"),
        Binding("escape,ctrl+c", "dismiss(None)", "Close and leave it as it was", id="draft.close"),
    ]

    def __init__(self, target: ModelFacts, models: Sequence[ModelFacts], chosen: str | None) -> None:
        super().__init__()
        self._target = target
        self._drafts = candidates(target, models)
        self._chosen = chosen or (target.draft.name if target.draft else NO_DRAFT)

    def compose(self) -> ComposeResult:
        options = [Option("none: prompt lookup alone", NO_DRAFT)]
        for facts in self._drafts:
            paired = self._target.draft is not None and facts.entry.name == self._target.draft.name
            state = "here" if facts.path else "not here, pulled first"
            notes = [megabytes(facts.size) if facts.size else "", state, "the catalogue's choice" if paired else ""]
            prompt = f"{facts.entry.name}  {' · '.join(note for note in notes if note)}"
            options.append(Option(Content(prompt), facts.name))
        with Vertical():
            yield Static(f"Draft model for {self._target.entry.title}", classes="title", markup=False)
            yield OptionList(*options)
            yield Static("It must have the same vocabulary; where it hasn't, loading says so.", classes="last")
            yield KeyLine()

    def on_mount(self) -> None:
        listed = self.query_one(OptionList)
        ids = [NO_DRAFT, *(facts.name for facts in self._drafts)]
        listed.highlighted = ids.index(self._chosen) if self._chosen in ids else 0
        listed.focus()

    def action_take(self) -> None:
        option = self.query_one(OptionList).highlighted_option
        self.dismiss(option.id if option else None)

    @on(OptionList.OptionSelected)
    def _clicked(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


def candidates(target: ModelFacts, models: Sequence[ModelFacts]) -> list[ModelFacts]:
    """Models that may draft for `target`: the one that the catalogue pairs with it, and smaller ones that are here."""
    paired = target.draft.name if target.draft else None
    return [
        facts
        for facts in models
        if facts.entry.name == paired
        or (facts.path and facts.name != target.name and (facts.size or 0) < (target.size or 0))
    ]
