"""Helpers for tests in which Kafka and minibroker take turns on one chroot and directory."""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING

from kazoo.client import KazooClient

from tests.support.log_tool import LogTool
from tests.support.waiting import wait_until
from tests.support.wire import WireClient
from tests.support.zookeeper_sessions import end_session

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.peers import KafkaPeer, ZooKeeper

SETTINGS = {"num.partitions": "1", "log.segment.bytes": "20000", "log.index.interval.bytes": "500"}

WAIT_S = 60
METADATA = "__cluster_metadata-0"
COMPLAINT = re.compile(
    r"mismatch|corrupt|exception|error|not found|failed|isn't|does not|non-?consecutive",
    re.IGNORECASE,
)

GAP_OF_CLEANER = re.compile(r"Non-consecutive offsets in .*/__[^/]*/")
"""Internal topics are compacted."""


def assert_dump_is_clean(log_dir: Path) -> None:
    """Run DumpLogSegments over every segment, index and snapshot of every partition directory.

    Kafka's metadata are left out: DumpLogSegments calls the indexes of its Raft client corrupt.
    """
    directories = sorted(
        path for path in log_dir.glob("*-*") if path.is_dir() and path.name != METADATA
    )
    assert directories
    with LogTool() as tool:
        for suffix, options in (
            ("*.log", ["--deep-iteration", "--verify-index-only"]),
            ("*.log", ["--deep-iteration", "--print-data-log"]),
            ("*index", ["--index-sanity-check"]),
            ("*.snapshot", []),
        ):
            files = [str(path) for directory in directories for path in directory.glob(suffix)]
            if not files:
                continue
            dump = tool.dump("--files", ",".join(files), *options)
            assert not dump.failed, dump.errors
            text = dump.output + dump.errors
            complaints = [
                line
                for line in text.splitlines()
                if COMPLAINT.search(line) and not GAP_OF_CLEANER.match(line)
            ]
            assert not complaints, "\n".join(complaints[:20])
            assert all(f"Dumping {path}" in text for path in files)


def wait_until_unregistered(zookeeper: ZooKeeper, chroot: str, broker_id: int = 0) -> None:
    """End the session that a dead broker left behind, and wait until its registration is gone.

    So no test waits for the time-out of a session, which may be long: a short one ends while its
    broker lives, if the machine is busy.
    """
    disappearance = threading.Event()
    client = KazooClient(f"{zookeeper.connect}/{chroot}")
    client.start(WAIT_S)
    try:
        stat = client.exists(f"/brokers/ids/{broker_id}", watch=lambda _: disappearance.set())
        if stat is not None:
            end_session(zookeeper.connect, stat.ephemeralOwner)
            assert disappearance.wait(WAIT_S), "the broker's session did not end"
    finally:
        client.stop()
        client.close()


def wait_until_tree_is_read(kafka: KafkaPeer) -> None:
    """Wait until Kafka answers for each topic of its tree that is not about to be deleted.

    A controller of 3.9 sends the brokers first, the topics later: in between, Metadata names a
    broker and a controller, and a topic of the tree is answered as an unknown one.
    """
    client = KazooClient(kafka.zookeeper)
    client.start(WAIT_S)
    try:
        topics = set(client.get_children("/brokers/topics"))
        topics -= set(client.get_children("/admin/delete_topics"))
    finally:
        client.stop()
        client.close()

    def is_read() -> bool:
        answer = wire.call("metadata", 1, topics=None)
        return topics <= {topic["name"] for topic in answer["topics"]}

    with WireClient(kafka.host, kafka.port) as wire:
        wait_until(is_read, "Kafka has read the topics of its tree", WAIT_S)
