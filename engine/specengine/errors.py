"""What can go wrong in a way that somebody should hear of."""


class EngineError(Exception):
    """Something that the user can act on; its text is one clear sentence with what to do next."""


class Stopped(Exception):
    """Work was abandoned because `should_stop` said so; caches are as they were before the call."""
