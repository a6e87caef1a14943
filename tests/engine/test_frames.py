"""Frames: a length, a message, and nothing that a torn pipe could pass off as one."""

import io
import struct

import msgspec
import pytest

from specengine import frames
from specengine.protocol import Chat, Done, Failed, FromEngine, Generate, Load, Message, Stop, ToEngine
from specengine.settings import Limits, Sampling
from specengine.stats import SourceStats, Stats


class Dripping(io.BytesIO):
    """Hands over one byte at a time, as a pipe may."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(min(1, size or 0))


REQUEST = Generate(
    7,
    Chat((Message("user", "héllo \x00 " * 1000, (1, 2, 3)),)),
    Sampling(temperature=0, seed=2**64 - 1),
    Limits(5, ("stop",)),
)


@pytest.mark.parametrize("message", [REQUEST, Load("/m.gguf", n_ctx=5), Stop(3)])
def test_messages_to_the_engine_come_through_whole(message: ToEngine) -> None:
    stream = io.BytesIO(frames.frame(message) + frames.frame(Stop(1)))
    assert frames.read(stream) == message
    assert frames.read(stream) == Stop(1)
    assert frames.read(stream) is None


@pytest.mark.parametrize(
    "message", [Failed("no", 3), Done(1, "end", (5,), Stats(emitted=2, sources={"lookup": SourceStats(1, 2, 1)}))]
)
def test_messages_from_the_engine_come_through_whole(message: FromEngine) -> None:
    data = frames.frame(message)
    assert frames.body_length(data[:4]) == len(data) - 4
    assert frames.decode(data[4:]) == message


def test_a_stream_that_hands_over_single_bytes_is_read_all_the_same() -> None:
    assert frames.read(Dripping(frames.frame(REQUEST))) == REQUEST


@pytest.mark.parametrize("kept", [1, 3, 4, 5, -1])
def test_a_stream_that_ends_inside_a_frame_is_an_error(kept: int) -> None:
    with pytest.raises(frames.BrokenFrame, match="ended inside"):
        frames.read(io.BytesIO(frames.frame(REQUEST)[:kept]))


def test_an_absurd_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(frames.BrokenFrame, match="more than the limit"):
        frames.read(io.BytesIO(b"GGML_ASSERT printed where a frame belongs"))


@pytest.mark.parametrize(
    "body", [b"\xc1", msgspec.msgpack.encode({"type": "Unknown"}), msgspec.msgpack.encode({"type": "Stop", "id": "x"})]
)
def test_what_is_no_message_is_refused(body: bytes) -> None:
    with pytest.raises(frames.BrokenFrame, match="Not a message"):
        frames.read(io.BytesIO(struct.pack(">I", len(body)) + body))
    with pytest.raises(frames.BrokenFrame, match="Not a message"):
        frames.decode(body)
