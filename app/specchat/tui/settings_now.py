"""What is set now and what else there is: the sentences of commands that were given without an argument."""

from typing import Final, get_args

from specchat.chat import Settings
from specchat.choice import SELF_DRAFT
from specengine.protocol import Loaded
from specengine.settings import Speculation

_MEANING: Final[dict[Speculation, str]] = {
    "auto": "drafts where they pay",
    "on": "drafts even where they don't pay",
    "off": "no drafts",
}


def speculation_now(settings: Settings, loaded: Loaded | None) -> str:
    """Whether there are drafts, of which length, and from where."""
    lines = [f"Speculation is {settings.speculation}: {_MEANING[settings.speculation]}."]
    lines.append(
        "γ is the engine's choice each round." if settings.gamma is None else f"γ is fixed at {settings.gamma}."
    )
    if loaded is not None and loaded.speculation_refused:
        lines.append(f"This model decodes plainly, though: {loaded.speculation_refused}")
    else:
        lines.append(f"Drafts come from {_sources(settings, loaded)}.")
    others = [choice for choice in get_args(Speculation) if choice != settings.speculation]
    lines.append("; ".join(f"/spec {choice}: {_MEANING[choice]}" for choice in others))
    lines.append("/gamma N: drafts of N tokens; /gamma auto: the engine's choice")
    return "\n".join(lines)


def draft_now(settings: Settings, loaded: Loaded | None) -> str:
    """Which draft model is in use, or why none is."""
    if loaded is None:
        now = "No model is loaded yet, so neither is a draft model."
    elif loaded.draft == SELF_DRAFT and settings.draft:
        now = f"{loaded.name} drafts for itself, with some of its layers left out, where it pays."
    elif loaded.draft and settings.draft:
        now = f"The draft model is {loaded.draft}; speculation uses it where it pays. Both run on {loaded.device}."
    elif loaded.draft:
        now = f"The draft model {loaded.draft} is loaded but not used."
    elif loaded.draft_refused:
        now = f"There is no draft model: {loaded.draft_refused}"
    else:
        now = f"There is no draft model for {loaded.name}."
    return (
        f"{now}\n/draft NAME: load another, of `specchat models list` or a path\n"
        "/draft self: draft with some of the model's own layers (torch engine)\n/draft none: do without"
    )


def _sources(settings: Settings, loaded: Loaded | None) -> str:
    sources = ["prompt lookup"] if settings.lookup else []
    if loaded is not None and loaded.draft and settings.draft:
        sources.append(f"the draft model {loaded.draft}")
    return " and ".join(sources) or "nowhere: lookup is off and there is no draft model"
