"""Three brokers, each with a replica of every partition: when all are equal, what they logged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.fire.plan import CLUSTER_SETTINGS, PARTITIONS, WAIT_S
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.compat_cluster.tree import ClusterTree

IDS: Final = (0, 1, 2)
TOPICS: Final = {
    "input": PARTITIONS,
    "output": PARTITIONS,
    "__consumer_offsets": int(CLUSTER_SETTINGS["offsets.topic.num.partitions"]),
    "__transaction_state": int(CLUSTER_SETTINGS["transaction.state.log.num.partitions"]),
}
LINES_OF_ERROR: Final = 30


def all_partitions() -> list[tuple[str, int]]:
    """Return topic and number of each partition."""
    return [(topic, number) for topic, count in TOPICS.items() for number in range(count)]


def in_sync(tree: ClusterTree, topic: str, partition: int) -> set[int]:
    """Return the ISR of a partition; none before it has a state."""
    state = tree.state(topic, partition)
    return set() if state is None else set(state["isr"])


def wait_until_in_sync(tree: ClusterTree) -> None:
    """Wait until every replica is in sync."""
    for topic, partition in all_partitions():
        wait_until(
            lambda at=(topic, partition): in_sync(tree, *at) == set(IDS),  # type: ignore[misc]
            f"all replicas of {topic}-{partition} are in sync",
            WAIT_S,
        )


def wait_until_equal(directory_of: Callable[[int], Path]) -> None:
    """Wait until the replicas of each partition have the same bytes.

    Internal topics are compacted, by each broker when it likes, so they are not compared.
    """

    def log_of(broker_id: int, name: str) -> bytes:
        segments = sorted((directory_of(broker_id) / name).glob("*.log"))
        return b"".join(segment.read_bytes() for segment in segments)

    for name in [f"{topic}-{n}" for topic in ("input", "output") for n in range(PARTITIONS)]:
        wait_until(
            lambda name=name: len({log_of(broker_id, name) for broker_id in IDS}) == 1,  # type: ignore[misc]
            f"the replicas of {name} are equal",
            WAIT_S,
        )


def errors_of(broker_id: int, log_path: Path) -> Iterator[str]:
    """Return each error and traceback of a log of minibroker, with the lines behind it."""
    lines = log_path.read_text(errors="replace").splitlines()
    for number, line in enumerate(lines):
        if " ERROR " in line or line.startswith("Traceback"):
            yield f"broker {broker_id}: " + "\n".join(lines[number : number + LINES_OF_ERROR])
