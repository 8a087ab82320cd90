"""Records `tests/golden/old_formats.json`: the answers of Apache Kafka 3.9.1 to old clients.

    python -m tests.golden.record_old_formats

Starts ZooKeeper and Kafka from `build/jars`, with `inter.broker.protocol.version=2.8`, under which
`message.format.version` still counts; sends every set of `old_format_cases` and reads it back with
Fetch v1, v3 and v4, from the start and from the middle, and by time. Needs Java; takes about a
minute.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.old_format_cases import sets, topics
from tests.support.message_sets import TIMESTAMP
from tests.support.peers import KafkaPeer, ZooKeeper
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterable

TARGET = Path(__file__).parent / "old_formats.json"
FETCHES = ((1, 0), (3, 0), (4, 0), (1, 2), (3, 2))
"""(Fetch version, offset)."""
TIMES = (TIMESTAMP + 3, TIMESTAMP + 4, TIMESTAMP + 100)


def main() -> None:
    """Record everything."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        zookeeper = ZooKeeper(directory / "zookeeper")
        settings = {"inter.broker.protocol.version": "2.8"}
        kafka = KafkaPeer(
            "3.9.1", directory / "kafka", zookeeper=zookeeper.connect, settings=settings
        )
        try:
            zookeeper.start()
            kafka.start()
            with WireClient(kafka.host, kafka.port) as client:
                recorded = record(client)
        finally:
            kafka.kill()
            zookeeper.stop()
    lines = ",\n".join(f" {json.dumps(row, sort_keys=True)}" for row in recorded)
    TARGET.write_text(f"[\n{lines}\n]\n")


def record(client: WireClient) -> list[dict[str, Any]]:
    """Return one row for each set and topic."""
    create_topics(client, topics())
    rows = []
    for topic in topics():
        for partition, (name, (version, records)) in enumerate(sets(topic).items()):
            rows.append(exchange(client, topic, partition, name, version, records))
    return rows


def create_topics(client: WireClient, names: Iterable[str]) -> None:
    """Create some of the topics, and wait until each partition has a leader that answers."""
    names = list(names)
    answer = client.call(
        "create_topics",
        4,
        timeout_ms=60_000,
        topics=[
            {
                "name": topic,
                "num_partitions": len(sets(topic)),
                "replication_factor": 1,
                "configs": [{"name": key, "value": value} for key, value in settings.items()],
            }
            for topic, settings in topics().items()
            if topic in names
        ],
    )
    assert not any(topic["error_code"] for topic in answer["topics"]), answer
    for topic in names:
        for partition in range(len(sets(topic))):
            while list_offset(client, topic, partition, -1)[0]:
                continue


def exchange(  # noqa: PLR0917
    client: WireClient, topic: str, partition: int, name: str, version: int, records: bytes
) -> dict[str, Any]:
    """Send a set, read it back: a row of the golden file."""
    answer = client.call(
        "produce",
        version,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[{"name": topic, "partition_data": [{"index": partition, "records": records}]}],
    )
    result = answer["responses"][0]["partition_responses"][0]
    row: dict[str, Any] = {
        "topic": topic,
        "set": name,
        "produced": [
            result["error_code"],
            result["base_offset"],
            result.get("log_append_time_ms", -1),
        ],
    }
    if result["error_code"]:
        return row
    row["fetched"] = {
        f"v{fetch_version} from {offset}": fetch(client, topic, partition, fetch_version, offset)
        for fetch_version, offset in FETCHES
    }
    row["found"] = [list_offset(client, topic, partition, time) for time in TIMES]
    return row


def fetch(client: WireClient, topic: str, partition: int, version: int, offset: int) -> list[Any]:
    """Return [error code, records in hexadecimal]."""
    answer = client.call(
        "fetch",
        version,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1 << 20,
        topics=[
            {
                "topic": topic,
                "partitions": [
                    {"partition": partition, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
                ],
            }
        ],
    )
    data = answer["responses"][0]["partitions"][0]
    return [data["error_code"], bytes(data["records"] or b"").hex()]


def list_offset(client: WireClient, topic: str, partition: int, time: int) -> list[int]:
    """Return [error code, timestamp, offset] for a time."""
    answer = client.call(
        "list_offsets",
        1,
        replica_id=-1,
        topics=[{"name": topic, "partitions": [{"partition_index": partition, "timestamp": time}]}],
    )
    part = answer["topics"][0]["partitions"][0]
    return [part["error_code"], part["timestamp"], part["offset"]]


if __name__ == "__main__":
    main()
