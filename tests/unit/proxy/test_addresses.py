"""`addresses`: every address in every message is in the table, and is rewritten in each version."""

from typing import Any

import pytest

from minibroker.kafka.protocol.api_keys import APIS, FETCH, PRODUCE, load_messages
from minibroker.kafka.protocol.primitives import Reader
from minibroker.proxy.addresses import (
    ADDRESSES,
    has_addresses,
    hide_hint,
    may_have_hint,
    rewrite,
)
from tests.support.message_bytes import body_of
from tests.support.protocol_values import ValueMaker
from tests.support.reference_codec import MessageSpec, decode, encode, load_specs, present

NOT_OF_BROKERS = {
    "DescribeGroups": "client_host: where a member is",
    "ConsumerGroupDescribe": "client_host: where a member is",
    "ShareGroupDescribe": "client_host: where a member is",
    "StreamsGroupDescribe": "user_endpoint: where an application serves its own users",
    "StreamsGroupHeartbeat": "user_endpoint: where an application serves its own users",
    "DescribeAcls": "host: from which a rule allows clients",
    "DeleteAcls": "host: from which a rule allows clients",
}
"""API → why a host in its answers is no broker's address."""
OWN = ("proxy.example", 9192)
RESPONSES = [
    spec for spec in load_specs() if spec.key is not None and spec.class_name.endswith("Response")
]


def hosts_in(spec: MessageSpec, fields: list[dict[str, Any]], version: int) -> list[str]:
    """Return the way to each field of a version whose name says host."""
    ways = []
    for field in present(fields, version):
        if "host" in field["name"] or "endpoint_address" in field["name"]:
            ways.append(field["name"])
        members = spec.members(field)
        if members is not None:
            ways += [f"{field['name']}.{way}" for way in hosts_in(spec, members, version)]
    return ways


@pytest.mark.parametrize("spec", RESPONSES, ids=str)
def test_each_host_in_an_answer_is_in_the_table(spec: MessageSpec) -> None:
    assert spec.key is not None
    if APIS[spec.key].name in NOT_OF_BROKERS:
        return
    for version in spec.versions:
        ways = hosts_in(spec, spec.fields, version)
        place = ADDRESSES.get(spec.key)
        in_table = {".".join((*way, "host")) for way in place.ways} if place is not None else set()
        assert set(ways) <= in_table
        assert bool(ways) == has_addresses(spec.key, version), f"version {version}"


def answers_of(spec: MessageSpec, version: int) -> list[Any]:
    """Return answers of random values, as they are read from bytes."""
    assert spec.key is not None
    _, response_class = load_messages(spec.key)
    values = [ValueMaker(spec, seed).message(version) for seed in range(20)]
    for value in values:
        place_brokers(value)
    return [response_class.read(Reader(encode(spec, value, version)), version) for value in values]


def place_brokers(value: Any) -> None:
    """Put an address that may be into each structure that has one."""
    for item in value if isinstance(value, list) else value.values():
        if isinstance(item, list | dict):
            place_brokers(item)
    if isinstance(value, dict) and "host" in value:
        value.update(host="kafka-1.example", port=9092)


def all_hosts(value: Any) -> list[tuple[str, int]]:
    """Return host and port of each structure that has both."""
    if isinstance(value, list):
        return [address for item in value for address in all_hosts(item)]
    if not isinstance(value, dict):
        return []
    inner = [address for item in value.values() for address in all_hosts(item)]
    return [(value["host"], value["port"]), *inner] if "host" in value else inner


@pytest.mark.parametrize("key", ADDRESSES, ids=lambda key: APIS[key].name)
def test_no_address_of_kafka_is_left_in_any_version(key: int) -> None:
    (spec,) = (spec for spec in RESPONSES if spec.key == key)
    rewritten = 0
    for version in spec.versions:
        if not has_addresses(key, version):
            continue
        for answer in answers_of(spec, version):
            rewrite(key, answer, lambda _: OWN)
            addresses = all_hosts(decode(spec, body_of(answer, version), version))
            rewritten += len(addresses)
            assert set(addresses) <= {OWN}
    assert rewritten


def an_answer(key: int, version: int, ports: list[int], rack: str | None) -> bytes:
    """Return the frame of a Fetch or a Produce that names these leaders."""
    (spec,) = (spec for spec in RESPONSES if spec.key == key)
    endpoints = [
        {"node_id": number, "host": "kafka", "port": port, "rack": rack}
        for number, port in enumerate(ports)
    ]
    message = ValueMaker(spec, 3).message(version)
    message["node_endpoints"] = endpoints
    return bytes(8) + encode(spec, message, version)


@pytest.mark.parametrize(
    ("key", "version"), [(FETCH, 16), (FETCH, 18), (PRODUCE, 10), (PRODUCE, 13)]
)
@pytest.mark.parametrize("rack", [None, "", "eu-1"])
def test_a_hint_is_seen_at_each_port(key: int, version: int, rack: str | None) -> None:
    for port in (1, 255, 256, 9092, 9216, 65280, 65535):
        assert may_have_hint(key, an_answer(key, version, [7, port], rack)), port


@pytest.mark.parametrize(("key", "version"), [(FETCH, 16), (FETCH, 18), (PRODUCE, 10)])
def test_a_usual_answer_is_seen_to_have_no_hint(key: int, version: int) -> None:
    (spec,) = (spec for spec in RESPONSES if spec.key == key)
    for answer in answers_of(spec, version):
        answer.node_endpoints = []
        if key == PRODUCE:
            answer.throttle_time_ms = 0
        frame = bytes(8) + body_of(answer, version)
        is_tagged = not frame.endswith(bytes(3)) and key == FETCH
        assert is_tagged or not may_have_hint(key, frame)


@pytest.mark.parametrize("version", [16, 18])
@pytest.mark.parametrize("rack", [None, "eu-1"])
def test_a_hint_of_a_long_answer_is_hidden_in_its_place(version: int, rack: str | None) -> None:
    frame = an_answer(FETCH, version, [9092, 9216], rack)
    for tail_bytes in (len(frame), 60):
        tail = bytearray(frame[-tail_bytes:])
        assert hide_hint(tail)
        _, response_class = load_messages(FETCH)
        hidden = frame[:-tail_bytes] + tail
        assert len(hidden) == len(frame)
        answer = response_class.read(Reader(hidden, 8), version)
        assert answer.node_endpoints == []


def test_an_answer_without_a_hint_is_not_touched() -> None:
    _, response_class = load_messages(FETCH)
    frame = bytearray(bytes(8) + body_of(response_class(), 16))
    original = bytes(frame)
    assert not hide_hint(frame)
    assert bytes(frame) == original
