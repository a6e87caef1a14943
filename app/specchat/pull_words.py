"""How far a pull is and how it ended, in words: the same on the command line and in the chat."""

from specengine.transfer import PullProgress, megabytes


def progressed(name: str, now: PullProgress) -> str:
    """One line. Without bytes there is no speed in it: a pull that stalls says so."""
    match now.phase:
        case "waiting":
            return f"{name}: waiting for another specchat that pulls it"
        case "connecting":
            return f"{name}: asking {now.source}"
        case "checking":
            return f"{name}: checking {_percent(now)}"
    parts = [f"{name}: {_percent(now)} {megabytes(now.done)}"]
    if now.total:
        parts[0] += f" of {megabytes(now.total)}"
    if now.stalled:
        parts.append("stalled")
    elif now.rate:
        parts.append(f"{now.rate / 1e6:.1f} MB/s")
        if now.total:
            parts.append(_left((now.total - now.done) / now.rate))
    return ", ".join([*parts, f"from {now.source}"])


def stopped(name: str, kept: int) -> str:
    """What a pull that the user stopped leaves behind."""
    if kept:
        return f"Stopped; {megabytes(kept)} of {name} are kept, and the next pull goes on from there."
    return f"Stopped; nothing of {name} had arrived that could be kept."


def _percent(now: PullProgress) -> str:
    return f"{now.done * 100 // now.total}%" if now.total else "…"


def _left(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s left"
    return f"{seconds / 60:.0f} min left" if seconds < 5400 else f"{seconds / 3600:.1f} h left"
