"""Guard: requests of real clients and answers of Apache Kafka, byte for byte.

Each recorded frame is read with our headers and messages and written again: the bytes must be the
same. Some fields are checked against facts known without any codec.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import load_messages
from minibroker.kafka.protocol.header import (
    parse_request_header,
    response_header,
    response_header_version,
    write_request_header,
)
from minibroker.kafka.protocol.primitives import Reader, Writer
from tests.support.message_bytes import body_of

WIRE = Path(__file__).parent / "wire"
BROKERS = ("3.9.1", "4.4.0")
UNKNOWN_VERSION = 99


class Exchange(NamedTuple):
    """One recorded request and its answer, frames without their length."""

    broker: str
    client: str
    api: str
    version: int
    request: bytes
    answer: bytes | None

    @property
    def answer_version(self) -> int:
        """Return the version of the answer: 0 if the broker did not know the requested one."""
        return 0 if self.version == UNKNOWN_VERSION else self.version


def recorded() -> list[Exchange]:
    """Return all exchanges of all files."""
    return [
        Exchange(
            broker,
            row["client"],
            row["api"],
            row["version"],
            bytes.fromhex(row["request"]),
            None if row["answer"] is None else bytes.fromhex(row["answer"]),
        )
        for broker in BROKERS
        for row in json.loads((WIRE / f"kafka-{broker}.json").read_text())
    ]


EXCHANGES = recorded()


def read_request(exchange: Exchange) -> Any:
    """Return the request as a message."""
    key, version, _, _, position = parse_request_header(exchange.request)
    reader = Reader(exchange.request, position)
    request = load_messages(key)[0].read(reader, version)
    assert reader.remaining == 0
    return request


def read_answer(exchange: Exchange) -> Any:
    """Return the answer as a message."""
    assert exchange.answer is not None
    key = parse_request_header(exchange.request)[0]
    position = 5 if response_header_version(key, exchange.version) else 4
    reader = Reader(exchange.answer, position)
    answer = load_messages(key)[1].read(reader, exchange.answer_version)
    assert reader.remaining == 0
    return answer


def only(api: str, version: int, broker: str, client: str = "raw") -> Exchange:
    """Return the first exchange of a kind."""
    row_key = (broker, client, api, version)
    return next(exchange for exchange in EXCHANGES if exchange[:4] == row_key)


@pytest.mark.parametrize("broker", BROKERS)
def test_recorded_requests_come_out_the_same(broker: str) -> None:
    for exchange in EXCHANGES:
        if exchange.broker != broker or exchange.version == UNKNOWN_VERSION:
            continue
        key, version, correlation_id, client_id, _ = parse_request_header(exchange.request)
        writer = Writer()
        write_request_header(writer, key, version, correlation_id, client_id)
        read_request(exchange).write(writer, version)
        assert writer.to_bytes() == exchange.request, exchange[:4]


@pytest.mark.parametrize("broker", BROKERS)
def test_recorded_answers_come_out_the_same(broker: str) -> None:
    for exchange in EXCHANGES:
        if exchange.broker != broker or exchange.answer is None:
            continue
        key, version, correlation_id, _, _ = parse_request_header(exchange.request)
        head = response_header(key, version, correlation_id)
        body = body_of(read_answer(exchange), exchange.answer_version)
        assert head + body == exchange.answer, exchange[:4]


@pytest.mark.parametrize("broker", BROKERS)
def test_an_unknown_version_of_api_versions_was_answered_in_version_0(broker: str) -> None:
    exchange = only("api_versions", UNKNOWN_VERSION, broker)
    assert exchange.answer is not None
    assert exchange.answer[:6] == b"\x00\x00\x00\x07\x00\x23"
    answer = read_answer(exchange)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [row.api_key for row in answer.api_keys] == [18]


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("version", range(5))
def test_api_versions_answers_have_response_header_0(broker: str, version: int) -> None:
    answer = read_answer(only("api_versions", version, broker))
    ranges = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
    assert ranges[18] == (0, 4 if broker == "3.9.1" else 5)
    assert ranges[0] == (0, 11 if broker == "3.9.1" else 13)


@pytest.mark.parametrize(("broker", "last"), [("3.9.1", 17), ("4.4.0", 18)])
def test_fetch_answers_hold_the_records_that_were_produced(broker: str, last: int) -> None:
    answer = read_answer(only("fetch", last, broker))
    partition = answer.responses[0].partitions[0]
    assert (partition.partition_index, partition.error_code) == (0, 0)
    assert partition.high_watermark >= 7
    assert bytes(partition.records).startswith(bytes(8))
    assert b"value 0" in bytes(partition.records)


@pytest.mark.parametrize("client", ["confluent-kafka", "kafka-python"])
@pytest.mark.parametrize("broker", BROKERS)
def test_real_clients_produced_and_committed(broker: str, client: str) -> None:
    mine = [e for e in EXCHANGES if (e.broker, e.client) == (broker, client)]
    apis = {exchange.api for exchange in mine}
    assert {"produce", "fetch", "metadata", "find_coordinator", "join_group"} <= apis
    produced = next(exchange for exchange in mine if exchange.api == "produce")
    request = read_request(produced)
    records = request.topic_data[0].partition_data[0].records
    assert b"value 0" in bytes(records)
    assert read_answer(produced).responses[0].partition_responses[0].error_code == 0
    commit = next(exchange for exchange in mine if exchange.api == "offset_commit")
    committed = read_request(commit).topics[0]
    assert committed.name == "golden"
    assert committed.partitions[0].committed_offset > 0
