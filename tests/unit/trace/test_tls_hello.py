"""TLS in a capture: which bytes begin it, and the name of the server."""

from __future__ import annotations

import random

from minibroker.trace.tls_hello import is_tls_data, is_tls_start, server_name
from tests.support.packets import client_hello


def test_the_name_of_the_server_is_read() -> None:
    hello = client_hello("kafka.example")
    assert is_tls_start(hello)
    assert server_name(hello) == "kafka.example"
    assert server_name(hello[:60]) == ""


def test_only_records_of_tls_begin_it() -> None:
    assert is_tls_data(b"\x17\x03\x03\x00\x20abc")
    for other in (b"", b"\x17\x03\x03", b"\x17\x04\x03\x00\x20", b"\x17\x03\x03\xff\xff", b"GET /"):
        assert not is_tls_data(other)
        assert not is_tls_start(other)


def test_damaged_hellos_are_no_error() -> None:
    chance = random.Random(8)
    for _ in range(2_000):
        hello = bytearray(client_hello("kafka.example"))
        for _ in range(3):
            hello[chance.randrange(len(hello))] = chance.randrange(256)
        server_name(bytes(hello[: chance.randrange(len(hello) + 1)]))
