"""`heads`: the head of a request of each API and version; None for what is no request."""

import random

import pytest

from minibroker.kafka.protocol.api_keys import APIS, PRODUCE
from minibroker.kafka.protocol.header import write_request_header
from minibroker.kafka.protocol.messages.produce import ProduceRequest
from minibroker.kafka.protocol.primitives import Writer
from minibroker.proxy.heads import HEAD_BYTES_MAX, head_bytes, read_head

CLIENT_IDS = (None, "", "shop", "zażółć", "c" * 32_000)


def header(key: int, version: int, client_id: str | None) -> bytes:
    """Return a request without its body."""
    writer = Writer()
    write_request_header(writer, key, version, 77, client_id)
    return writer.to_bytes()


@pytest.mark.parametrize("key", APIS, ids=lambda key: APIS[key].name)
def test_the_head_of_each_version_is_read(key: int) -> None:
    api = APIS[key]
    for version in range(api.min_version, api.max_version + 1):
        for client_id in CLIENT_IDS:
            data = b"xxxx" + header(key, version, client_id)
            head = read_head(data, 4, len(data))
            assert head is not None
            expected = None if client_id is None else client_id.encode()
            if key == 7 and not version:
                expected = None
            assert (*head[:3],) == (key, version, expected)
            assert head_bytes(data, 4) <= HEAD_BYTES_MAX


@pytest.mark.parametrize("version", range(14))
@pytest.mark.parametrize("acks", [-1, 0, 1])
@pytest.mark.parametrize("transaction", [None, "", "t" * 200])
def test_only_a_produce_with_acks_0_wants_no_answer(
    version: int, acks: int, transaction: str | None
) -> None:
    writer = Writer()
    write_request_header(writer, PRODUCE, version, 1, "shop")
    request = ProduceRequest(acks=acks, timeout_ms=1)
    if version >= 3:
        request.transactional_id = transaction
    request.write(writer, version)
    data = writer.to_bytes()
    head = read_head(data, 0, len(data))
    assert head is not None
    assert head.wants_answer == (acks != 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\0user\0password",
        b"n,,n=user,r=fyko+d2lbbFgONRv9qkxdawL",
        b"c=biws,r=fyko+d2lbbFgONRv9qkxdawL3rfcNHYJY1ZVvWVs7j,p=v0X8v3Bz2T0CJGbJQyF0X+HI4Ts=",
        b"n,,\x01auth=Bearer token\x01\x01",
        b"\x60\x82\x02\x10\x06\x09\x2a\x86\x48\x86\xf7",
        b"GET / HTTP/1.1\r\n\r\n",
        b"",
        b"\0\0",
        b"\x03\xe7\0\0\0\0\0\x01\xff\xff",
    ],
)
def test_bytes_that_are_no_request_have_no_head(data: bytes) -> None:
    assert read_head(data, 0, len(data)) is None


def test_random_bytes_never_raise() -> None:
    dice = random.Random(1)
    for _ in range(20_000):
        data = dice.randbytes(dice.randrange(30))
        if dice.random() < 0.5:
            data = bytes(1) + data[1:]
        read_head(data, 0, len(data))
