"""`offsets.commit.timeout.ms`: an answer of a coordinator waits for followers, and not for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.kafka.error_codes import ErrorCode
from minibroker.testing import Cluster
from tests.support.codec import codec_of
from tests.support.waiting import wait_until
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC = "__consumer_offsets"
WAIT_S = 180
TIMEOUT_S = 600
"""Far more than the machine needs for anything: only a move of the clock makes it pass."""
SETTINGS = {
    "offsets.commit.timeout.ms": TIMEOUT_S * 1000,
    "replica.lag.time.max.ms": 100 * TIMEOUT_S * 1000,
}
COMMIT_VERSION = 7
JOIN_VERSION = 3


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers; broker 0 coordinates every group."""
    with Cluster(3, topics=["t"], config=SETTINGS) as started:
        with client_of(started) as client:
            wait_until(lambda: finds(client), "the groups have a coordinator", WAIT_S)
            started.wait_until_in_sync(WAIT_S)
            started.make_leader(0, TOPIC)
            wait_until(lambda: commit(client, 1) == ErrorCode.NONE, "offset 1", WAIT_S)
        yield started


def client_of(cluster: Cluster) -> WireClient:
    return WireClient(*cluster.node(0).address, timeout_s=WAIT_S)


def finds(client: WireClient) -> bool:
    code: int = client.call("find_coordinator", 1, key="g", key_type=0)["error_code"]
    return code == ErrorCode.NONE


def offsets(offset: int) -> dict[str, Any]:
    """Return the fields of a commit for partition 0 of topic t, by no member."""
    partition = {"partition_index": 0, "committed_offset": offset}
    return {"group_id": "g", "topics": [{"name": "t", "partitions": [partition]}]}


def code_of(answer: dict[str, Any]) -> int:
    """Return the code of the only partition of an answer."""
    code: int = answer["topics"][0]["partitions"][0]["error_code"]
    return code


def commit(client: WireClient, offset: int) -> int:
    return code_of(client.call("offset_commit", COMMIT_VERSION, **offsets(offset)))


def committed(client: WireClient) -> int:
    topics = [{"name": "t", "partition_indexes": [0]}]
    answer = client.call("offset_fetch", 5, group_id="g", topics=topics)
    offset: int = answer["topics"][0]["partitions"][0]["committed_offset"]
    return offset


def log_end(cluster: Cluster) -> int:
    partitions = cluster.node(0).app.partitions
    end: int = cluster.call(lambda: partitions.get(TOPIC, 0).log_end_offset)
    return end


def test_answers_that_wait_for_a_follower_that_is_cut_off_time_out(cluster: Cluster) -> None:
    """Both are in the log, and count when the follower has them."""
    protocol = {"name": "range", "metadata": b""}
    joining = {
        "group_id": "new",
        "session_timeout_ms": 30_000,
        "rebalance_timeout_ms": 30_000,
        "protocol_type": "consumer",
        "protocols": [protocol],
    }
    with client_of(cluster) as committer, client_of(cluster) as joiner, client_of(cluster) as other:
        with cluster.cut(0, 2) as link:
            link.wait(1, WAIT_S)
            old_end = log_end(cluster)
            commit_id = committer.send("offset_commit", COMMIT_VERSION, **offsets(2))
            join_id = joiner.send("join_group", JOIN_VERSION, **joining)
            wait_until(lambda: log_end(cluster) == old_end + 2, "both are in the log", WAIT_S)
            cluster.clock.advance(seconds=TIMEOUT_S)
            answer = committer.receive(codec_of("offset_commit"), COMMIT_VERSION, commit_id)
            assert code_of(answer) == ErrorCode.COORDINATOR_NOT_AVAILABLE
            joined = joiner.receive(codec_of("join_group"), JOIN_VERSION, join_id)
            assert joined["error_code"] == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert committed(other) == 1
            assert cluster.in_sync(TOPIC) == [0, 1, 2]
        wait_until(lambda: committed(other) == 2, "the late offset counts", WAIT_S)
        assert commit(other, 3) == ErrorCode.NONE
