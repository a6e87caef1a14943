"""How text looks by who wrote it: the target, prompt lookup or the draft model."""

from collections.abc import Mapping

from textual.content import Content

_NAMES = {"target": "target", "lookup": "prompt lookup", "draft": "draft model"}
_COLOURS = {"target": "", "lookup": "$text-success", "draft": "$text-accent"}
_MARKS = {"target": "", "lookup": "underline", "draft": "bold underline"}
"""Where there are no colours."""


def style_of(source: str, no_color: bool) -> str:
    """A style for the text of a source, which may be unknown (""); one of another name looks like a draft model."""
    styles = _MARKS if no_color else _COLOURS
    return styles.get(source, styles["draft"]) if source else ""


def legend(tokens: Mapping[str, int], no_color: bool) -> Content:
    """Each source in its style, with how many tokens it wrote and which part of all."""
    total = max(1, sum(tokens.values()))
    order = [*(source for source in _NAMES if tokens.get(source)), *(tokens.keys() - _NAMES.keys())]
    parts = [
        Content.styled(f"{_NAMES.get(source, source)} {tokens[source]:,} ({tokens[source] / total:.0%})", style)
        for source, style in ((source, style_of(source, no_color) or "$foreground") for source in order)
    ]
    return Content("   ").join(parts)
