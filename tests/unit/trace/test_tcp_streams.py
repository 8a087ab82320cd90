"""Segments in every order give the bytes in theirs, and holes where bytes are missing."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from minibroker.trace.tcp_streams import (
    WAITING_BYTES_MAX,
    WAITING_SEGMENTS_MAX,
    StreamPiece,
    TcpStream,
)

START = 4_294_967_290
"""A sequence number that wraps after six bytes."""


def at(position: int) -> int:
    """Return the sequence number of a byte."""
    return (START + position) % (1 << 32)


def new_stream() -> TcpStream:
    """Return a stream whose first byte has number `START`."""
    stream = TcpStream()
    stream.begin(START - 1)
    return stream


def text_of(pieces: list[StreamPiece]) -> bytes:
    """Return the bytes, with a dot for each that is missing."""
    return b"".join(piece.data or b"." * piece.hole_bytes for piece in pieces)


def test_segments_in_order_are_pieces() -> None:
    stream = new_stream()
    assert stream.add(at(0), b"abcd", 4) == [StreamPiece(b"abcd", 0, is_start=True)]
    assert stream.add(at(4), b"efgh", 4) == [StreamPiece(b"efgh", 0, is_start=True)]


def test_an_early_segment_waits() -> None:
    stream = new_stream()
    assert stream.add(at(4), b"ef", 2) == []
    assert text_of(stream.add(at(0), b"abcd", 4)) == b"abcdef"


def test_a_segment_that_comes_again_is_nothing() -> None:
    stream = new_stream()
    stream.add(at(0), b"abcd", 4)
    assert stream.add(at(0), b"abcd", 4) == []
    assert stream.add(at(2), b"cd", 2) == []
    assert stream.add(at(2), b"cdef", 4) == [StreamPiece(b"ef", 0, is_start=False)]


def test_a_capture_may_begin_anywhere() -> None:
    assert TcpStream().add(77, b"ab", 2) == [StreamPiece(b"ab", 0, is_start=True)]


def test_bytes_that_are_acknowledged_and_never_came_are_a_hole() -> None:
    stream = new_stream()
    stream.add(at(4), b"ef", 2)
    assert stream.acknowledge(at(2)) == []
    assert text_of(stream.acknowledge(at(6))) == b"....ef"
    assert stream.acknowledge(at(6)) == []


def test_the_end_makes_a_hole_of_what_is_missing() -> None:
    stream = new_stream()
    stream.add(at(2), b"c", 1)
    stream.add(at(5), b"f", 1)
    assert text_of(stream.end()) == b"..c..f"


def test_a_cut_segment_has_a_hole_behind_it() -> None:
    stream = new_stream()
    assert text_of(stream.add(at(0), b"ab", 5)) == b"ab..."
    assert text_of(stream.add(at(5), b"f", 1)) == b"f"
    assert text_of(stream.add(at(4), b"e", 9)) == b"......."


def test_memory_of_waiting_segments_is_bounded() -> None:
    stream = new_stream()
    for number in range(WAITING_SEGMENTS_MAX):
        assert stream.add(at(10 + number * 2), b"x", 1) == []
    assert text_of(stream.add(at(9), b"x", 1)) == b"." * 9 + b"xx"
    stream = new_stream()
    assert stream.add(at(1), bytes(WAITING_BYTES_MAX), WAITING_BYTES_MAX) == []
    assert len(stream.add(at(WAITING_BYTES_MAX + 1), b"x", 1)) == 3


@settings(max_examples=200)
@given(st.data())
def test_every_order_gives_the_same_bytes(data: st.DataObject) -> None:
    content = data.draw(st.binary(min_size=1, max_size=60))
    cuts = sorted(data.draw(st.sets(st.integers(0, len(content)), max_size=8)) | {0, len(content)})
    segments = [(start, content[start:end]) for start, end in pairwise(cuts)]
    again = data.draw(st.lists(st.sampled_from(segments), max_size=4))
    stream = new_stream()
    pieces: list[StreamPiece] = []
    for start, payload in data.draw(st.permutations([*segments, *again])):
        pieces += stream.add(at(start), payload, len(payload))
    assert text_of(pieces) == content


@settings(max_examples=200)
@given(st.data())
def test_holes_are_as_long_as_what_is_missing(data: st.DataObject) -> None:
    content = data.draw(st.binary(min_size=2, max_size=60)).replace(b".", b"_")
    cuts = sorted(data.draw(st.sets(st.integers(0, len(content)), max_size=8)) | {0, len(content)})
    segments = [(start, content[start:end]) for start, end in pairwise(cuts)]
    came = data.draw(st.lists(st.sampled_from(segments), min_size=1, unique=True))
    stream = new_stream()
    pieces: list[StreamPiece] = []
    for start, payload in came:
        pieces += stream.add(at(start), payload, len(payload))
    pieces += stream.end()
    expected = bytearray(b"." * max(start + len(payload) for start, payload in came))
    for start, payload in came:
        expected[start : start + len(payload)] = payload
    assert text_of(pieces) == bytes(expected)
