"""kill -9 during commits of offsets: an answered commit does not go back, and none is invented."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.support.codec import codec_of
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.broker import Minibroker
    from tests.support.wire import Answer

ROUNDS = 6
IN_FLIGHT = 20
COMMITS_MAX = 300
TOPIC = "t"
GROUP = "g"
VERSION = 7
LOAD_IN_PROGRESS = 14
SETTINGS = {"offsets.topic.num.partitions": "3"}


def commit(offset: int) -> dict[str, object]:
    """Return the fields of an OffsetCommit of one partition."""
    part = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
    return {
        "group_id": GROUP,
        "generation_id_or_member_epoch": -1,
        "topics": [{"name": TOPIC, "partitions": [part]}],
    }


def committed_offset(client: WireClient) -> int:
    """Return the group's offset once its partition is loaded, -1 without one."""
    answer: Answer = {"error_code": LOAD_IN_PROGRESS}
    while answer["error_code"] == LOAD_IN_PROGRESS:
        answer = client.call("offset_fetch", 5, group_id=GROUP, topics=None)
    assert answer["error_code"] == 0
    offsets = [
        partition["committed_offset"]
        for topic in answer["topics"]
        for partition in topic["partitions"]
    ]
    return offsets[0] if offsets else -1


def test_no_answered_commit_goes_back(new_broker: Callable[..., Minibroker]) -> None:
    """The broker dies with commits in flight; the next one continues in the same directory."""
    random = Random(8)
    broker = new_broker(settings=SETTINGS)
    with WireClient(broker.host, broker.port) as client:
        topics = [{"name": TOPIC, "num_partitions": 1, "replication_factor": 1}]
        client.call("create_topics", 4, topics=topics)
        client.call("find_coordinator", 0, key=GROUP)
    next_offset = 0
    for _ in range(ROUNDS):
        count = random.randrange(1, COMMITS_MAX)
        with WireClient(broker.host, broker.port) as client:
            answered = committed_offset(client)
            codec = codec_of("offset_commit")
            waiting: list[tuple[int, int]] = []
            for _ in range(count):
                request = client.send("offset_commit", VERSION, **commit(next_offset))
                waiting.append((next_offset, request))
                next_offset += 1
                if len(waiting) == IN_FLIGHT:
                    offset, correlation_id = waiting.pop(0)
                    answer = client.receive(codec, VERSION, correlation_id)
                    assert answer["topics"][0]["partitions"][0]["error_code"] == 0
                    answered = offset
            broker.kill()
        broker.start()
        with WireClient(broker.host, broker.port) as client:
            committed = committed_offset(client)
        assert answered <= committed < next_offset
