"""What the picker shows of a model: a row in the list, and everything below it."""

from textual.content import Content

from specchat import noise_file
from specchat.choice import NO_DRAFT
from specchat.model_facts import ModelFacts
from specengine.protocol import Load
from specengine.transfer import megabytes

_DIM = "$foreground 60%"


def matches(facts: ModelFacts, words: str) -> bool:
    """Whether every word is somewhere in what a row and its details say of the model itself."""
    entry = facts.entry
    text = " ".join([entry.name, entry.title, entry.kind, entry.licence, facts.state, *entry.aliases]).casefold()
    return all(word in text for word in words.casefold().split())


def row(facts: ModelFacts, wanted: Load | None, pulling: bool, width: int) -> Content:
    """One line of `width` columns: mark, name, size, state, and where there is room parameters and speed."""
    loaded = is_loaded(facts, wanted)
    mark, style = _mark(facts, loaded, pulling)
    state = "loaded" if loaded else "pulling" if pulling else facts.state
    cells = [(mark, 1, style), (facts.entry.name, 0, ""), (_size(facts.size).rjust(7), 7, ""), (state, 12, style)]
    if width >= 70:
        cells.append((facts.speed, 15, _DIM))
    if width >= 87:
        cells.append((facts.entry.kind, 15, _DIM))
    room = width - sum(cell_width + 2 for _, cell_width, _ in cells[1:]) - 3
    parts = [
        Content.styled(text, part_style).truncate(columns or room, ellipsis=True, pad=True)
        for text, columns, part_style in cells
    ]
    return Content("  ").join(parts)


def details(facts: ModelFacts, wanted: Load | None, draft: str | None, offline: bool) -> Content:
    """A few lines about one model. `draft` is the one chosen for it: a name, "none", or None for the catalogue's."""
    entry = facts.entry
    context = f"context {entry.context:,}" if entry.context else ""
    terms = " · ".join(part for part in (f"licence: {entry.licence}", context) if part)
    lines = [
        Content.assemble(Content.styled(entry.title, "bold"), Content.styled(f"  {entry.kind}".rstrip(), _DIM)),
        Content(f"{terms} · {_draft(facts, draft)}"),
        Content(facts.trouble or _room(facts)),
        Content(_text(facts, wanted)),
        Content.styled(_whereabouts(facts, offline), _DIM),
    ]
    return Content("\n").join(line for line in lines if line)


def is_loaded(facts: ModelFacts, wanted: Load | None) -> bool:
    return wanted is not None and facts.path is not None and str(facts.path) == wanted.model


def _mark(facts: ModelFacts, loaded: bool, pulling: bool) -> tuple[str, str]:
    if loaded:
        return "●", "$text-success"
    if pulling:
        return "↓", "$text-accent"
    if facts.trouble:
        return "✗", "$text-error"
    if facts.path:
        return "✓", ""
    return ("◐" if facts.kept else " "), _DIM


def _size(size: int | None) -> str:
    return megabytes(size) if size else "?"


def _room(facts: ModelFacts) -> str:
    fit = facts.fit
    verdict = "Fits" if fit.fits else "Too large for this machine now"
    with_draft = " with its draft model" if facts.draft else ""
    free = "" if fit.available is None else f", {megabytes(fit.available)} free"
    speed = f" · {facts.speed} without drafts" if facts.speed else ""
    return f"{verdict}: needs {megabytes(fit.needed)}{with_draft}{free}{speed}"


def _draft(facts: ModelFacts, chosen: str | None) -> str:
    if chosen == NO_DRAFT:
        return "no draft model, by your choice"
    if chosen is not None:
        return f"draft: {chosen}, your choice"
    if facts.draft is None:
        return "no draft model"
    here = "here" if facts.draft_path else "not here" if facts.path else "pulled with it"
    return f"draft: {facts.draft.name} ({here})"


def _text(facts: ModelFacts, wanted: Load | None) -> str:
    """What can be promised of the text, with and without drafts."""
    if facts.noise:
        said = noise_file.in_words(facts.noise.noise)
        return f"{said[:1].upper()}{said[1:]} (measured on {facts.noise.device})"
    if is_loaded(facts, wanted):
        return "Identical text with and without drafts? It can be measured now"
    return "Identical text with and without drafts? Not measured yet" if facts.path else ""


def _whereabouts(facts: ModelFacts, offline: bool) -> str:
    if facts.entry.path:
        return str(facts.entry.path)
    if facts.path:
        digest = f"checked against {facts.digest}'s digest" if facts.digest else "no digest was checked"
        return f"{facts.path} ({digest}{'; safetensors for torch are here too' if facts.weights else ''})"
    kept = f"{megabytes(facts.kept)} are here already; " if facts.kept else ""
    return f"{kept}not here, and the network is switched off" if offline else f"{kept}enter pulls it"
