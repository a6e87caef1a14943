"""Do two models spell their tokens alike? A draft from another vocabulary would propose other words than it means."""

from specengine.language_model import Vocabulary


def mismatch(target: Vocabulary, draft: Vocabulary) -> str | None:
    """The first difference between the vocabularies, as a sentence; None if the draft fits.

    Sizes may differ (padding); below the smaller size every id must stand for the same token, and both must have the
    same control tokens and the same ends of generation there.
    """
    shared = min(target.size, draft.size)
    for token in range(shared):
        ours, theirs = target.name(token), draft.name(token)
        if ours != theirs:
            return f"Token {token} is {ours!r} for the target and {theirs!r} for the draft."
    for kind, mine, its in (
        ("a control token", target.control, draft.control),
        ("an end of generation", target.end_of_generation, draft.end_of_generation),
    ):
        different = sorted(token for token in mine ^ its if token < shared)
        if different:
            token = different[0]
            owner = "target" if token in mine else "draft"
            return f"Token {token} ({target.name(token)!r}) is {kind} for the {owner} only."
    return None
