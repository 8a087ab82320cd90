"""kill -9 while the answers to five batches of an idempotent producer are on their way.

The producer sends all five again, as every client does. None of them may be in the log twice, none
may be lost, and none may be refused. `MINIBROKER_CRASHES=200` does 200 kills, and as many for each
client.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.support.batches import batch
from tests.support.broker import Minibroker
from tests.support.codec import codec_of
from tests.support.groups import JAVA_CLIENTS
from tests.support.senders import FRANZ, LIBRDKAFKA, missing_sender, sender_of
from tests.support.swallowing_proxy import SwallowingProxy
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.kafka.records.batch import BatchHeader

KILLS = int(os.environ.get("MINIBROKER_CRASHES", "6"))
CLIENT_KILLS = int(os.environ.get("MINIBROKER_CRASHES", "3"))
CLIENTS = [
    LIBRDKAFKA,
    *(pytest.param(client, marks=pytest.mark.java) for client in JAVA_CLIENTS),
    FRANZ,
]
ANSWERED_RECORDS = 10
"""Records whose answers arrive, before each kill."""
IN_FLIGHT = 5
PRODUCERS = 3
TOPIC = "t"
PRODUCE_VERSION = 9
LONG_AGO_MS = 1_600_000_000_000


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Minibroker]:
    new_broker = Minibroker(tmp_path / "data", tmp_path / "broker.log", topics=[f"{TOPIC}:1"])
    new_broker.start()
    yield new_broker
    new_broker.kill()


class RawProducer:
    """An idempotent producer that numbers its records: the value is the sequence."""

    def __init__(self, client: WireClient, timestamp_ms: int) -> None:
        """`timestamp_ms`: of its records. If it is old, so is the producer by Kafka's reckoning."""
        self.timestamp_ms = timestamp_ms
        answer = client.call(
            "init_producer_id", 4, transactional_id=None, transaction_timeout_ms=60_000
        )
        assert answer["error_code"] == 0
        self.id = answer["producer_id"]
        self.next_sequence = 0

    def send(self, client: WireClient, sequence: int) -> int:
        """Send one batch without waiting; return the correlation id."""
        records = batch(
            b"%d/%d" % (self.id, sequence),
            timestamp_ms=self.timestamp_ms,
            producer_id=self.id,
            producer_epoch=0,
            sequence=sequence,
        )
        partition = {"index": 0, "records": records}
        return client.send(
            "produce",
            PRODUCE_VERSION,
            transactional_id=None,
            acks=-1,
            timeout_ms=60_000,
            topic_data=[{"name": TOPIC, "partition_data": [partition]}],
        )


def receive(client: WireClient, correlation_id: int) -> int:
    """Return the base offset of an answer without an error."""
    answer = client.receive(codec_of("produce"), PRODUCE_VERSION, correlation_id)
    (topic,) = answer["responses"]
    (partition,) = topic["partition_responses"]
    assert partition["error_code"] == 0
    return int(partition["base_offset"])


def end_offset(client: WireClient) -> int:
    partition = {"partition_index": 0, "timestamp": -1}
    topics = [{"name": TOPIC, "partitions": [partition]}]
    answer = client.call("list_offsets", 4, replica_id=-1, isolation_level=0, topics=topics)
    return int(answer["topics"][0]["partitions"][0]["offset"])


def batches(client: WireClient) -> list[tuple[BatchHeader, list[bytes | None]]]:
    """Return all batches with the values of their records, in log order."""
    pairs: list[tuple[BatchHeader, list[bytes | None]]] = []
    end = end_offset(client)
    offset = 0
    while offset < end:
        partition = {"partition": 0, "fetch_offset": offset, "partition_max_bytes": 8 << 20}
        answer = client.call(
            "fetch",
            11,
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=8 << 20,
            session_id=0,
            session_epoch=-1,
            topics=[{"topic": TOPIC, "partitions": [partition]}],
        )
        records = answer["responses"][0]["partitions"][0]["records"]
        for position, header in iterate_headers(records):
            decoded = decode_records(memoryview(records)[position:])
            pairs.append((header, [record.value for record in decoded]))
            offset = header.last_offset + 1
    return pairs


def stop(broker: Minibroker, chance: random.Random) -> None:
    """Kill the broker, or stop it: answers may be lost in both, and a stop writes a snapshot."""
    if chance.random() < 0.7:
        broker.kill()
    else:
        broker.stop()


@pytest.mark.parametrize("seed", range(max(1, KILLS // 6)))
def test_five_batches_that_are_sent_again_are_there_once(broker: Minibroker, seed: int) -> None:
    chance = random.Random(seed)
    with WireClient(broker.host, broker.port) as client:
        times = [time.time_ns() // 1_000_000] * (PRODUCERS - 1)
        producers = [RawProducer(client, timestamp_ms) for timestamp_ms in [LONG_AGO_MS, *times]]
    for _ in range(6):
        with (
            WireClient(broker.host, broker.port) as client,
            WireClient(broker.host, broker.port) as other,
        ):
            for _ in range(chance.randrange(20)):
                producer = chance.choice(producers)
                receive(client, producer.send(client, producer.next_sequence))
                producer.next_sequence += 1
            first_end = end_offset(other)
            sent_count = 0
            for producer in producers:
                for sequence in range(IN_FLIGHT):
                    producer.send(client, producer.next_sequence + sequence)
                    sent_count += 1
            target = first_end + chance.randrange(sent_count + 1)
            while end_offset(other) < target:
                pass  # each question waits for its answer
            stop(broker, chance)
        broker.start()
        with WireClient(broker.host, broker.port) as client:
            for producer in chance.sample(producers, PRODUCERS):
                for _ in range(IN_FLIGHT):
                    receive(client, producer.send(client, producer.next_sequence))
                    producer.next_sequence += 1
    with WireClient(broker.host, broker.port) as client:
        all_values = [value for _, values in batches(client) for value in values]
    for producer in producers:
        mine = [value for value in all_values if value and value.startswith(b"%d/" % producer.id)]
        assert mine == [b"%d/%d" % (producer.id, n) for n in range(producer.next_sequence)]
    assert len(all_values) == sum(producer.next_sequence for producer in producers)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_loses_no_record_and_repeats_none(
    broker: Minibroker, client: str, tmp_path: Path
) -> None:
    """Its answers are swallowed, then the broker stops or is killed, again and again.

    A client whose batch is refused may take a new producer id or epoch and send it once more. All
    batches have the first ones.
    """
    reason = missing_sender(client)
    if reason is not None:
        pytest.skip(f"not run: {reason}")
    chance = random.Random(client)
    count = 0
    proxy = SwallowingProxy(broker.address)
    with (
        contextlib.closing(proxy),
        contextlib.closing(
            sender_of(client, proxy.address, TOPIC, tmp_path / "client.log")
        ) as sender,
    ):
        for _ in range(CLIENT_KILLS):
            sender.send(ANSWERED_RECORDS)
            sender.wait()
            count += ANSWERED_RECORDS
            proxy.swallowed = "Produce"
            with WireClient(broker.host, broker.port) as wire:
                sender.send(IN_FLIGHT)
                count_before_stop = count + chance.randrange(IN_FLIGHT + 1)
                while end_offset(wire) < count_before_stop:
                    pass  # each question waits for its answer
                stop(broker, chance)
            count += IN_FLIGHT
            proxy.swallowed = None
            broker.start()
            sender.wait()
        assert sender.outcomes == [f"{number} at {number}" for number in range(count)]
    with WireClient(broker.host, broker.port) as wire:
        pairs = batches(wire)
    assert [values for _, values in pairs] == [[b"%d" % number] for number in range(count)]
    producers = {(header.producer_id, header.producer_epoch) for header, _ in pairs}
    assert len(producers) == 1, producers
    assert [header.base_sequence for header, _ in pairs] == list(range(count))
