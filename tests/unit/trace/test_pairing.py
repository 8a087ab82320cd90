"""Requests of a connection and their answers."""

from __future__ import annotations

from minibroker.kafka.protocol.messages.metadata import MetadataRequest
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.protocol.messages.sasl_handshake import SaslHandshakeRequest
from minibroker.trace.decode import TOKEN, Frames, decode
from minibroker.trace.pairing import EARLY_MAX, EARLY_MS_MAX, OPEN_MAX, Pairing
from tests.support.trace_frames import request_frame


def pairing() -> Pairing:
    return Pairing(1, "c:1", "b:9092")


def ask(pairs: Pairing, correlation_id: int, at_ms: float = 0.0) -> list[Frames]:
    frame = request_frame(MetadataRequest(), 9, correlation_id)
    return list(pairs.request(correlation_id, frame, at_ms))


def reply(
    pairs: Pairing, correlation_id: int, at_ms: float = 0.0
) -> list[tuple[int, float | None]]:
    """Return number and duration of the exchanges that an answer ends."""
    exchanges = pairs.answer(correlation_id.to_bytes(4, "big") + b"...", at_ms)
    return [(exchange.number, exchange.duration_ms) for exchange in exchanges]


def test_answers_belong_to_the_oldest_request() -> None:
    pairs = pairing()
    assert ask(pairs, 1, 10.0) == []
    assert ask(pairs, 2, 11.0) == []
    assert reply(pairs, 1, 12.5) == [(1, 2.5)]
    assert reply(pairs, 2, 12.5) == [(2, 1.5)]
    assert not pairs.pending


def test_a_request_whose_answer_was_lost_has_none() -> None:
    pairs = pairing()
    for number in (1, 2, 3):
        ask(pairs, number)
    assert reply(pairs, 2) == [(1, None), (2, 0.0)]
    assert [exchange.number for exchange in pairs.end()] == [3]


def test_an_answer_to_no_request_is_dropped() -> None:
    pairs = pairing()
    for number in range(100, 100 + EARLY_MAX + 1):
        assert reply(pairs, number) == []
    ask(pairs, 1)
    assert list(pairs.answer(b"\x00", 0)) == []
    assert reply(pairs, 1) == [(1, 0.0)]
    assert ask(pairs, 100) == []  # the oldest was dropped
    assert ask(pairs, 101, EARLY_MS_MAX + 1) == []  # too old


def test_an_answer_may_stand_before_its_request() -> None:
    """In captures of all interfaces the two directions are not always in order."""
    pairs = pairing()
    assert reply(pairs, 1, 10.0) == []
    (exchange,) = ask(pairs, 1, 10.5)
    assert (exchange.number, exchange.duration_ms) == (1, 0.0)


def test_a_produce_without_acks_is_whole_at_once() -> None:
    frame = request_frame(ProduceRequest(acks=0), 9)
    (exchange,) = pairing().request(1, frame, 0)
    assert (exchange.answer, exchange.duration_ms) == (None, None)


def test_open_requests_are_bounded() -> None:
    pairs = pairing()
    for number in range(OPEN_MAX):
        assert ask(pairs, number) == []
    assert [exchange.number for exchange in ask(pairs, OPEN_MAX)] == [0]


def test_tokens_of_an_old_login_have_no_header() -> None:
    pairs = pairing()
    handshake = request_frame(SaslHandshakeRequest(mechanism="PLAIN"), 0, 1)
    assert list(pairs.request(1, handshake, 0)) == []
    assert reply(pairs, 1) == [(1, 0.0)]
    assert list(pairs.request(2, b"\x00user\x00password", 0)) == []
    (token,) = pairs.answer(b"", 1)
    exchange = decode(token, {})
    assert (exchange.api, exchange.subject, exchange.duration_ms) == (TOKEN, "", 1)
    ask(pairs, 3)
    assert reply(pairs, 3) == [(3, 0.0)]
