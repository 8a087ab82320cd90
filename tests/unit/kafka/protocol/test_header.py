"""Headers against `protocol_specs/headers.json`, for every API and version."""

from __future__ import annotations

import json

import pytest

from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import (
    API_VERSIONS,
    APIS,
    CONTROLLED_SHUTDOWN,
    FETCH,
    PRODUCE,
    SASL_HANDSHAKE,
)
from minibroker.kafka.protocol.header import (
    RepeatedHeader,
    parse_request_header,
    response_header,
    response_header_version,
    write_request_header,
)
from minibroker.kafka.protocol.primitives import Writer
from tests.support.reference_codec import SPECS, encode, header_spec

EVERY_VERSION = [
    (key, version)
    for key, api in APIS.items()
    for version in range(api.min_version, api.max_version + 1)
]


def is_flexible(key: int, version: int) -> bool:
    """The API's version uses compact lengths."""
    flexible_from = APIS[key].flexible_from
    return flexible_from is not None and version >= flexible_from


@pytest.mark.parametrize("client_id", [None, "", "klient-ą"])
def test_request_headers_of_every_api_and_version(client_id: str | None) -> None:
    spec = header_spec("request")
    exceptions = json.loads((SPECS / "headers.json").read_text())["exceptions"]
    numbers = {
        (row["key"], row["version"]): row["request_header"]
        for row in exceptions
        if "request_header" in row
    }
    assert numbers == {(CONTROLLED_SHUTDOWN, 0): 0}
    for key, version in EVERY_VERSION:
        value = {
            "api_key": key,
            "api_version": version,
            "correlation_id": -5,
            "client_id": client_id,
        }
        number = numbers.get((key, version), 2 if is_flexible(key, version) else 1)
        expected = encode(spec, value, number)
        writer = Writer()
        write_request_header(writer, key, version, -5, client_id)
        assert writer.to_bytes() == expected
        header = parse_request_header(memoryview(expected + b"body"))
        expected_id = client_id if number else None
        assert header == (key, version, -5, expected_id, len(expected))


@pytest.mark.parametrize("client_id", [None, "", "client", "Ünï"])
def test_a_repeated_header_is_known_by_its_bytes(client_id: str | None) -> None:
    for key, version in EVERY_VERSION:
        writer = Writer()
        write_request_header(writer, key, version, 7, client_id)
        head = writer.to_bytes()
        frame = memoryview(head + b"body")
        _, _, _, found_id, end = parse_request_header(frame)
        header = RepeatedHeader(frame, key, version, found_id, end)
        for number in (-(2**31), 0, 2**31 - 1):
            same = bytearray(head + b"other")
            same[4:8] = number.to_bytes(4, signed=True)
            assert header.correlation_id_of(memoryview(same)) == number
            assert parse_request_header(memoryview(same))[2] == number
        for place in (*range(4), *range(8, len(head))):
            other = bytearray(head + b"body")
            other[place] ^= 1
            assert header.correlation_id_of(memoryview(other)) is None
        assert header.correlation_id_of(memoryview(head)[:-1]) is None


def test_response_headers_of_every_api_and_version() -> None:
    spec = header_spec("response")
    exceptions = json.loads((SPECS / "headers.json").read_text())["exceptions"]
    always = {row["key"]: row["response_header"] for row in exceptions if "response_header" in row}
    assert always == {API_VERSIONS: 0}
    for key, version in EVERY_VERSION:
        number = always.get(key, 1 if is_flexible(key, version) else 0)
        assert response_header_version(key, version) == number
        expected = encode(spec, {"correlation_id": 9}, number)
        assert response_header(key, version, 9) == expected


def test_an_unsupported_version_has_the_header_of_the_newest() -> None:
    """ApiVersions 99 must be readable, to be answered with error 35."""
    writer = Writer()
    write_request_header(writer, API_VERSIONS, 99, 3, "new")
    assert parse_request_header(writer.to_bytes()) == (API_VERSIONS, 99, 3, "new", 14)


def test_an_api_without_flexible_versions_keeps_header_1() -> None:
    assert response_header_version(SASL_HANDSHAKE, 1) == 0
    writer = Writer()
    write_request_header(writer, SASL_HANDSHAKE, 1, 3, None)
    assert writer.size == 10


def test_tagged_fields_of_a_request_header_are_skipped() -> None:
    head = bytes.fromhex("0001000c000000070000") + b"\x01\x00\x02ab"
    assert parse_request_header(head + b"body") == (FETCH, 12, 7, "", len(head))


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (b"", "0 bytes holds no request header"),
        (bytes(9), "9 bytes holds no request header"),
        (bytes.fromhex("00000003000000070005") + b"four", "client id of 5 bytes"),
        (bytes.fromhex("0034000000000007ffff"), "no API has key 52"),
        (bytes.fromhex("fffb000000000007ffff"), "no API has key -5"),
        (bytes.fromhex("00000009000000070000"), "tag|varint"),
        (bytes.fromhex("00000009000000070000") + b"\x01\x00\x05a", "does not fit"),
    ],
)
def test_a_broken_header_is_refused(frame: bytes, message: str) -> None:
    with pytest.raises(ProtocolError, match=message):
        parse_request_header(frame)


def test_a_client_id_that_is_not_utf8_is_kept_readable() -> None:
    head = bytes.fromhex("00000003000000070002") + b"a\xff"
    assert parse_request_header(head) == (PRODUCE, 3, 7, "a\ufffd", 12)


def test_an_unknown_key_has_no_response_header() -> None:
    with pytest.raises(KeyError):
        response_header_version(52, 0)
