"""Finding partitions, following the cluster, and appends that the disk refuses."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from minibroker.cluster.image import TopicImage
from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, StorageError
from minibroker.ids import TopicId
from tests.unit.partitions.conftest import partition_image

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.partitions.conftest import World


def code_of(world: World, name: str, index: int) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        world.manager.get(name, index)
    return caught.value.code


# Finding.


def test_a_partition_led_here_is_found(world: World) -> None:
    world.create("t", partition_image(), partition_image())
    assert str(world.manager.get("t", 1)) == "t-1"
    assert world.manager.find("t", 1) is world.manager.get("t", 1)
    assert list(world.manager.of_topic("t")) == [0, 1]


def test_a_partition_that_does_not_exist_is_unknown(world: World) -> None:
    world.create("t")
    assert code_of(world, "t", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(world, "t", -1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(world, "u", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert world.manager.find("u", 0) is None
    assert world.manager.of_topic("u") == {}


def test_a_partition_led_elsewhere_is_not_ours(world: World) -> None:
    world.create("t", partition_image(leader=5), partition_image())
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert world.manager.find("t", 0) is None
    world.manager.get("t", 1)


# Following the cluster.


def test_leadership_comes_and_goes(world: World) -> None:
    world.create("t", partition_image(leader=5))
    world.change("t", 0, partition_image(epoch=1))
    world.append(b"x")
    world.manager.commit()
    world.change("t", 0, partition_image(leader=5, epoch=2))
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.change("t", 0, partition_image(epoch=3))
    assert world.partition().log_end_offset == 1
    assert world.partition().leader_epoch == 3


def test_a_new_epoch_of_the_same_leader_keeps_the_partition(world: World) -> None:
    world.create("t")
    before = world.partition()
    world.change("t", 0, partition_image(epoch=4, isr=(0, 1)))
    assert world.partition() is before
    assert (before.leader_epoch, before.isr_size) == (4, 2)


def test_added_partitions_are_made(world: World) -> None:
    world.create("t")
    topic = world.image.topics["t"]
    topic.partitions.extend([partition_image(), partition_image(leader=5)])
    world.manager.on_partitions_added(topic, 1)
    assert list(world.manager.of_topic("t")) == [0, 1]


def test_a_deleted_topic_is_gone_at_once_and_its_files_later(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    directory = world.partition().log.directory
    world.delete("t")
    assert code_of(world, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert not world.files.exists(directory)
    ((delay_ms, task),) = world.later
    assert delay_ms == 60_000
    task()
    (data,) = world.logs.directories
    assert world.files.exists(data.path)
    assert data.path in directory


async def test_the_logs_of_a_topic_go_durably_before_it_does(world: World) -> None:
    topic = world.create("t", partition_image(), partition_image(), partition_image())
    world.append(b"x")
    world.logs.sync_names([one.path for one in world.logs.directories])
    await world.manager.delete_logs(topic)
    assert "t" in world.image.topics
    world.change("t", 0, partition_image(epoch=1))
    assert code_of(world, "t", 0) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [delay_ms for delay_ms, _ in world.later] == [60_000] * 3
    world.files.power_cut()
    left = world.files.list_directories(world.logs.directories[0].path)
    assert [name.endswith("-delete") for name in left] == [True] * 3
    world.delete("t")
    assert len(world.later) == 3


@pytest.mark.parametrize("call", [1, 3])
async def test_a_disk_that_does_not_let_go_of_a_log_keeps_the_topic_s_mark(
    world: World, call: int
) -> None:
    """The first call renames a directory, the third syncs the names of both."""
    topic = world.create("t", partition_image(), partition_image())
    refused: list[StorageError] = []
    world.manager.on_storage_error = refused.append
    world.files.fail_at = world.files.call_count + call
    with pytest.raises(StorageError):
        await world.manager.delete_logs(topic)
    (error,) = refused
    assert error.is_lasting
    await world.manager.delete_logs(topic)


def test_a_log_that_nobody_leads_goes_with_its_topic(world: World) -> None:
    world.create("t")
    world.change("t", 0, partition_image(leader=-1))
    world.delete("t")
    assert world.logs.logs == {}


def test_the_log_of_a_namesake_stays(world: World) -> None:
    """Its topic is not the one that is deleted, and this broker never led that."""
    world.create("t")
    world.change("t", 0, partition_image(leader=5))
    other = TopicImage("t", TopicId(bytes(15) + b"\7"), [partition_image(leader=5)])
    world.manager.on_topic_deleted(other)
    assert list(world.logs.logs) == [("t", 0)]


def test_a_topic_of_the_same_name_begins_empty(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    world.delete("t")
    world.create("t")
    assert world.partition().log_end_offset == 0


def test_appends_before_a_deletion_are_still_answered(world: World) -> None:
    world.create("t")
    claim = world.append(b"x")
    world.delete("t")
    assert claim.error_code == 0
    assert world.manager.staged == []


def test_a_log_that_cannot_be_made_is_offline_and_others_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create_log = world.logs.create_log

    def failing(topic: str, *args: object) -> object:
        if topic == "bad":
            raise StorageError("no room")
        return create_log(topic, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(world.logs, "create_log", failing, raising=True)
    world.create("bad")
    world.create("good")
    assert code_of(world, "bad", 0) == ErrorCode.KAFKA_STORAGE_ERROR
    world.manager.get("good", 0)
    assert "bad-0" in caplog.text
    monkeypatch.setattr(world.logs, "create_log", create_log)
    world.change("bad", 0, partition_image(epoch=1))
    world.manager.get("bad", 0)


def test_a_topics_configuration_reaches_its_logs_at_once(world: World) -> None:
    world.create("t")
    world.create("u")
    world.dynamic.set_topic("t", {"max.message.bytes": "100"})
    with pytest.raises(KafkaError) as caught:
        world.append(b"x" * 200)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE
    world.append(b"x" * 200, name="u")
    world.dynamic.set_topic("t", {})
    world.append(b"x" * 200)


def test_a_brokers_default_reaches_every_log(world: World) -> None:
    world.create("t")
    world.create("u")
    world.dynamic.set_broker({"message.max.bytes": "100"})
    for name in ("t", "u"):
        with pytest.raises(KafkaError):
            world.append(b"x" * 200, name=name)


def test_log_directories_are_shown_with_their_logs(world: World, tmp_path: Path) -> None:
    world.create("t", partition_image(), partition_image())
    (directory,) = world.manager.log_directories()
    assert directory.path == str(tmp_path / "data")
    assert sorted(log.partition for log in directory.logs()) == [0, 1]
    total, usable = directory.space()
    assert total >= usable > 0


# Appends.


def test_an_append_is_seen_after_the_commit(world: World) -> None:
    world.create("t")
    claim = world.append(b"a", b"b")
    assert world.partition().high_watermark == 0
    world.manager.commit()
    assert world.partition().high_watermark == 2
    assert (claim.error_code, claim.base_offset) == (0, 0)
    assert world.change_count == 1


def test_a_commit_of_nothing_does_nothing(world: World) -> None:
    world.create("t")
    world.manager.commit()
    assert world.change_count == 0


def test_a_failed_write_fails_what_it_held_and_nothing_else(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("t", partition_image(), partition_image())
    lost = [world.append(b"a"), world.append(b"b")]
    kept = world.append(b"c", index=1)
    world.fail_next_write()
    world.manager.commit()
    for claim in lost:
        assert claim.error_code == ErrorCode.KAFKA_STORAGE_ERROR
        assert (claim.base_offset, claim.log_start_offset) == (-1, -1)
    assert (kept.error_code, kept.base_offset) == (0, 0)
    assert world.partition(index=0).high_watermark == 0
    assert world.partition(index=1).high_watermark == 1
    errors = [r for r in caplog.records if r.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "t-0" in errors[0].getMessage()
    again = world.append(b"a")
    world.manager.commit()
    assert (again.error_code, again.base_offset) == (0, 0)


def test_what_was_written_before_the_failure_is_not_called_lost(world: World) -> None:
    world.create("t")
    written = world.append(b"a")
    world.partition().log.write_staged()
    lost = world.append(b"b")
    world.fail_next_write()
    world.manager.commit()
    assert (written.error_code, written.base_offset) == (0, 0)
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_fails_inside_the_log_takes_the_staged_ones_with_it(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    world.fail_next_write()
    world.append(b"x" * 600_000)
    with pytest.raises(KafkaError) as caught:
        world.append(b"x" * 600_000)  # more than is staged without writing
    assert caught.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    second = world.append(b"b")
    world.manager.commit()
    assert (second.error_code, second.base_offset) == (0, 0)
    assert first.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert world.partition().high_watermark == 1


def test_an_append_that_somebody_else_failed_to_write_is_lost_although_its_offset_is_taken(
    world: World,
) -> None:
    """Retention, the cleaner and moves write what is staged, too; a later append then gets the
    offset of the one that was lost."""
    world.create("t")
    lost = world.append(b"a")
    world.fail_next_write()
    with pytest.raises(StorageError):
        world.partition().log.write_staged()
    written = world.append(b"b")
    world.manager.commit()
    assert lost.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert (written.error_code, written.base_offset) == (0, 0)
    assert world.partition().high_watermark == 1


def test_a_repetition_of_a_lost_batch_is_lost_too(world: World) -> None:
    world.create("t")
    first = world.append(b"a")
    second = world.append(b"a")
    world.fail_next_write()
    world.manager.commit()
    assert {first.error_code, second.error_code} == {ErrorCode.KAFKA_STORAGE_ERROR}


def test_reading_writes_what_is_staged_first(world: World) -> None:
    world.create("t")
    claim = world.append(b"a")
    read = world.partition().read(0, 1000, isolation_level=0, min_one_batch=True)
    assert len(read.records) > 0
    assert claim.error_code == 0
    assert world.manager.staged == []
