"""Records with and without everything that a record may have, for tests of `compare` and `copy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tests.pipeline import topics

if TYPE_CHECKING:
    from collections.abc import Iterable

RECORDS = 400
PARTITIONS = 3
KEYS = 23
KEEP_FOR_EVER = {"retention.ms": "-1"}
BEGUN_MS = 1_700_000_000_000


class WriteOutcome(NamedTuple):
    """One record, and its partition."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...]
    partition: int


def outcomes() -> list[WriteOutcome]:
    """Return records with and without keys, values and headers, and one that is there twice."""
    first_outcomes = [
        WriteOutcome(
            None if number % 11 == 0 else b"key %d" % (number % KEYS),
            None if number % 13 == 0 else b"value %d" % number,
            BEGUN_MS + number,
            (("n", b"%d" % number), ("null", None)) if number % 3 == 0 else (),
            number % KEYS % PARTITIONS,
        )
        for number in range(RECORDS)
    ]
    return [*first_outcomes, first_outcomes[7]]


def write(
    address: str, topic: str, records: Iterable[WriteOutcome], partitions: int = PARTITIONS
) -> None:
    """Make a topic with the records."""
    topics.create(address, topic, partitions, KEEP_FOR_EVER)
    client = topics.producer(address)
    for record in records:
        client.produce(
            topic,
            record.value,
            record.key,
            partition=record.partition % partitions,
            timestamp=record.timestamp_ms,
            headers=list(record.headers) or None,
        )
    assert client.flush(topics.SECONDS) == 0


def copy_in_transactions(address: str, topic: str, compression: str = "none") -> None:
    """Write the same records; between the transactions with them others are aborted."""
    topics.create(address, topic, PARTITIONS, KEEP_FOR_EVER)
    client = topics.producer(address, transactional_id=f"of-{topic}", compression_type=compression)
    client.init_transactions(topics.SECONDS)
    records = outcomes()
    for start in range(0, len(records), 100):
        client.begin_transaction()
        client.produce(topic, b"never", partition=0)
        assert client.flush(topics.SECONDS) == 0
        client.abort_transaction(topics.SECONDS)
        client.begin_transaction()
        for record in records[start : start + 100]:
            client.produce(
                topic,
                record.value,
                record.key,
                partition=record.partition,
                timestamp=record.timestamp_ms,
                headers=list(record.headers) or None,
            )
        client.commit_transaction(topics.SECONDS)
