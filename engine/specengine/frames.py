"""Frames between the app and the engine process: a 4-byte big-endian length, then one msgpack message."""

import struct
from typing import BinaryIO

import msgspec

from specengine.protocol import FromEngine, ToEngine

HEADER = struct.Struct(">I")
LIMIT = 256 * 2**20
"""Bytes of one message: far above any conversation, far below what a torn header would ask for."""

_encoder = msgspec.msgpack.Encoder()
_to_engine: msgspec.msgpack.Decoder[ToEngine] = msgspec.msgpack.Decoder(ToEngine)
_from_engine: msgspec.msgpack.Decoder[FromEngine] = msgspec.msgpack.Decoder(FromEngine)


class BrokenFrame(Exception):
    """The other side wrote something that is no frame, or ended in the middle of one."""


def frame(message: ToEngine | FromEngine) -> bytes:
    """The message as bytes ready to be written.

    Raises:
        BrokenFrame: it is larger than LIMIT.
    """
    body = _encoder.encode(message)
    if len(body) > LIMIT:
        raise BrokenFrame(f"A message of {len(body)} bytes is larger than the limit of {LIMIT}.")
    return HEADER.pack(len(body)) + body


def body_length(header: bytes) -> int:
    """Bytes that follow this header.

    Raises:
        BrokenFrame: more than LIMIT.
    """
    (length,) = HEADER.unpack(header)
    if length > LIMIT:
        raise BrokenFrame(f"A header announces {length} bytes, more than the limit of {LIMIT}.")
    return int(length)


def read(stream: BinaryIO) -> ToEngine | None:
    """The next message to the engine; None at the end of the stream. Blocks.

    Raises:
        BrokenFrame: the stream ended inside a frame, or holds no valid message.
    """
    header = _read_exactly(stream, HEADER.size)
    if not header:
        return None
    if len(header) < HEADER.size:
        raise BrokenFrame("The stream ended inside a header.")
    length = body_length(header)
    body = _read_exactly(stream, length)
    if len(body) < length:
        raise BrokenFrame("The stream ended inside a message.")
    try:
        return _to_engine.decode(body)
    except msgspec.MsgspecError as error:
        raise BrokenFrame(f"Not a message: {error}") from None


def decode(body: bytes) -> FromEngine:
    """A message from the engine, its frame's header already taken off.

    Raises:
        BrokenFrame: not a valid message.
    """
    try:
        return _from_engine.decode(body)
    except msgspec.MsgspecError as error:
        raise BrokenFrame(f"Not a message: {error}") from None


def _read_exactly(stream: BinaryIO, count: int) -> bytes:
    """`count` bytes, fewer only at the end of the stream; a pipe may hand them over in pieces."""
    parts: list[bytes] = []
    while count:
        part = stream.read(count)
        if not part:
            break
        parts.append(part)
        count -= len(part)
    return b"".join(parts)
