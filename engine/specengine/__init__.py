"""The engine: lossless speculative decoding for one conversation on one machine."""

__version__ = "0.1.0"
