"""A comparison in words: both rates, what speculation gained, and whether the texts are the same."""

from collections.abc import Mapping
from typing import Final

from specchat.chat import Answer
from specchat.compare import Fork, Mode, shared_text
from specchat.tui.figures import UNKNOWN, number, percent
from specengine.protocol import NearTie
from specengine.settings import Speculation
from specengine.stats import Stats

_AROUND: Final = 24
"""Characters shown of a text on each side of a fork."""


def heading(mode: Mode, speculation: Speculation, gamma: int | None) -> str:
    """What a side is called."""
    if mode == "plain":
        return "speculation off"
    return f"speculation {speculation}" + ("" if gamma is None else f", γ {gamma}")


def running(stats: Stats | None, live: bool) -> str:
    """The figures of a side while it is made and after."""
    if stats is None:
        return UNKNOWN
    rate = stats.recent_tokens_per_s if live else stats.tokens_per_s
    parts = [f"{number(rate)} tok/s", f"{stats.emitted:,} tokens"]
    if stats.drafted:
        parts += [f"{number(stats.tokens_per_pass, 2)} a pass", f"{percent(stats.acceptance)} of drafts accepted"]
    return " · ".join(parts)


def gain(answers: Mapping[Mode, Answer]) -> str:
    """Both rates and their ratio, in a line or two; the rest stands above the texts."""
    plain, drafted = (_stats(answers, mode) for mode in ("plain", "drafted"))
    if plain is None or drafted is None or not plain.tokens_per_s or not drafted.tokens_per_s:
        return "Too little was written for a comparison."
    rates = f"{drafted.tokens_per_s:.1f} against {plain.tokens_per_s:.1f} tok/s"
    if not drafted.drafted:
        return f"{rates}, and both decoded plainly: no draft promised to pay. They differ by chance."
    if not drafted.speculated:
        return f"{rates}, with {drafted.drafted:,} tokens drafted: too few to tell. They may differ by chance."
    ratio = drafted.tokens_per_s / plain.tokens_per_s
    times = f"{max(ratio, 1 / ratio):.2f}"
    change = "as fast" if times == "1.00" else f"{times}× {'faster' if ratio > 1 else 'slower'}"
    return f"{rates}: {change} with speculation."


def sameness(answers: Mapping[Mode, Answer], parted: Fork | None, tie: NearTie | None, exact: bool) -> str:
    """Whether the texts are the same, else where they part and why. `exact` says how the model was loaded."""
    plain, drafted = answers["plain"], answers["drafted"]
    if parted is None:
        both = min(len(plain.tokens or ()), len(drafted.tokens or ()))
        whole = len(plain.tokens or ()) == len(drafted.tokens or ())
        return f"The texts are identical{'' if whole else ', as far as both go'}: {both:,} tokens."
    if parted.tokens is None:
        return f"The texts are identical for {parted.shared:,} tokens; then one of them ends. {_remedy(exact)}"
    at = shared_text(plain.text, drafted.text)
    before = _shown(plain.text[max(0, at - _AROUND) : at])
    one, other = (_shown(answer.text[at : at + _AROUND]) for answer in (plain, drafted))
    return (
        f"The texts part at token {parted.shared + 1:,}, behind “{before}”: “{one}” without speculation, “{other}” "
        f"with. {_why(tie, exact)}"
    )


def _why(tie: NearTie | None, exact: bool) -> str:
    if tie is None:
        return _remedy(exact)
    if tie.lead is None and tie.turns:
        return f"Rounding decides there whether top-k, top-p or min-p leaves a token in play. {_remedy(exact)}"
    if tie.lead is None:
        return (
            "At this place sampling leaves only one of the two in play, whatever the width of the pass: what earlier "
            f"passes rounded is in the KV cache. {_remedy(exact)}"
        )
    close = f"{abs(tie.lead):.2g} apart in logits, and passes of other widths move that by {tie.shift:.2g}"
    if tie.decided_by_rounding:
        return f"A near-tie: the two tokens are {close}. {_remedy(exact)}"
    return (
        f"Rounding at this place alone doesn't explain it, as the two tokens are {close}; what earlier passes rounded "
        f"is in the KV cache as well. {_remedy(exact)}"
    )


def _remedy(exact: bool) -> str:
    if exact:
        return "This model file's passes differ by width even with --exact."
    return "With --exact the texts are identical where the model file allows it; `specchat doctor --model` tells."


def _stats(answers: Mapping[Mode, Answer], mode: Mode) -> Stats | None:
    return answers[mode].stats if mode in answers else None


def _shown(text: str) -> str:
    return text.replace("\n", "⏎")
