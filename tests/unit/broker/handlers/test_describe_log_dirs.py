"""DescribeLogDirs: directories, partitions, sizes, room, a disk that is gone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.handlers import describe_log_dirs
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import StorageError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from tests.support.in_process import batch_of
from tests.support.record_requests import produce

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


@pytest.mark.parametrize("version", range(6))
async def test_every_partition_and_its_size(
    running: InProcessBroker, client: RawClient, version: int
) -> None:
    batch = batch_of(b"x" * 100)
    await client.call(produce(batch), 9)
    answer = await client.call(DescribeLogDirsRequest(topics=None), version)
    (directory,) = answer.results
    assert directory.error_code == 0
    assert directory.log_dir == running.settings["log.dirs"]
    (topic,) = directory.topics
    sizes = {part.partition_index: part.partition_size for part in topic.partitions}
    assert (topic.name, sizes) == ("t", {0: len(batch), 1: 0})
    assert all(part.offset_lag == 0 for part in topic.partitions)
    assert not any(part.is_future_key for part in topic.partitions)
    if version >= 4:
        assert directory.total_bytes >= directory.usable_bytes > 0


async def test_a_disk_that_is_gone(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StorageError("gone")

    monkeypatch.setattr(type(running.broker.logs), "space_of", fail)
    (directory,) = (await client.call(DescribeLogDirsRequest(topics=None), 4)).results
    assert directory.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert directory.topics == []


def test_a_log_that_changes_its_directory_meanwhile_is_in_one_of_them() -> None:
    """Others have the loop while the answer is made; a move may end then."""
    log = SimpleNamespace(name=TopicPartition("t", 0), size_bytes=7)
    logs: dict[str, list[Any]] = {"a": [log], "b": []}
    copies: dict[str, list[Any]] = {"a": [], "b": [(log.name, 7, 0)]}

    def directory(path: str) -> SimpleNamespace:
        return SimpleNamespace(
            path=path,
            configured_path=path,
            is_offline=False,
            space=lambda: (2, 1),
            logs=lambda: list(logs[path]),
        )

    services = SimpleNamespace(
        partitions=SimpleNamespace(
            commit=lambda: None, log_directories=lambda: [directory("a"), directory("b")]
        ),
        log_moves=SimpleNamespace(in_directory=lambda path: list(copies[path])),
    )
    context: Any = SimpleNamespace(services=services)
    steps = describe_log_dirs.handle(context, DescribeLogDirsRequest(topics=None))
    next(steps)
    logs["a"], logs["b"], copies["b"] = [], [log], []
    answer = run_all(steps)
    homes = [
        (result.log_dir, partition.is_future_key)
        for result in answer.results
        for topic in result.topics
        for partition in topic.partitions
    ]
    assert homes == [("a", False), ("b", True)]
