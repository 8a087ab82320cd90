"""Partitions over real logs in a temporary directory, without a cluster and without a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import MetadataImage, PartitionImage, TopicImage
from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.dynamic import DynamicConfig
from minibroker.broker.partitions.manager import PartitionManager
from minibroker.broker.partitions.partition import Partition
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.log_manager import LogManager
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicId
from tests.support import images
from tests.support.evidence import MARKED
from tests.support.faulty_files import FaultyFiles
from tests.support.in_process import ManualClock, batch_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from minibroker.kafka.error_codes import ErrorCode

BROKER_ID = 0


class Claim:
    """An answer to Produce as `PartitionManager` sees it."""

    def __init__(self) -> None:
        self.error_code = 0
        self.base_offset = -1
        self.log_append_time_ms = -1
        self.log_start_offset = -1


def partition_image(
    leader: int = BROKER_ID,
    epoch: int = 0,
    isr: tuple[int, ...] = (0,),
    replicas: tuple[int, ...] = (0,),
    partition_epoch: int = 0,
) -> PartitionImage:
    return images.partition_image(
        leader=leader,
        leader_epoch=epoch,
        replicas=list(replicas),
        isr=list(isr),
        partition_epoch=partition_epoch,
    )


class World:
    """A manager with everything it looks at, changed as the cluster would change it."""

    def __init__(self, directory: Path, more_directories: Sequence[str] = ()) -> None:
        data = directory / "data"
        data.mkdir()
        self.clock = ManualClock()
        self.files = FaultyFiles(str(data))
        self.image = MetadataImage()
        self.dynamic = DynamicConfig(BrokerConfig({"log.dirs": str(data)}))
        self.later: list[tuple[int, Callable[[], None]]] = []
        self.change_count = 0
        self.logs = LogManager(
            [str(data), *more_directories],
            clock=self.clock,
            config_of=self.dynamic.topic,
            disk=Disk(
                self.files,
                after=lambda delay_ms, task: self.later.append((delay_ms, task)),
            ),
        )
        self.logs.open()
        self.logs.claim(BROKER_ID, "a-cluster")
        self.logs.load()
        self.manager = PartitionManager(
            broker_id=BROKER_ID,
            image=lambda: self.image,
            logs=self.logs,
            dynamic=self.dynamic,
            on_change=self._on_change,
        )
        self.dynamic.subscribe(self.manager)

    def _on_change(self) -> None:
        self.change_count += 1

    def create(self, name: str, *states: PartitionImage) -> TopicImage:
        topic_id = TopicId(name.encode().ljust(16, b"\1")[:16])
        topic = TopicImage(name, topic_id, list(states or [partition_image()]))
        self.image.topics[name] = self.image.topic_by_id[topic_id] = topic
        self.manager.on_topic_created(topic)
        return topic

    def change(self, name: str, index: int, state: PartitionImage) -> None:
        old = self.image.topics[name]
        partitions = list(old.partitions)
        partitions[index] = state
        topic = TopicImage(name, old.topic_id, partitions)
        self.image.topics[name] = self.image.topic_by_id[old.topic_id] = topic
        self.manager.on_leadership(topic, index)

    def delete(self, name: str) -> None:
        topic = self.image.topics.pop(name)
        del self.image.topic_by_id[topic.topic_id]
        self.manager.on_topic_deleted(topic, MARKED)

    def partition(self, name: str = "t", index: int = 0) -> Partition:
        return self.manager.get(name, index)

    def append(self, *values: bytes, name: str = "t", index: int = 0, acks: int = -1) -> Claim:
        """Stage one batch; what its client would be told."""
        claim = Claim()
        info = self.partition(name, index).append(
            memoryview(batch_of(*values)), acks, self.clock.now_ms(), claim
        )
        claim.base_offset = info.first_offset
        claim.log_start_offset = info.log_start_offset
        return claim

    def fail_next_write(self) -> None:
        self.files.fail_at = self.files.call_count + 1


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.files.fail_at = -1
    world.logs.close()
    world.files.forget_pins()


def code_of(world: World, name: str, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        world.manager.get(name, index)
    return caught.value.code
