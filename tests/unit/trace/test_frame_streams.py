"""Frames of a direction, with and without holes."""

from __future__ import annotations

from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.trace.frame_streams import (
    FRAME_BYTES_MAX,
    FrameStream,
    looks_like_answer,
    looks_like_request,
)
from minibroker.trace.tcp_streams import StreamPiece
from tests.support.trace_frames import request_frame

REQUEST = request_frame(MetadataRequest(), 9)


def framed(data: bytes) -> bytes:
    """Return the bytes with their length before them."""
    return len(data).to_bytes(4, "big") + data


def piece(data: bytes) -> StreamPiece:
    """Return a piece with which a segment begins."""
    return StreamPiece(data, 0, is_start=True)


def hole(size_bytes: int) -> StreamPiece:
    """Return a hole."""
    return StreamPiece(b"", size_bytes, is_start=False)


def stream(*, is_lost: bool = False) -> FrameStream:
    """Return a stream of requests."""
    return FrameStream(looks_like_request, is_lost=is_lost)


def test_frames_are_taken_out_of_any_pieces() -> None:
    frames = stream()
    data = framed(b"abc") + framed(b"") + framed(b"d" * 300)
    assert [frame for at in range(len(data)) for frame in frames.add(piece(data[at : at + 1]))] == [
        b"abc",
        b"",
        b"d" * 300,
    ]
    assert stream().add(piece(data)) == [b"abc", b"", b"d" * 300]
    assert frames.lost_bytes == 0


def test_a_hole_inside_a_frame_cuts_it() -> None:
    frames = stream()
    assert frames.add(piece(framed(b"abcdefgh")[:6])) == []
    assert frames.add(hole(2)) == [b"ab"]
    assert frames.add(piece(b"efgh" + framed(b"x"))) == [b"x"]
    assert frames.lost_bytes == 6
    frames.add(piece(framed(b"abcdefgh")[:6]))
    assert frames.add(hole(2)) == [b"ab"]
    assert frames.add(hole(4)) == []
    assert frames.add(piece(framed(b"y"))) == [b"y"]


def test_a_hole_over_the_end_of_a_frame_loses_the_place() -> None:
    for first in (framed(b"abc")[:5], b"", framed(b"abc")[:2]):
        frames = stream()
        frames.add(piece(first))
        assert frames.add(hole(20)) == []
        assert frames.add(piece(b"rest of a frame")) == []
        assert frames.add(piece(framed(REQUEST))) == [REQUEST]


def test_a_hole_that_reaches_beyond_a_cut_frame_loses_the_place() -> None:
    frames = stream()
    frames.add(piece(framed(b"abcdefgh")[:6]))
    frames.add(hole(2))
    assert frames.add(hole(5)) == []
    assert frames.add(piece(framed(b"z"))) == []
    assert frames.add(piece(framed(REQUEST))) == [REQUEST]


def test_a_length_that_is_none_loses_the_place() -> None:
    frames = stream()
    assert frames.add(piece(framed(b"a") + b"\xff\xff\xff\xff1234")) == [b"a"]
    assert frames.add(piece(framed(REQUEST))) == [REQUEST]


def test_a_stream_that_begins_anywhere_waits_for_the_start_of_a_segment() -> None:
    frames = stream(is_lost=True)
    assert frames.add(piece(b"abc")) == []
    assert frames.add(StreamPiece(framed(REQUEST), 0, is_start=False)) == []
    assert frames.add(piece(framed(REQUEST))) == [REQUEST]


def test_only_a_request_of_kafka_looks_like_one() -> None:
    whole = framed(REQUEST)
    assert looks_like_request(whole)
    assert looks_like_request(whole[:16])
    for other in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03abcdefgh",
        whole[:11],
        (FRAME_BYTES_MAX + 1).to_bytes(4, "big") + REQUEST,
        framed(b"\x03\xe7" + REQUEST[2:]),
        framed(REQUEST[:2] + b"\x00\x63" + REQUEST[4:]),
        framed(REQUEST + b"more"),
        framed(REQUEST[:8] + b"\x00\x01\x07" + REQUEST[11:])[:-1],
        framed(REQUEST[:8] + b"\x00\x00" + REQUEST[11:])[:-1],
    ):
        assert not looks_like_request(other)


def test_an_answer_has_the_id_of_an_open_request() -> None:
    assert looks_like_answer(framed(b"\x00\x00\x00\x07"), {7})
    assert not looks_like_answer(framed(b"\x00\x00\x00\x07"), {8})
    assert not looks_like_answer(b"\x00\x00", {0})
    assert not looks_like_answer(b"\x00\x00\x00\x03\x00\x00\x00\x07", {7})
