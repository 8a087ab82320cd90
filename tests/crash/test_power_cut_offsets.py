"""A power cut during commits of offsets with `log.flush.interval.messages=1`.

Afterwards the group has the answered offset or a later one that was in flight. The directory of the
one partition of `__consumer_offsets` gets back its synced state, with none or a part of the rest;
the next broker goes on there.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorRequest
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import OffsetFetchRequest
from tests.support.faulty_files import FaultyFiles
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.in_process import RawClient

ROUNDS = 8
IN_FLIGHT = 7
COMMITS_MAX = 60
LOAD_IN_PROGRESS = 14
SETTINGS = {
    "log.flush.interval.messages": "1",
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    # Segments are rolled, too.
    "offsets.topic.segment.bytes": "4096",
}


class MortalBroker(InProcessBroker):
    """A broker on a disk that loses unsynced bytes and names in a power cut."""

    def __init__(self, directory: Path, settings: Mapping[str, str], files: FaultyFiles) -> None:
        super().__init__(directory, settings, files=files)
        self.files = files

    async def lose_power(self, chance: Random) -> None:
        """Stop the broker and drop unsynced bytes and names: all or a part of them."""
        await self.die()
        self.files.power_cut(
            lambda unsynced: chance.choice([0, 0, chance.randrange(unsynced + 1)]),
            lambda unsynced: chance.choice([0, unsynced, chance.randrange(unsynced + 1)]),
        )
        self.files.forget_pins()


def commit(offset: int, chance: Random) -> OffsetCommitRequest:
    """Return a commit for either way through the handler: metadata needs the general one."""
    partition = OffsetCommitRequestPartition(
        partition_index=0,
        committed_offset=offset,
        committed_metadata=chance.choice(["", "", "metadata"]),
    )
    topics = [OffsetCommitRequestTopic(name="t", partitions=[partition])]
    return OffsetCommitRequest(group_id="g", topics=topics)


async def committed(client: RawClient) -> int:
    """Return the group's offset once its partition is loaded, -1 without one."""
    request = OffsetFetchRequest(group_id="g", topics=None)
    answer = await client.call(request, 5)
    while answer.error_code == LOAD_IN_PROGRESS:
        answer = await client.call(request, 5)
    assert answer.error_code == 0
    offsets = [
        partition.committed_offset for topic in answer.topics for partition in topic.partitions
    ]
    return offsets[0] if offsets else -1


async def test_no_answered_commit_is_lost(tmp_path: Path) -> None:
    chance = Random(6)
    directory = str(tmp_path / "data" / "__consumer_offsets-0")
    answered, sent_offset = -1, 0
    for number in range(ROUNDS):
        async with MortalBroker(tmp_path, SETTINGS, FaultyFiles(directory)) as broker:
            if number == 0:
                await broker.create_topic("t")
            async with await broker.connect() as client:
                if number == 0:
                    assert (await client.call(FindCoordinatorRequest(key="g"), 0)).error_code == 0
                offset = await committed(client)
                assert answered <= offset < max(sent_offset, 1)
                answered = offset
                first = sent_offset
                for _ in range(chance.randrange(1, COMMITS_MAX)):
                    client.send(commit(sent_offset, chance), 7)
                    sent_offset += 1
                    if sent_offset - first > IN_FLIGHT:
                        answer = await client.receive()
                        assert answer.topics[0].partitions[0].error_code == 0
                        answered = sent_offset - IN_FLIGHT - 1
                await broker.lose_power(chance)
    assert answered > IN_FLIGHT
