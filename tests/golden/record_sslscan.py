"""Records what `sslscan` finds at the listeners of an Apache Kafka 3.9.1 with default settings.

    python -m tests.golden.record_sslscan

Writes `sslscan.json`: key of the certificate → findings of `tests/support/scanning.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from tests.golden.both_kafkas import listeners
from tests.support.peers import KafkaPeer, ZooKeeper
from tests.support.processes import free_port
from tests.support.scanning import KEYS, scan, scanned_settings

RECORDED = Path(__file__).with_name("sslscan.json")


def main() -> None:
    """Record the findings, and write them."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        zookeeper = ZooKeeper(directory / "zookeeper")
        zookeeper.start()
        kafka = KafkaPeer("3.9.1", directory / "kafka", zookeeper=zookeeper.connect)
        ports = {"PLAINTEXT": kafka.port} | {key: free_port() for key in KEYS}
        kafka.settings = {
            **kafka.settings,
            **scanned_settings(directory),
            **listeners(kafka, ports),
        }
        try:
            kafka.start()
            scans = {key: scan(ports[key]) for key in KEYS}
        finally:
            kafka.stop()
            zookeeper.stop()
    RECORDED.write_text(json.dumps(scans, indent=1) + "\n")


if __name__ == "__main__":
    main()
