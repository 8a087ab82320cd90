"""kafka-replica-verification: compares the replicas of topics; its JVM runs until it is ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.compat_cluster.tree import WAIT_S
from tests.support import java
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from pathlib import Path


def verify_replicas(bootstrap: str, topics: str, partitions: int, log: Path) -> None:
    """Wait until the tool reports that no replica differs.

    `topics`: a regular expression. `partitions`: of all these topics.
    """
    process = ManagedProcess(
        java.java_command(
            java.KAFKA_39,
            "org.apache.kafka.tools.ReplicaVerificationTool",
            *("--broker-list", bootstrap, "--topics-include", topics),
            *("--report-interval-ms", "100"),
            options=[java.log_option("tools")],
        ),
        log,
    )
    try:
        process.wait_until(
            lambda: "max lag is 0 for partition" in log.read_text(), WAIT_S, "verification"
        )
    finally:
        process.kill()
    text = log.read_text()
    assert "doesn't match" not in text
    assert f"among {partitions} partitions" in text
