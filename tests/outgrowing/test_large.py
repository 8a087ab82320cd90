"""Two thousand topics with ten thousand partitions change sides in seconds.

`make outgrow` runs it; other runs leave it out (`conftest.py`).
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.outgrowing.reading import WAIT_S
from tests.outgrowing.view import differences, view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.outgrowing.sides import OneCluster

TOPICS = 2000
PARTITIONS = 5
AT_ONCE = 100
HAND_OVER_S = 5.0
LEADERS_S = 1_200.0
"""Kafka makes each partition's leader by itself, and writes a file to the disk for it: 35 ms where
others use the disk, too."""


@pytest.mark.java
@pytest.mark.slow
def test_ten_thousand_partitions_are_handed_over_in_seconds(
    new_cluster: Callable[..., OneCluster],
) -> None:
    cluster = new_cluster("4.4")
    cluster.serve()
    admin = AdminClient({**cluster.clients()})
    for first in range(0, TOPICS, AT_ONCE):
        names = (f"topic-{number}" for number in range(first, first + AT_ONCE))
        for future in admin.create_topics(
            [NewTopic(name, PARTITIONS, 1) for name in names]
        ).values():
            future.result(WAIT_S)
    first_view = view_of(cluster.address, ready_s=LEADERS_S)
    assert len(first_view["partitions"]) == TOPICS * PARTITIONS
    cluster.stop()
    there_s = cluster.hand_over().seconds
    started_s = time.monotonic()
    cluster.kafka()
    start_s = time.monotonic() - started_s
    after = view_of(cluster.address, ready_s=LEADERS_S)
    assert differences(first_view, after) == []
    cluster.stop()
    back_s = cluster.take_back().seconds
    cluster.serve()
    assert differences(after, view_of(cluster.address, ready_s=LEADERS_S)) == []
    sys.stdout.write(
        f"hand-over {there_s:.1f} s, start of Kafka {start_s:.1f} s, take-back {back_s:.1f} s\n"
    )
    assert there_s <= HAND_OVER_S
