"""Records this directory again:

`python -m tests.golden.segments.record` (Java and the jars needed).

Apache Kafka 3.9.1 in ZooKeeper mode writes one small topic, is stopped cleanly, and its log
directory is copied to `kafka-3.9.1/` (only the topic's partition and the files beside it; the lock
is left out). `expected.json` has offset, timestamp, key and value of every produced record.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from tests.support.peers import KafkaPeer, ZooKeeper

FOLDER = Path(__file__).parent
TOPIC = "golden"
FIRST_TIMESTAMP = 1_700_000_000_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPIC_CONFIG = {
    "segment.bytes": "8192",
    "index.interval.bytes": "512",
    "segment.index.bytes": "4096",
    "retention.ms": "-1",
}


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        zookeeper = ZooKeeper(base / "zookeeper")
        zookeeper.start()
        kafka = KafkaPeer("3.9.1", base / "kafka", zookeeper=zookeeper.connect)
        kafka.start()
        expected = _produce(kafka.address)
        kafka.stop()
        zookeeper.stop()
        _copy(kafka.log_dir, FOLDER / "kafka-3.9.1")
    (FOLDER / "expected.json").write_text(json.dumps(expected, indent=0) + "\n")


def _produce(address: str) -> list[dict[str, object]]:
    """Write with five idempotent producers, twelve batches of a codec each; return the records."""
    admin = AdminClient({"bootstrap.servers": address})
    created = admin.create_topics([NewTopic(TOPIC, 1, 1, config=TOPIC_CONFIG)])
    created[TOPIC].result(30)
    expected: list[dict[str, object]] = []
    number = 0
    for codec in CODECS:
        producer = Producer(
            {
                "bootstrap.servers": address,
                "enable.idempotence": True,
                "compression.type": codec,
                "linger.ms": 1000,
            }
        )
        for _ in range(12):
            for _ in range(4):
                timestamp = FIRST_TIMESTAMP + number * 1000 - (number % 7) * 1500
                key, value = f"key-{number}", f"{codec} {number} " * 8
                producer.produce(TOPIC, value, key, timestamp=timestamp)
                expected.append(
                    {"offset": number, "timestamp": timestamp, "key": key, "value": value}
                )
                number += 1
            assert producer.flush(30) == 0
    return expected


def _copy(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for path in source.iterdir():
        if path.is_file() and path.name != ".lock":
            shutil.copy(path, target)
    shutil.copytree(source / f"{TOPIC}-0", target / f"{TOPIC}-0")


if __name__ == "__main__":
    main()
