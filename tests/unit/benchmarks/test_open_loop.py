"""Requests leave when they are due, answers find theirs."""

from __future__ import annotations

import math
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from benchmarks import open_loop
from benchmarks.open_loop import Stream, http_size, kafka_size, run, spread
from benchmarks.wire import WireError

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST = b"ask!"
ANSWER = b"\0\0\0\3yes"
HTTP = b"HTTP/1.1 200 \r\nContent-Type: text/plain\r\nContent-Length: 5\r\nServer: x\r\n\r\nhello"


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A client's and a broker's."""
    pair = socket.socketpair()
    yield pair
    for end in pair:
        end.close()


def answer(peer: socket.socket, count: int) -> None:
    """Each request by itself, in pieces."""
    for _ in range(count):
        assert peer.recv(len(REQUEST), socket.MSG_WAITALL) == REQUEST
        peer.sendall(ANSWER[:5])
        peer.sendall(ANSWER[5:])


def test_every_request_is_sent_and_its_answer_kept(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    broker = threading.Thread(target=answer, args=(ends[1], 60))
    broker.start()
    for _ in range(2):
        stream.plan(spread(30, 3_000, seed=1))
        run([stream])
        assert stream.answers == [ANSWER] * 30
        assert len(stream.taken_s) == 30
        assert all(0 < taken < 10 for taken in stream.taken_s)
    broker.join()


def test_a_request_leaves_when_it_is_due_whether_others_are_answered_or_not(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    open_stream = Stream(ends[0], REQUEST, kafka_size)
    open_stream.plan([0.0, 0.5, 1.0])
    open_stream.send_due(0.6)
    assert ends[1].recv(100) == REQUEST * 2
    assert open_stream.next_due_s == 1.0
    assert not open_stream.is_done


def test_one_at_a_time_waits_for_its_answer(ends: tuple[socket.socket, socket.socket]) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size, in_flight=1)
    stream.plan([0.0, 0.5])
    stream.send_due(0.6)
    assert ends[1].recv(100) == REQUEST
    assert stream.next_due_s == math.inf
    ends[1].sendall(ANSWER)
    stream.receive()
    assert stream.next_due_s == 0.5


def test_answers_that_come_together_are_told_apart(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    stream.plan([0.0, 0.0, 0.0])
    stream.send_due(0.0)
    ends[1].sendall(ANSWER * 2 + ANSWER[:3])
    stream.receive()
    assert stream.answers == [ANSWER] * 2
    ends[1].sendall(ANSWER[3:])
    stream.receive()
    assert stream.is_done


def test_a_client_that_closes_or_is_silent_ends_the_run(
    ends: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = Stream(ends[0], REQUEST, kafka_size)
    stream.plan([0.0])
    monkeypatch.setattr(open_loop, "PATIENCE_S", 0.01)
    with pytest.raises(WireError, match="no answer within"):
        run([stream])
    assert ends[1].recv(100) == REQUEST
    ends[1].close()
    with pytest.raises(WireError, match="closed"):
        run([stream])


def test_times_are_spread_one_to_a_period_and_the_same_for_a_seed() -> None:
    due_s = spread(500, 100, seed=7)
    assert [int(moment_s * 100) for moment_s in due_s] == list(range(500))
    assert due_s == spread(500, 100, seed=7)
    assert due_s != spread(500, 100, seed=8)


@pytest.mark.parametrize(
    ("size_of", "whole", "head_bytes"), [(kafka_size, ANSWER, 4), (http_size, HTTP, len(HTTP) - 5)]
)
def test_a_size_is_known_as_soon_as_the_head_is_there(
    size_of: object, whole: bytes, head_bytes: int
) -> None:
    assert callable(size_of)
    for count in range(len(whole) + 3):
        expected = len(whole) if count >= head_bytes else 0
        assert size_of(bytearray(whole + b"...")[:count]) == expected
