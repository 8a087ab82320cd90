"""The tasks of the sink without Spark: the rows of a task are there once, after any failure."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles
from minibroker.pipeline.kafka.sink import task_markers, transaction
from minibroker.pipeline.kafka.sink.columns import columns as columns_of
from minibroker.pipeline.kafka.sink.marker import Position
from minibroker.pipeline.kafka.sink.options import SinkOptions, parse_options
from minibroker.pipeline.kafka.sink.task_markers import check_not_older
from minibroker.pipeline.kafka.sink.transaction import Transaction
from minibroker.pipeline.kafka.sink.writers import StreamWriter, WriteOutcome, write_rows
from minibroker.testing import Broker
from tests.pipeline import topics
from tests.pipeline.committed import offsets, records, values

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))

pytestmark = [pytest.mark.java, pytest.mark.timeout(900)]


def of(address: str, topic: str | None, **more: str) -> SinkOptions:
    settings = {"kafka.bootstrap.servers": address} | ({"topic": topic} if topic else {})
    return parse_options(settings | {name.replace("_", "."): value for name, value in more.items()})


def at(topic: str, *, batch: int = 0, task: int = 0, tasks: int = 0, run: str = "a") -> Position:
    """Return a position; the query has the name of the test's topic."""
    return Position("test", topic, run, batch, task, tasks)


def rows(*numbers: int, size: int = 2, **columns: list[Any]) -> Iterator[pa.RecordBatch]:
    """Yield values of these numbers, in Arrow batches of `size`."""
    all_columns = {"value": [b"%d" % number for number in numbers], **columns}
    yield from pa.table(all_columns).to_batches(size)


def open_transaction(options: SinkOptions, topic: str) -> Transaction:
    """Return an open transaction, with rows 1 and 2 in the topic."""
    writing = Transaction(options, at(topic))
    writing.__enter__()
    writing.begin()
    for batch in rows(1, 2):
        writing.send_batch(batch, columns_of(batch, topic), None)
    writing.flush()
    return writing


def failing(*numbers: int) -> Iterator[pa.RecordBatch]:
    """Yield like `rows`, and then fail."""
    yield from rows(*numbers)
    raise EOFError("the other side is gone")


def test_a_repeated_micro_batch_is_written_once(address: str, topic: str) -> None:
    topics.create(address, topic, 2)
    options = of(address, topic)
    first = write_rows(options, at(topic), rows(1, 2, 3))
    again = write_rows(options, at(topic), rows(1, 2, 3))
    after_restart = write_rows(options, at(topic, run="b"), rows(1, 2, 3))
    following = write_rows(options, at(topic, batch=1, run="b"), rows(4))

    assert values(address, topic) == [b"1", b"2", b"3", b"4"]
    facts = [
        (outcome.rows, outcome.is_repeated, outcome.is_first)
        for outcome in (first, again, after_restart)
    ]
    assert facts == [(3, False, True), (3, True, False), (3, True, True)]
    assert not following.is_repeated


def test_the_marker_is_a_committed_offset_of_the_task(address: str, topic: str) -> None:
    """The layout that `sink.marker` documents; a topic of one partition serves many tasks."""
    topics.create(address, topic, 1)
    for task in range(3):
        write_rows(of(address, topic), at(topic, batch=7, task=task, tasks=3), rows(*range(task)))

    assert offsets(address, f"test-{topic}-0") == {}, "a task without rows leaves nothing"
    for task in (1, 2):
        [(place, (offset, metadata))] = offsets(address, f"test-{topic}-{task}").items()
        assert (place, offset) == ((topic, 0), 8)
        marker = json.loads(metadata)
        assert marker == marker | {"rows": task, "run": "a", "tasks": 3}
        assert (len(marker["ordered"]), len(marker["row_sum"])) == (32, 16)


def test_a_coordinator_that_starts_is_waited_for(in_process: Broker, topic: str) -> None:
    """A task waits, and so does the driver, which asks for markers of tasks."""
    topics.create(in_process.bootstrap, topic, 1)
    options = of(in_process.bootstrap, topic)
    for ask in (
        lambda: write_rows(options, at(topic), rows(1, 2)),
        lambda: task_markers.read_marker(options, at(topic).name, topic),
    ):
        with (
            in_process.faults.add("OffsetFetch", error="COORDINATOR_LOAD_IN_PROGRESS", times=2),
            in_process.faults.add("OffsetFetch", delay_ms=1000, times=1),
        ):
            assert ask() is not None
    assert values(in_process.bootstrap, topic) == [b"1", b"2"]


def test_a_task_that_fails_leaves_nothing(
    address: str, topic: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Its transaction is open when it fails, and the abort is told as what it is."""
    monkeypatch.setattr(transaction, "BLOCK_BYTES", 1)
    topics.create(address, topic, 2)
    options = of(address, topic)
    with pytest.raises(EOFError):
        write_rows(options, at(topic), failing(1, 2, 3, 4))
    assert values(address, topic) == []
    assert [record for record in caplog.records if "not aborted" in record.getMessage()] == []

    write_rows(options, at(topic), rows(1, 2, 3, 4))

    assert values(address, topic) == [b"1", b"2", b"3", b"4"]


def test_a_task_that_vanishes_is_ended_by_its_next_attempt(address: str, topic: str) -> None:
    """As after kill -9: records are in the topic, and the transaction is open."""
    topics.create(address, topic, 1)
    options = of(address, topic)
    vanished = open_transaction(options, topic)

    outcome = write_rows(options, at(topic), rows(1, 2, 3))

    assert not outcome.is_repeated
    assert values(address, topic) == [b"1", b"2", b"3"]
    vanished.close()


def test_the_older_of_two_attempts_is_fenced(address: str, topic: str) -> None:
    """Speculation, or a driver with a successor: two attempts write the same task."""
    topics.create(address, topic, 2)
    options = of(address, topic)

    def overtaken() -> Iterator[pa.RecordBatch]:
        yield from rows(1, 2)
        write_rows(options, at(topic, run="b"), rows(1, 2, 3, 4))
        yield from rows(3, 4)

    with pytest.raises(PipelineError, match=r"task 0 of micro-batch 0 .* taken over by another"):
        write_rows(options, at(topic), overtaken())

    assert values(address, topic) == [b"1", b"2", b"3", b"4"]
    assert write_rows(options, at(topic), rows(1, 2, 3, 4)).is_repeated


def test_a_writer_that_was_fenced_long_ago_says_so(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic, 1)
    options = of(minibroker_address, topic)
    (more,) = rows(1, 2)
    fenced = open_transaction(options, topic)
    write_rows(options, at(topic, run="b"), rows(1, 2))
    fenced.send_batch(more, columns_of(more, topic), None)
    with pytest.raises(PipelineError, match="taken over by another writer"):
        fenced.flush()
    fenced.close()

    assert values(minibroker_address, topic) == [b"1", b"2"]


def test_a_micro_batch_is_not_repeated_with_other_tasks(address: str, topic: str) -> None:
    """Task 3 of 4 had written; now there are 2. None of them writes."""
    topics.create(address, topic, 2)
    options = of(address, topic)
    for task in range(4):
        write_rows(options, at(topic, batch=0, task=task, tasks=4), rows(task))
    write_rows(options, at(topic, batch=1, task=3, tasks=4), rows(13))
    for task in range(2):
        with pytest.raises(PipelineError, match="begun with 4 tasks, of which task 3 has written"):
            write_rows(options, at(topic, batch=1, task=task, tasks=2), rows(10, 11))
    assert values(address, topic) == [b"0", b"1", b"13", b"2", b"3"]

    for task in range(4):
        write_rows(options, at(topic, batch=1, task=task, tasks=4), rows(10 + task))
    for task in range(6):
        write_rows(options, at(topic, batch=2, task=task, tasks=6), rows(20 + task))

    numbers = [*range(4), *range(10, 14), *range(20, 26)]
    assert values(address, topic) == sorted(b"%d" % number for number in numbers)


def test_more_tasks_than_before_are_noticed_by_the_new_ones(address: str, topic: str) -> None:
    topics.create(address, topic, 2)
    options = of(address, topic)
    for task in range(2):
        write_rows(options, at(topic, task=task, tasks=2), rows(task))
    write_rows(options, at(topic, batch=1, task=1, tasks=2), rows(11))

    with pytest.raises(PipelineError, match=r"begun with 2 tasks.* repeated with 3"):
        write_rows(options, at(topic, batch=1, task=2, tasks=3), rows(12))


def test_rows_that_moved_to_other_tasks_are_noticed(minibroker_address: str, topic: str) -> None:
    """The number of tasks is unknown: the repeated task has other rows."""
    topics.create(minibroker_address, topic, 2)
    options = of(minibroker_address, topic)
    write_rows(options, at(topic), rows(1, 2))

    with pytest.raises(PipelineError, match="wrote 2 rows before and is now repeated with 3"):
        write_rows(options, at(topic, run="b"), rows(1, 2, 3))


def test_a_repeated_task_with_other_contents_is_noticed(address: str, topic: str) -> None:
    """As many rows as before, one of them another one: a count alone would see nothing."""
    topics.create(address, topic, 2)
    options = of(address, topic)
    write_rows(options, at(topic), rows(1, 2, 3, key=[b"a", b"b", b"c"]))

    with pytest.raises(PipelineError, match=r"wrote 3 rows before and is now .* 3 other ones"):
        write_rows(options, at(topic, run="b"), rows(1, 2, 4, key=[b"a", b"b", b"c"]))
    with pytest.raises(PipelineError, match=r"wrote 3 rows before and is now .* 3 other ones"):
        write_rows(options, at(topic, run="b"), rows(1, 2, 3, key=[b"b", b"a", b"c"]))

    shuffled = rows(3, 1, 2, key=[b"c", b"a", b"b"], size=3)
    assert write_rows(options, at(topic, run="b"), shuffled).is_repeated
    assert values(address, topic) == [b"1", b"2", b"3"]


def test_a_task_that_lost_all_its_rows_is_noticed(minibroker_address: str, topic: str) -> None:
    """Task 1 wrote a row before; now task 0 has that row, too."""
    topics.create(minibroker_address, topic, 2)
    options = of(minibroker_address, topic)
    write_rows(options, at(topic, task=1), rows(2))
    messages = [
        write_rows(options, at(topic, task=task, run="b"), rows(*numbers))
        for task, numbers in enumerate([(1, 2), ()])
    ]

    with pytest.raises(PipelineError, match=r"task 1 .* wrote 1 rows before and is now .* with 0"):
        StreamWriter(options).commit(messages, 0)


def test_a_task_that_is_gone_is_noticed_by_the_driver(minibroker_address: str, topic: str) -> None:
    """Three tasks began the batch, and the third one wrote; two repeat it."""
    topics.create(minibroker_address, topic, 2)
    options = of(minibroker_address, topic)
    writer = StreamWriter(options)
    write_rows(options, at(topic, task=2), rows(3, 4))
    messages: list[WriteOutcome] = [
        write_rows(options, at(topic, task=task, run="b"), rows(*range(task + 1)))
        for task in range(2)
    ]

    with pytest.raises(PipelineError, match="task 2 wrote 2 rows, and was repeated with 2"):
        writer.commit(messages, 0)
    messages.append(write_rows(options, at(topic, task=2, run="b"), rows(3, 4)))
    writer.commit(messages, 0)


def test_a_checkpoint_older_than_the_topic_is_refused(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic, 2)
    options = of(minibroker_address, topic)
    write_rows(options, at(topic, batch=5), rows(1))

    with pytest.raises(PipelineError, match="micro-batch 5 already: the checkpoint is older"):
        write_rows(options, at(topic, batch=3), rows(2))


def test_a_run_is_checked_with_the_markers_of_all_tasks(
    minibroker_address: str, topic: str, tmp_path: Path
) -> None:
    """One task of thirty wrote the last batch; each look is at sixteen.

    A transaction that is open is not waited for: its task was killed.
    """
    topics.create(minibroker_address, topic, 2)
    sink_options = {"kafka.bootstrap.servers": minibroker_address, "topic": topic}
    prefixed = {**sink_options, "transactional.id.prefix": "test"}
    for batch, task in ((0, 5), (0, 29), (1, 29)):
        write_rows(parse_options(prefixed), at(topic, batch=batch, task=task), rows(1))

    def check(*numbers: int, query: str = topic) -> None:
        for number in numbers:
            LocalFiles().write(f"{tmp_path}/{query}-{numbers}/offsets/{number}", "")
        check_not_older(prefixed, query, LocalFiles(), f"{tmp_path}/{query}-{numbers}")

    check(0, 1)
    check(query="another")
    for numbers in ((), (0,)):
        with pytest.raises(PipelineError, match="has not begun: the checkpoint is older than"):
            check(*numbers)

    killed = Transaction(of(minibroker_address, topic), at(topic, task=5))
    killed.__enter__()
    killed.begin()
    deadline = time.monotonic() + topics.SECONDS
    killed._session.commit_offset(f"test-{topic}-5", TopicPartition(topic, 0), 9, "", deadline)
    check(0, 1)
    killed.close()


def test_rows_say_where_they_go(address: str, topic: str) -> None:
    """Topic and partition of each row, tombstones, times and headers.

    The first topic has the marker.
    """
    other = f"{topic}-other"
    topics.create(address, topic, 2)
    topics.create(address, other, 1)
    times = pa.array([1_700_000_000_123_456, 1_700_000_001_000_000], pa.timestamp("us", "UTC"))
    columns = {
        "value": pa.array([b"a", None]),
        "key": pa.array([None, "k"]),
        "topic": pa.array([topic, other]),
        "partition": pa.array([1, None], pa.int32()),
        "timestamp": times,
        "headers": pa.array([None, [{"key": "h", "value": b"x"}, {"key": "h", "value": None}]]),
    }
    for _ in range(2):
        write_rows(of(address, None), at(topic), iter([pa.record_batch(columns)]))

    assert records(address, topic) == {0: [], 1: [(b"a", None, 1_700_000_000_123, None)]}
    assert records(address, other) == {
        0: [(None, b"k", 1_700_000_001_000, [("h", b"x"), ("h", None)])]
    }
    assert list(offsets(address, f"test-{topic}-0")) == [(topic, 0)]


def test_the_arrow_batches_of_a_task_share_record_batches(
    in_process: Broker, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with and without headers; and a batch that is larger than what is encoded at once."""
    topics.create(in_process.bootstrap, topic, 1)
    options = of(in_process.bootstrap, topic)
    first, third = [{"key": "a", "value": b"1"}], [{"key": "b", "value": None}]
    headers = [first, None, third, None, [], None, None]
    with in_process.faults.add("Produce", topic=topic, delay_ms=1) as each_request:
        write_rows(options, at(topic), rows(*range(7), headers=headers))
    monkeypatch.setattr(transaction, "BLOCK_BYTES", 1)
    later = list(rows(*range(7, 14), size=3))
    write_rows(options, at(topic, batch=1), iter([*later, later[0].slice(0, 0)]))

    assert each_request.hits == 1
    copies = records(in_process.bootstrap, topic)[0]
    assert [record.value for record in copies] == [b"%d" % number for number in range(14)]
    assert [record.headers for record in copies[:3]] == [[("a", b"1")], None, [("b", None)]]


@pytest.mark.parametrize("codec", ["none", "lz4"])
def test_batches_that_a_broker_does_not_take_are_sent_again_in_order(
    in_process: Broker, topic: str, codec: str
) -> None:
    """Errors that pass, before and after the records are written, and answers that are lost."""
    address = in_process.bootstrap
    topics.create(address, topic, 2)
    small = {"kafka_batch_num_messages": "4", "kafka_message_max_bytes": "500"}
    options = of(address, topic, kafka_compression_type=codec, **small)
    numbers = range(300)
    partitions = pa.array([number // 3 % 2 for number in numbers], pa.int32())
    batch = pa.record_batch(
        {"value": pa.array([b"%03d" % number for number in numbers]), "partition": partitions}
    )
    add = in_process.faults.add
    faults = [
        add("Produce", error="NOT_LEADER_OR_FOLLOWER", topic=topic, skip=2, times=2),
        add("Produce", drop="after", topic=topic, skip=9, times=1),
        add("Produce", error="NOT_ENOUGH_REPLICAS_AFTER_APPEND", topic=topic, skip=20, times=1),
        add("Produce", drop="before", topic=topic, skip=30, times=1),
        add("AddPartitionsToTxn", error="CONCURRENT_TRANSACTIONS", topic=topic, times=2),
        add("InitProducerId", error="NOT_COORDINATOR", times=1),
        add("TxnOffsetCommit", error="COORDINATOR_LOAD_IN_PROGRESS", times=1),
        add("EndTxn", drop="after", times=1),
    ]
    with ExitStack() as until_written:
        for fault in faults:
            until_written.enter_context(fault)
        write_rows(options, at(topic), iter([batch]))
    assert [fault for fault in faults if not fault.hits] == []
    copies = records(address, topic)
    for partition in (0, 1):
        expected = [b"%03d" % number for number in numbers if number // 3 % 2 == partition]
        assert [record.value for record in copies[partition]] == expected


def test_a_partition_that_is_not_there_is_one_sentence(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic, 2)
    columns = {"value": [b"a"], "partition": pa.array([7], pa.int32())}
    batches = iter(
        [pa.record_batch({"value": pa.array([b"a"]), "partition": columns["partition"]})]
    )

    with pytest.raises(PipelineError, match="writes to a topic or partition that is not there"):
        write_rows(of(minibroker_address, topic), at(topic), batches)


def test_a_record_that_is_too_large_is_one_sentence(minibroker_address: str, topic: str) -> None:
    topics.create(minibroker_address, topic, 2)
    batches = iter([pa.record_batch({"value": pa.array([b"a" * 2_000_000])})])

    with pytest.raises(PipelineError, match=r"too large .*raise the topic's max\.message\.bytes"):
        write_rows(of(minibroker_address, topic), at(topic), batches)
    small = of(minibroker_address, topic, kafka_message_max_bytes="5000")
    batches = iter([pa.record_batch({"value": pa.array([b"a" * 6_000])})])
    with pytest.raises(PipelineError, match=r"too large .*kafka\.message\.max\.bytes"):
        write_rows(small, at(topic, batch=1), batches)


@pytest.mark.parametrize("way", [{}, {"kafka_retries": "5"}])
def test_a_topic_that_takes_large_records_gets_them(
    minibroker_address: str, topic: str, way: dict[str, str]
) -> None:
    """The client has no lower limit of its own, and neither has librdkafka (`retries`)."""
    topics.create(minibroker_address, topic, 1, {"max.message.bytes": "20000000"})
    originals = [b"a" * 3_000_000, b"b", b"c" * 15_000_000]
    write_rows(
        of(minibroker_address, topic, **way),
        at(topic),
        iter([pa.record_batch({"value": pa.array(originals)})]),
    )
    assert values(minibroker_address, topic) == originals


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_batches_are_divided_for_a_topic_that_takes_small_ones(
    address: str, topic: str, codec: str
) -> None:
    """A copy of a topic has its `max.message.bytes`, too. A record above that is too large."""
    topics.create(address, topic, 2, {"max.message.bytes": "10000"})
    options = of(address, topic, kafka_compression_type=codec)
    numbers = range(2_000)
    random = Random(7)
    originals = [b"%06d" % number + random.randbytes(200) for number in numbers]
    headers = pa.array([[{"key": "h", "value": b"x"}]] * len(numbers), HEADERS)
    partitions = pa.array([number % 2 for number in numbers], pa.int32())
    columns = {"value": pa.array(originals), "partition": partitions, "headers": headers}
    write_rows(options, at(topic), iter([pa.record_batch(columns)]))

    copies = records(address, topic)
    for partition in (0, 1):
        assert [record.value for record in copies[partition]] == originals[partition::2]
        assert {tuple(record.headers or ()) for record in copies[partition]} == {(("h", b"x"),)}
    large = pa.record_batch({"value": pa.array([random.randbytes(10_000)])})
    with pytest.raises(PipelineError, match="has a record that is too large"):
        write_rows(options, at(topic, batch=1), iter([large]))


def test_a_topic_that_nobody_makes_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction, "TOPIC_WAIT_S", 0.1)
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:
        options = of(broker.bootstrap, "missing")

        with pytest.raises(PipelineError, match=r"there is no topic 'missing' at .*: create it"):
            write_rows(options, at("missing"), rows(1))


def test_a_topic_that_the_broker_makes_by_itself_is_written(address: str, topic: str) -> None:
    write_rows(of(address, topic), at(topic), rows(1, 2))

    assert values(address, topic) == [b"1", b"2"]
