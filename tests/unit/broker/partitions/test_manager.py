"""Finding partitions, following the cluster, and appends that the disk refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.partitions.role import Follower, Leader
from minibroker.broker.storage import names
from minibroker.broker.storage.partition_metadata import read_metadata
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, StorageError
from minibroker.kafka.ids import ZERO_TOPIC_ID, TopicId, TopicPartition
from tests.support.in_process import START_MS, batch_of
from tests.support.logs import append_records
from tests.unit.broker.partitions.conftest import Claim, World, code_of, partition_image

if TYPE_CHECKING:
    from pathlib import Path


def test_log_directories_are_shown_with_their_logs(world: World, tmp_path: Path) -> None:
    world.create("t", partition_image(), partition_image())
    (directory,) = world.manager.log_directories()
    assert directory.path == str(tmp_path / "data")
    assert sorted(log.partition for log in directory.logs()) == [0, 1]
    total, usable = directory.space()
    assert total >= usable > 0


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


@pytest.mark.parametrize(
    ("believed", "expected"),
    [
        (-1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (1, ErrorCode.FENCED_LEADER_EPOCH),
        (2, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (3, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_follower_compares_the_leader_epoch_first(
    world: World, believed: int, expected: ErrorCode
) -> None:
    world.create("t", partition_image(epoch=1))
    world.change("t", 0, partition_image(leader=5, epoch=2))
    with pytest.raises(KafkaError) as caught:
        world.manager.get("t", 0, believed)
    assert caught.value.code == expected


def test_a_broker_without_the_partition_compares_no_leader_epoch(world: World) -> None:
    world.create("t", partition_image(leader=5, epoch=2, replicas=(5,)))
    with pytest.raises(KafkaError) as caught:
        world.manager.get("t", 0, 1)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER


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
    partition = world.partition()
    world.change("t", 0, partition_image(epoch=4, isr=(0, 1)))
    assert world.partition() is partition
    assert isinstance(partition.role, Leader)
    assert (partition.leader_epoch, partition.role.metadata_isr) == (4, [0, 1])


def test_added_partitions_are_made(world: World) -> None:
    world.create("t")
    topic = world.image.topics["t"]
    topic.partitions.extend([partition_image(), partition_image(leader=5)])
    world.manager.on_partitions_added(topic, 1)
    assert list(world.manager.of_topic("t")) == [0, 1]


def test_appends_before_a_deletion_are_still_answered(world: World) -> None:
    world.create("t")
    claim = world.append(b"x")
    world.delete("t")
    assert claim.error_code == 0
    assert world.manager.appends.staged == []


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


# Roles.


def test_a_partition_led_elsewhere_follows_with_the_log_that_it_has(world: World) -> None:
    world.create("t")
    world.append(b"x")
    world.manager.commit()
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    assert world.manager.replica("t", 0) is led
    assert led.role == Follower(1, 0, 5)
    assert (led.high_watermark, led.log_end_offset) == (1, 1)
    assert world.manager.high_watermark_of(TopicPartition("t", 0)) == 1
    assert world.manager.of_topic("t") == {}


def test_a_follower_without_a_log_makes_one(world: World) -> None:
    world.create("t", partition_image(leader=5))
    follower = world.manager.replica("t", 0)
    assert follower is not None
    assert follower.role == Follower(0, 0, 5)
    assert list(world.logs.logs) == [("t", 0)]


def test_a_log_goes_when_the_broker_has_no_replica_any_more(world: World) -> None:
    world.create("t", partition_image(leader=5, epoch=1))
    world.change("t", 0, partition_image(leader=5, epoch=2, replicas=(5,)))
    assert world.manager.replica("t", 0) is None
    assert world.logs.logs == {}


def test_a_follower_takes_no_append_and_shows_readers_nothing_new(world: World) -> None:
    world.create("t")
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    with pytest.raises(KafkaError) as caught:
        led.append(memoryview(batch_of(b"x")), 1, START_MS, Claim())
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    append_records(led.log, memoryview(batch_of(b"x")), 1, START_MS)
    led.log.write_staged()
    led.advance_high_watermark(led.log_end_offset)
    assert led.high_watermark == 0
    world.change("t", 0, partition_image(epoch=2))
    assert (world.partition().high_watermark, led.high_watermark) == (1, 1)


def test_an_older_leader_epoch_is_refused(world: World, caplog: pytest.LogCaptureFixture) -> None:
    world.create("t", partition_image(epoch=4))
    world.change("t", 0, partition_image(leader=5, epoch=3))
    assert world.partition().leader_epoch == 4
    world.change("t", 0, partition_image(leader=5, epoch=5))
    world.change("t", 0, partition_image(epoch=4))
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert caplog.text.count("is older than") == 2


def test_an_older_state_of_the_same_epoch_is_refused(world: World) -> None:
    world.create("t", partition_image(partition_epoch=3))
    world.change("t", 0, partition_image(isr=(0, 1), partition_epoch=2))
    role = world.partition().role
    assert isinstance(role, Leader)
    assert role.metadata_isr == [0]


def test_a_replica_that_was_moved_away_is_forgotten(world: World) -> None:
    world.create("t")
    world.change("t", 0, partition_image(leader=5, epoch=1, replicas=(5,)))
    assert world.manager.replica("t", 0) is None
    assert code_of(world, "t", 0) == ErrorCode.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize(("checkpointed", "expected"), [(1, 1), (9, 2), (None, 0)])
def test_a_follower_begins_with_the_checkpointed_high_watermark(
    world: World, checkpointed: int | None, expected: int
) -> None:
    """It is capped at the log's end; a leader of one replica goes on to the end."""
    world.create("t")
    world.append(b"x", b"y")
    world.manager.commit()
    world.manager._topics.clear()  # as after a start
    world.logs.logs[TopicPartition("t", 0)].update_high_watermark(checkpointed or 0)
    world.change("t", 0, partition_image(leader=5, epoch=2))
    replica = world.manager.replica("t", 0)
    assert replica is not None
    assert replica.high_watermark == expected
    world.change("t", 0, partition_image(epoch=3))
    assert replica.high_watermark == 2


def test_a_log_has_the_high_watermark_of_its_own_directory(
    tmp_path: Path,
) -> None:
    """It was offline while a topic was deleted and made again. All that counts as committed there
    is of the earlier one.
    """
    other = tmp_path / "other"
    other.mkdir()
    (other / names.HIGH_WATERMARKS).write_text("0\n1\nt 0 100\n")
    world = World(tmp_path, [str(other)])
    world.create("t", partition_image(replicas=(0, 5), isr=(0, 5)))
    world.append(b"x", b"y")
    world.manager.commit()
    world.manager._topics.clear()  # as after a start
    world.change("t", 0, partition_image(leader=5, epoch=2, replicas=(0, 5)))
    replica = world.manager.replica("t", 0)
    assert replica is not None
    assert (replica.high_watermark, replica.log_end_offset) == (0, 2)
    world.logs.close()


@pytest.mark.parametrize("old_id", [ZERO_TOPIC_ID, b"\3" * 16])
def test_a_log_gets_the_id_that_its_topic_gets(
    world: World, caplog: pytest.LogCaptureFixture, old_id: bytes
) -> None:
    """The topic is older than its id. A start would take a log without one for any topic's."""
    topic = TopicImage("t", TopicId(ZERO_TOPIC_ID), [partition_image()])
    world.image.topics["t"] = topic
    world.manager.on_topic_created(topic)
    log = world.partition().log
    log.place.assign_topic_id(TopicId(old_id))
    new_id = TopicId(b"\2" * 16)
    new_topic = TopicImage("t", new_id, topic.partitions)
    world.image.topics["t"] = world.image.topic_by_id[new_id] = new_topic
    world.manager.on_leadership(new_topic, 0)
    is_other_topic = old_id != ZERO_TOPIC_ID
    expected_id = old_id if is_other_topic else new_id
    assert read_metadata(world.files, log.directory) == expected_id
    assert ("belongs to topic id" in caplog.text) is is_other_topic
    assert world.partition().topic_id == new_id


def test_a_follower_learns_its_topics_configuration(world: World) -> None:
    world.create("t")
    led = world.partition()
    world.change("t", 0, partition_image(leader=5, epoch=1))
    world.dynamic.set_topic("t", {"max.message.bytes": "100"})
    assert led.log.config.max_message_bytes == 100


def test_records_are_not_deleted_in_a_directory_that_fails_with_the_write_before(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next leader has not heard of it: its records would be there again."""
    world.create("t")
    partition = world.partition()
    name = TopicPartition("t", 0)
    monkeypatch.setattr(
        world.manager, "on_storage_error", lambda _error: world.manager.take_offline([name])
    )
    world.append(b"a")
    world.fail_next_write()
    with pytest.raises(KafkaError) as caught:
        world.manager.delete_records(partition, 0)
    assert caught.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
