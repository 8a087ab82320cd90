"""Kafka's own tools read what `hand-over` writes and what Kafka adds to it, without complaint."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.outgrowing.administration import Administration
from tests.outgrowing.work import Work
from tests.support import java
from tests.support.taking_over import COMPLAINT, METADATA, assert_dump_is_clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.outgrowing.sides import OneCluster

pytestmark = pytest.mark.java

GAPS_OF_FILE = "Non-consecutive offsets in "
GAP = re.compile(r" +\d+ is followed by")
"""A gap, but for the first record of a segment: the tool says that it follows offset -1."""
SERIOUS = ("] ERROR ", "] FATAL ")


def dump_metadata(directory: Path) -> str:
    """Return what kafka-dump-log prints of the metadata's snapshots and segments. Raises
    AssertionError for a complaint.
    """
    files = [*directory.glob("*.checkpoint"), *directory.glob("*.log")]
    assert files
    output = java.run_java(
        java.TOOLS_43,
        "org.apache.kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder",
        *("--files", ",".join(map(str, sorted(files)))),
    )
    lines = output.splitlines()
    complaints = [
        line for line in lines if COMPLAINT.search(line) and not line.startswith(GAPS_OF_FILE)
    ]
    complaints += [line for line in lines if GAP.match(line)]
    assert not complaints, "\n".join(complaints[:20])
    return output


def test_tools_of_kafka_find_nothing_wrong(new_cluster: Callable[..., OneCluster]) -> None:
    cluster = new_cluster("4.4")
    data = cluster.minibroker.data_dir
    cluster.serve()
    work = Work(cluster.clients(), ["classic", "consumer"])
    work.work(0)
    Administration(cluster.clients(), None, []).change(0)
    cluster.stop()
    cluster.hand_over()
    assert '"name":"grown"' in dump_metadata(data / METADATA)
    assert_dump_is_clean(data)

    cluster.kafka()
    words = ("--bootstrap-server", cluster.address, "describe")
    command = "org.apache.kafka.tools.MetadataQuorumCommand"
    status = java.run_java(java.TOOLS_43, command, *words, "--status")
    assert {"LeaderId: 0", "MaxFollowerLag: 0"} <= {
        " ".join(line.split()) for line in status.splitlines()
    }
    work.work(1)
    work.close()
    cluster.stop()
    assert_dump_is_clean(data)
    dump_metadata(data / METADATA)
    assert [
        line for line in cluster.kafka_log().splitlines() if any(w in line for w in SERIOUS)
    ] == []
