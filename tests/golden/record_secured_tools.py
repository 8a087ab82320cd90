"""Records what Kafka's tools print on a secured Apache Kafka 3.9.1.

    python -m tests.golden.record_secured_tools

Writes `secured_tools.json`: release of the tools → command → the lines that it printed. The
commands are those of `tests/support/secured_tools.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from tests.golden.both_kafkas import listeners
from tests.support.peers import KafkaPeer, ZooKeeper
from tests.support.processes import free_port
from tests.support.secured_clients import ADMIN, PROTOCOLS, Stores, broker_settings
from tests.support.secured_tools import RELEASES, SETTINGS, play

RECORDED = Path(__file__).with_name("secured_tools.json")


def record(release: str, directory: Path) -> dict[str, list[str]]:
    """Return what the tools of a release print."""
    zookeeper = ZooKeeper(directory / "zookeeper")
    zookeeper.start()
    kafka = KafkaPeer("3.9.1", directory / "kafka", zookeeper=zookeeper.connect)
    stores = Stores(directory)
    ports = {name: free_port() for name in PROTOCOLS} | {ADMIN: kafka.port}
    kafka.settings = {
        **kafka.settings,
        **broker_settings(stores),
        **SETTINGS,
        "authorizer.class.name": ACL_AUTHORIZER,
        **listeners(kafka, ports),
    }
    try:
        kafka.start()
        return play(release, f"127.0.0.1:{ports['SASLTLS']}", stores, directory)
    finally:
        kafka.stop()
        zookeeper.stop()


def main() -> None:
    """Record the tools of both releases, each with a new broker, and write what they printed."""
    outcomes = {}
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as directory:
            outcomes[release] = record(release, Path(directory))
    RECORDED.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    main()
