"""Frames become exchanges, whatever their bytes are."""

from __future__ import annotations

import pytest

from minibroker.kafka.protocol.api_keys import SASL_AUTHENTICATE
from minibroker.kafka.protocol.header import response_header, write_request_header
from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.protocol.primitives import Writer
from minibroker.trace.decode import TOKEN, decode, has_answer, read_head
from minibroker.trace.exchange import Exchange
from minibroker.trace.line import to_line
from tests.support.trace_frames import exchange_of, recorded_frames, request_frame

REQUEST = request_frame(MetadataRequest(topics=[MetadataRequestTopic(name="a")]), 9)


@pytest.mark.parametrize("broker", ["3.9.1", "4.4.0"])
def test_dialogues_of_real_clients_are_read_whole(broker: str) -> None:
    names: dict[bytes, str] = {}
    for frames in recorded_frames(broker):
        exchange = decode(frames, names)
        assert to_line(exchange).isprintable()
        if exchange.version == 99:  # an unknown version of ApiVersions
            assert exchange.subject.startswith("not read: ApiVersions has versions")
            continue
        assert exchange.request is not None
        assert (exchange.answer is None) == (frames.answer is None)
        assert "not read" not in exchange.subject
        assert "behind" not in exchange.subject


def test_an_exchange_has_the_head_of_its_request() -> None:
    exchange = exchange_of(REQUEST)
    assert exchange._replace(request=None) == Exchange(
        number=1,
        connection=1,
        client_address="127.0.0.1:5",
        broker="b:9092",
        api="Metadata",
        version=9,
        correlation_id=7,
        client_id="c",
        at_ms=0.0,
        duration_ms=1.25,
        request_bytes=len(REQUEST),
        answer_bytes=None,
        subject="a",
        error=None,
    )
    assert exchange.request == MetadataRequest(topics=[MetadataRequestTopic(name="a")])


@pytest.mark.parametrize(
    ("frame", "api", "text"),
    [
        (b"", "no request", "not read: a frame of 0 bytes holds no request header ()"),
        (b"\x03\xe7" + REQUEST[2:], "api 999", "not read: no API has key 999"),
        (
            REQUEST[:2] + b"\x00\x63" + REQUEST[4:],
            "Metadata",
            "Metadata has versions 0 to 13 (00 03",
        ),
        (REQUEST[:-3], "Metadata", "request not read: "),
        (REQUEST + b"xy", "Metadata", "a; 2 bytes behind the request"),
        (REQUEST[:8] + b"\x7f\xff", "Metadata", "not read: client id of 32767 bytes"),
    ],
    ids=["empty", "key", "version", "cut", "longer", "client id"],
)
def test_a_strange_request_shows_what_is_known(frame: bytes, api: str, text: str) -> None:
    exchange = exchange_of(frame, b"\x00\x00\x00\x07")
    assert exchange.api == api
    assert text in exchange.subject


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"\x00\x00", "answer of 2 bytes"),
        (response_header(3, 9, 7) + b"\x01", "answer not read: "),
        (response_header(3, 9, 8), "answer has correlation id 8 and not 7; answer not read: "),
        (b"\x00\x00\x00\x07\xff\xff\xff\xff\xff\xff", "answer not read: "),
    ],
)
def test_a_strange_answer_shows_what_is_known(answer: bytes, text: str) -> None:
    exchange = exchange_of(REQUEST, answer)
    assert exchange.answer is None
    assert f"a; {text}" in exchange.subject


def test_damaged_bytes_of_a_login_are_not_shown() -> None:
    writer = Writer()
    write_request_header(writer, SASL_AUTHENTICATE, 0, 1, "c")
    frame = writer.to_bytes() + b"\x00\x00\x00\x7fpassword"
    assert b"password".hex(" ") not in exchange_of(frame).subject


def test_a_token_has_no_header_and_no_bytes() -> None:
    exchange = exchange_of(b"\x00user\x00password", b"", is_token=True)
    assert (exchange.api, exchange.subject, exchange.answer_bytes) == (TOKEN, "", 0)


def test_a_produce_without_acks_has_no_answer() -> None:
    for acks, answered in ((0, False), (1, True), (-1, True)):
        frame = request_frame(ProduceRequest(acks=acks), 9)
        assert has_answer(read_head(frame), frame) is answered
    assert has_answer(read_head(REQUEST), REQUEST)
    assert has_answer(read_head(b""), b"")
