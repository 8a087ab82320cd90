"""A coordinator's journal: hashing, appending, loading, and what a broken disk becomes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker import slices
from minibroker.broker.cluster.image import TopicImage
from minibroker.broker.partitions.journal import JournalState
from minibroker.broker.partitions.journal_partition import RECORDS_AT_ONCE, coordinator_error
from minibroker.broker.slices import run_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.record import Record, decode_records
from tests.support.evidence import MARKED
from tests.support.logs import marker_of
from tests.support.message_sets import message
from tests.support.turns import Turns
from tests.support.waiting import eventually
from tests.unit.broker.partitions.conftest import Claim, partition_image
from tests.unit.broker.partitions.journal_bench import TOPIC, Bench

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.records.batch import BatchHeader
    from tests.unit.broker.partitions.conftest import World


def error_of(call: Callable[[], object]) -> ErrorCode:
    with pytest.raises(KafkaError) as caught:
        call()
    return caught.value.code


@pytest.mark.parametrize(
    ("key", "index"),
    [
        ("", 0),
        ("hello", 99162322 % 50),
        ("polygenelubricants", 0),  # the smallest int: Utils.abs makes it 0
        ("zz-negative", 1494505438 % 50),  # -1494505438
        ("\N{GRINNING FACE}", 1772899 % 50),  # two code units: 0xd83d * 31 + 0xde00
    ],
)
def test_the_hash_of_the_id_picks_the_partition(world: World, key: str, index: int) -> None:
    """50 partitions, as the topic would be created with, and as many as it has once it is there."""
    bench = Bench(world)
    assert bench.journal.partition_of(key) == index
    world.create(TOPIC)
    assert bench.journal.partition_of(key) == 0


async def test_the_topic_is_created_as_kafka_does_and_once(world: World) -> None:
    bench = Bench(world)
    bench.journal.start()
    topic = await bench.journal.ensure_topic()
    assert await bench.journal.ensure_topic() is topic
    assert bench.cluster.created == [
        (
            TOPIC,
            50,
            1,
            {
                "cleanup.policy": "compact",
                "compression.type": "producer",
                "segment.bytes": "104857600",
            },
        )
    ]
    assert bench.journal.state_of(49) is JournalState.ACTIVE
    assert len(bench.journal.active_indexes()) == 50


@pytest.mark.parametrize(
    "refusal",
    [
        KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "one broker, three replicas"),
        CoordinationError("the tree is out of reach"),
    ],
)
async def test_a_topic_that_cannot_be_created_is_a_retriable_error(
    world: World, refusal: Exception
) -> None:
    bench = Bench(world)
    bench.cluster.refusal = refusal
    with pytest.raises(KafkaError) as caught:
        await bench.journal.ensure_topic()
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE


def test_a_partition_led_elsewhere_is_not_served(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC, partition_image(leader=7))
    bench.journal.start()
    assert bench.journal.state_of(0) is None
    assert error_of(lambda: bench.journal.check_active(0)) == ErrorCode.NOT_COORDINATOR
    assert error_of(lambda: bench.append(0, [(b"k", b"v")])) == ErrorCode.NOT_COORDINATOR


def test_an_empty_partition_is_active_at_once(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC, partition_image(epoch=4))
    bench.journal.start()
    assert bench.listener.events == ["loaded 0"]
    bench.journal.check_active(0)
    assert bench.journal.leader_epoch_of(0) == 4


def test_an_append_is_in_the_log_when_it_returns(world: World) -> None:
    bench = Bench(world, codec=1)
    world.create(TOPIC, partition_image(epoch=4))
    bench.journal.start()
    assert bench.append(0, [(b"a", b"1"), (b"b", None)]) == 0
    assert bench.append(0, [(b"c", b"3")]) == 2
    partition = world.partition(TOPIC)
    assert partition.high_watermark == 3
    content = partition.read(0, 10_000, isolation_level=0)
    header = read_header(content.records)
    now_ms = world.clock.now_ms()
    assert (header.leader_epoch, header.codec, header.producer_id) == (4, 1, -1)
    assert decode_records(content.records) == [
        Record(0, now_ms, b"a", b"1"),
        Record(1, now_ms, b"b", None),
    ]


def test_a_transactional_append_belongs_to_its_producer(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC)
    bench.journal.start()
    bench.append(0, [(b"a", b"1")], producer_id=9, producer_epoch=3)
    partition = world.partition(TOPIC)
    content = partition.read(0, 10_000, isolation_level=0)
    header = read_header(content.records)
    assert (header.producer_id, header.producer_epoch, header.is_transactional) == (9, 3, True)
    assert partition.last_stable_offset == 0


def test_staged_appends_are_told_in_order_once_they_are_written(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC, partition_image(), partition_image())
    bench.journal.start()
    outcomes: list[object] = []
    for index in (0, 1, 0):
        bench.journal.stage(
            index,
            run_all(bench.journal.batch_of([(b"k", b"v")])),
            on_written=lambda offset, index=index: outcomes.append((index, offset)),  # type: ignore[misc]
            on_failed=outcomes.append,
        )
    assert outcomes == []
    assert world.partition(TOPIC).log_end_offset == 0
    bench.journal.flush()
    assert sorted(outcomes) == [(0, 0), (0, 1), (1, 0)]  # type: ignore[type-var]
    assert outcomes.index((0, 0)) < outcomes.index((0, 1))


def test_a_disk_that_refuses_fails_the_staged_appends_alone(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC)
    bench.journal.start()
    bench.append(0, [(b"a", b"1")])
    outcomes: list[object] = []
    batch = run_all(bench.journal.batch_of([(b"b", b"2")]))
    bench.journal.stage(0, batch, on_written=outcomes.append, on_failed=outcomes.append)
    world.fail_next_write()
    world.manager.commit()
    assert outcomes == [ErrorCode.NOT_COORDINATOR]
    world.fail_next_write()
    assert error_of(lambda: bench.append(0, [(b"b", b"2")])) == ErrorCode.NOT_COORDINATOR
    world.files.fail_at = -1
    assert bench.append(0, [(b"c", b"3")]) == 1
    assert outcomes == [ErrorCode.NOT_COORDINATOR]


def test_errors_of_the_log_are_told_as_the_coordinator_does(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC, partition_image(replicas=(0, 1)))
    world.dynamic.set_topic(TOPIC, {"min.insync.replicas": "2", "max.message.bytes": "500"})
    bench.journal.start()
    small, large = [(b"a", b"1")], [(b"a", bytes(1000))]
    assert error_of(lambda: bench.append(0, small)) == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert bench.append(0, small, required_acks=0) == 0
    code = error_of(lambda: bench.append(0, large, required_acks=0))
    assert code == ErrorCode.MESSAGE_TOO_LARGE
    late = coordinator_error(ErrorCode.REQUEST_TIMED_OUT)
    assert late == ErrorCode.COORDINATOR_NOT_AVAILABLE


async def test_records_are_replayed_in_order_off_the_loop(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several parts, a marker, and what is appended by others while the load runs."""
    monkeypatch.setattr("minibroker.broker.partitions.journal.LOAD_BYTES", 200)
    writer = Bench(world)
    world.create(TOPIC)
    writer.journal.start()
    for number in range(10):
        writer.append(0, [(b"k%d" % number, b"v")])
    writer.append(0, [(b"t", b"v")], producer_id=9, producer_epoch=0)
    bench = Bench(world, decode=lambda _header, records: [record.key for record in records])
    bench.listener.on_batch = (  # type: ignore[method-assign]
        lambda index, header, records: bench.listener.batches.append(
            (index, header.base_offset, [(header.is_control, key) for key in records])
        )
    )
    bench.journal.start()
    assert bench.listener.batches == []
    code = error_of(lambda: bench.journal.check_active(0))
    assert code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    bench.run_worker()
    marker = marker_of(9, timestamp_ms=world.clock.now_ms())
    partition = world.partition(TOPIC)
    partition.append(marker, -1, world.clock.now_ms(), Claim(), origin="coordinator")
    world.manager.commit()
    await bench.load()
    assert bench.listener.events == ["loaded 0"]
    assert [offset for _, offset, _ in bench.listener.batches] == list(range(12))
    flags = [records[0][0] for _, _, records in bench.listener.batches]
    assert flags == [False] * 11 + [True]


async def test_it_is_loaded_to_the_end_of_the_log_not_to_the_high_watermark(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records that wait for their fsync were decided, and a part in the middle may be one."""
    monkeypatch.setattr("minibroker.broker.partitions.journal.LOAD_BYTES", 100)
    writer = Bench(world)
    world.create(TOPIC)
    writer.journal.start()
    for key in (b"a", b"b", b"c"):
        writer.append(0, [(key, b"v")])
    world.partition(TOPIC).log.update_high_watermark(1)
    bench = Bench(world)
    bench.journal.start()
    await bench.load()
    assert bench.listener.keys() == [b"a", b"b", b"c"]
    assert bench.journal.is_active(0)


async def test_staged_records_are_loaded_too(world: World) -> None:
    world.create(TOPIC)
    world.append(b"x", name=TOPIC)
    bench = Bench(world)
    bench.journal.start()
    await bench.load()
    assert [offset for _, offset, _ in bench.listener.batches] == [0]


async def test_a_gap_at_the_end_comes_from_compaction_or_damage(world: World) -> None:
    writer = Bench(world)
    world.create(TOPIC, partition_image(), partition_image())
    writer.journal.start()
    for index in (0, 1):
        for _ in range(2):
            writer.append(index, [(b"k", b"v")])
    compacted, damaged = (world.partition(TOPIC, index).log for index in (0, 1))
    compacted.roll()
    for log in (compacted, damaged):  # as if the first segment had ended there
        log.log_end_offset = log._tail.next_offset = 5
    bench = Bench(world)
    bench.journal.start()
    await bench.load()
    assert bench.journal.state_of(0) is JournalState.ACTIVE
    assert bench.journal.state_of(1) is JournalState.FAILED


@pytest.mark.parametrize("place", ["on_batch", "on_loaded", "decode"])
async def test_a_failed_load_is_repeated_with_the_next_epoch(world: World, place: str) -> None:
    """As in Kafka 4, the same epoch again changes nothing."""
    writer = Bench(world)
    world.create(TOPIC)
    writer.journal.start()
    writer.append(0, [(b"k", b"v")])
    broken = True

    def fail_at(step: str) -> None:
        if broken and step == place:
            raise ValueError("a bug")

    def decode(_header: BatchHeader, records: list[Record]) -> list[Record]:
        fail_at("decode")
        return records

    bench = Bench(world, decode=decode)
    listener = bench.listener
    take_batch, end_load = listener.on_batch, listener.on_loaded

    def on_batch(*batch: Any) -> None:
        fail_at("on_batch")
        take_batch(*batch)

    def on_loaded(index: int) -> None:
        fail_at("on_loaded")
        end_load(index)

    listener.on_batch = on_batch  # type: ignore[method-assign]
    listener.on_loaded = on_loaded  # type: ignore[method-assign]
    bench.journal.start()
    await bench.load()
    assert bench.journal.state_of(0) is JournalState.FAILED
    assert listener.events == ["unloaded 0"]
    broken = False
    listener.batches.clear()
    bench.journal.on_leadership(world.image.topics[TOPIC], 0)
    await bench.load()
    assert bench.journal.state_of(0) is JournalState.FAILED
    world.change(TOPIC, 0, partition_image(epoch=1))
    bench.journal.on_leadership(world.image.topics[TOPIC], 0)
    assert bench.journal.state_of(0) is JournalState.LOADING
    await bench.load()
    assert listener.events == ["unloaded 0", "loaded 0"]
    assert listener.keys() == [b"k"]
    assert bench.append(0, [(b"k", b"v")]) == 1


async def test_messages_of_old_formats_are_replayed(world: World) -> None:
    bench = Bench(world)
    world.dynamic.set_topic(TOPIC, {"message.format.version": "0.9.0"})
    world.create(TOPIC)
    data = memoryview(bytearray(message(b"v", key=b"old", magic=0)))
    world.partition(TOPIC).append(data, -1, world.clock.now_ms(), Claim())
    world.manager.commit()
    bench.journal.start()
    await bench.load()
    assert bench.listener.keys() == [b"old"]
    assert bench.listener.events == ["loaded 0"]


async def test_others_have_the_loop_while_a_partition_loads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two batches, and within a large one."""
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    writer = Bench(world)
    world.create(TOPIC)
    writer.journal.start()
    keys = [b"%d" % number for number in range(2 * RECORDS_AT_ONCE + 1)]
    writer.append(0, [(key, b"v") for key in keys])
    writer.append(0, [(b"last", b"v")])
    bench = Bench(world)
    bench.journal.start()
    bench.run_worker()
    turns = Turns()
    await eventually(lambda: bench.journal.is_active(0))
    assert turns.stop() >= 3
    assert bench.listener.keys() == [*keys, b"last"]
    sizes = [len(records) for _, _, records in bench.listener.batches]
    assert sizes == [RECORDS_AT_ONCE, RECORDS_AT_ONCE, 1, 1]


async def test_a_partition_that_goes_between_two_steps_of_its_load_is_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    writer = Bench(world)
    topic = world.create(TOPIC)
    writer.journal.start()
    for _ in range(3):
        writer.append(0, [(b"k", b"v")])
    bench = Bench(world)
    bench.journal.start()
    bench.run_worker()
    await eventually(lambda: bool(bench.listener.batches))
    replayed = len(bench.listener.batches)
    assert replayed < 3
    bench.journal.on_topic_deleted(topic, MARKED)
    turns = Turns()
    await eventually(lambda: turns.count >= 3)
    turns.stop()
    assert len(bench.listener.batches) == replayed
    assert bench.listener.events == ["unloaded 0"]


async def test_a_partition_that_goes_while_it_loads_is_dropped(world: World) -> None:
    writer = Bench(world)
    world.create(TOPIC)
    writer.journal.start()
    writer.append(0, [(b"k", b"v")])
    bench = Bench(world)
    bench.journal.start()
    world.change(TOPIC, 0, partition_image(leader=7, epoch=1))
    bench.journal.on_leadership(world.image.topics[TOPIC], 0)
    await bench.load()
    assert bench.listener.events == ["unloaded 0"]
    assert bench.listener.batches == []
    world.change(TOPIC, 0, partition_image(epoch=2))
    bench.journal.on_leadership(world.image.topics[TOPIC], 0)
    await bench.load()
    assert bench.listener.keys() == [b"k"]
    assert bench.journal.leader_epoch_of(0) == 2


def test_a_new_epoch_of_the_same_leader_changes_nothing(world: World) -> None:
    bench = Bench(world)
    world.create(TOPIC)
    bench.journal.start()
    world.change(TOPIC, 0, partition_image(epoch=5))
    bench.journal.on_leadership(world.image.topics[TOPIC], 0)
    assert bench.listener.events == ["loaded 0"]
    assert bench.journal.leader_epoch_of(0) == 5
    outcomes: list[object] = []
    batch = run_all(bench.journal.batch_of([(b"k", b"v")]))
    bench.journal.stage(0, batch, on_written=outcomes.append)
    bench.journal.flush()
    assert outcomes == [0]


def test_a_deleted_topic_is_unloaded_and_comes_back_empty(world: World) -> None:
    bench = Bench(world)
    topic = world.create(TOPIC)
    bench.journal.start()
    bench.append(0, [(b"k", b"v")])
    world.delete(TOPIC)
    bench.journal.on_topic_deleted(topic, MARKED)
    assert bench.listener.events == ["loaded 0", "unloaded 0"]
    assert bench.journal.state_of(0) is None
    bench.journal.on_topic_created(world.create(TOPIC))
    assert bench.append(0, [(b"k", b"v")]) == 0


async def test_a_partition_that_cannot_be_applied_is_not_served(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    writer = Bench(world)
    world.create(TOPIC, partition_image(), partition_image())
    writer.journal.start()
    for index in (0, 1):
        writer.append(index, [(b"k%d" % index, b"v")])
    bench = Bench(world)
    bench.listener.fails_on = b"k0"
    bench.journal.start()
    await bench.load()
    assert bench.journal.state_of(0) is JournalState.FAILED
    assert error_of(lambda: bench.journal.check_active(0)) == ErrorCode.NOT_COORDINATOR
    assert bench.journal.active_indexes() == [1]
    assert "cannot be loaded from offset 0 on" in caplog.text


def test_added_partitions_are_served_and_other_topics_do_not_matter(world: World) -> None:
    bench = Bench(world)
    topic = world.create(TOPIC)
    bench.journal.start()
    other = world.create("t")
    bench.journal.on_topic_created(other)
    bench.journal.on_leadership(other, 0)
    bench.journal.on_partitions_added(other, 0)
    bench.journal.on_topic_deleted(other, MARKED)
    bench.journal.on_config_changed("topics", TOPIC)
    grown = TopicImage(TOPIC, topic.topic_id, [*topic.partitions, partition_image()])
    world.image.topics[TOPIC] = grown
    world.manager.on_partitions_added(grown, 1)
    bench.journal.on_partitions_added(grown, 1)
    assert bench.listener.events == ["loaded 0", "loaded 1"]


async def test_a_journal_that_is_closed_while_it_loads_tells_nothing(world: World) -> None:
    """A coordinator's work after a load would reach logs that are closed."""
    world.create(TOPIC)
    bench = Bench(world)
    bench.journal.start()
    bench.append(0, [(b"k", b"v")])
    again = Bench(world)
    again.journal.start()
    again.run_worker()
    again.journal.close()
    await again.load()
    assert again.listener.events == []
    assert again.later == []
