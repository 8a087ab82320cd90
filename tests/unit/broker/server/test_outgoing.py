"""Bytes of large answers leave in order, in pieces of a bounded size."""

from __future__ import annotations

from minibroker.broker.server.outgoing import TURN_BYTES, Outgoing


def test_bytes_leave_in_order_and_in_bounded_pieces() -> None:
    outgoing = Outgoing()
    sent = [b"a" * 5, b"", bytearray(b"b" * 7), memoryview(b"c" * 2)]
    outgoing.add(sent)
    assert outgoing.size_bytes == 14
    pieces = []
    while outgoing.size_bytes:
        pieces.append(b"".join(outgoing.take(4)))
    assert pieces == [b"aaaa", b"abbb", b"bbbb", b"cc"]


def test_bytes_that_come_later_stand_behind() -> None:
    outgoing = Outgoing()
    outgoing.add([b"abc"])
    assert outgoing.take(2) == [b"ab"]
    outgoing.add([b"d"])
    assert b"".join(outgoing.take(9)) == b"cd"
    assert outgoing.size_bytes == 0
    assert outgoing.take() == []


def test_a_turn_copies_nothing() -> None:
    outgoing = Outgoing()
    records = bytes(2 * TURN_BYTES)
    outgoing.add([records])
    first, second = outgoing.take(), outgoing.take()
    assert [len(first), len(second)] == [1, 1]
    assert all(isinstance(piece, memoryview) and piece.obj is records for piece in first + second)
