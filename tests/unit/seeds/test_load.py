"""Seeds on running brokers: everything in them can be read, or nothing was loaded."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.partitions.partition import READ_COMMITTED
from minibroker.kafka.records.batch import read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.control import TransactionMarker, build_marker
from minibroker.kafka.records.message_set import V0, V1, build_message_set
from minibroker.kafka.records.record import Record
from minibroker.seeds import load as loading
from minibroker.seeds import staging
from minibroker.seeds.errors import SeedError
from minibroker.testing import Broker, Cluster
from tests.support import batches as judge
from tests.support.in_process import TIMEOUT_S
from tests.support.late_news import late_news
from tests.support.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from minibroker.rig.topic_records import TopicRecord

WHEN = 1_795_262_400_000
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def shared() -> Iterator[Broker]:
    with Broker(config={"log.retention.ms": -1}) as broker:
        yield broker


@pytest.fixture
def broker(shared: Broker) -> Broker:
    shared.reset()
    return shared


def seed_of(tmp_path: Path, text: str, name: str = "seed.jsonl") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def segment(tmp_path: Path, *contents: bytes, name: str = "t-0", base_offset: int = 0) -> Path:
    directory = tmp_path / "logs" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{base_offset:020d}.log").write_bytes(b"".join(contents))
    return tmp_path / "logs"


def record(value: bytes | None, offset: int = 0, when: int = WHEN) -> Record:
    return Record(offset, when, b"k", value, (("h", None),))


def values(records: Sequence[TopicRecord]) -> list[bytes | None]:
    return [record.value for record in records]


def test_everything_of_a_seed_can_be_read(tmp_path: Path, broker: Broker) -> None:
    path = seed_of(
        tmp_path,
        '{"create": "orders", "partitions": 3, "configs": {"retention.ms": -1}}\n'
        '{"topic": "orders", "partition": 2, "key": "k", "value": "a\\u0000\\n", "timestamp": 5}\n'
        '{"topic": "orders", "partition": 2, "value": null, "headers": [["h", null], ["h", ""]]}\n'
        '{"topic": "other", "key": "k", "value": {"id": 1}}\n'
        '{"group": "g", "topic": "orders", "partition": 2, "offset": 1}\n',
    )
    loaded = broker.load(path)
    assert loaded == (("orders", "other"), {"orders": 2, "other": 1}, ("g",))
    assert broker.topics == {"orders": 3, "other": 1}
    first, second = broker.records("orders", 2)
    assert (first.key, first.value, first.timestamp) == (b"k", b"a\0\n", 5)
    assert (second.key, second.value, second.headers) == (None, None, (("h", None), ("h", b"")))
    assert broker.committed("g") == {("orders", 2): 1}
    assert broker.lag("g") == {("orders", 2): 1}


def test_a_key_chooses_the_partition_that_a_producer_chooses(
    tmp_path: Path, broker: Broker
) -> None:
    broker.create_topic("t", 7)
    partitions = [broker.produce("t", "a", key=f"k{n}").partition for n in range(20)]
    lines = [f'{{"topic": "t", "key": "k{n}", "value": "b"}}' for n in range(20)]
    broker.load(seed_of(tmp_path, "\n".join(lines)))
    by_key = {r.key: r.partition for r in broker.records("t") if r.value == b"b"}
    assert [by_key[f"k{n}".encode()] for n in range(20)] == partitions


def test_times_are_relative_to_the_clock_that_the_test_moves(
    tmp_path: Path, broker: Broker
) -> None:
    path = seed_of(tmp_path, '{"topic": "t", "value": "", "timestamp": "-1h"}\n')
    broker.clock.advance(days=3)
    first_ms = broker.clock.now_ms()
    broker.load(path)
    [loaded] = broker.records("t")
    assert first_ms - HOUR_MS <= loaded.timestamp <= broker.clock.now_ms() - HOUR_MS


def test_a_wrong_line_loads_nothing(tmp_path: Path, broker: Broker) -> None:
    good = '{"topic": "t", "value": "x"}\n' * 1000
    with pytest.raises(SeedError, match=r"seed.jsonl:1001: a record has no value"):
        broker.load(seed_of(tmp_path, good + '{"topic": "t"}\n'))
    assert broker.topics == {}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('{"create": "t", "configs": {"retention": 1}}', "seed.jsonl:1: topic t: .*retention"),
        ('{"create": "a/b"}', "seed.jsonl:1: topic a/b: "),
        ('{"create": "t", "replicas": 3}', "seed.jsonl:1: topic t: .*[Rr]eplication"),
        ('{"create": "old", "configs": {"retention.ms": 1}}', "old exists and has retention.ms=9"),
        ('{"create": "old", "configs": {"segment.ms": 1}}', "old exists and has no segment.ms of"),
        (
            '{"create": "c", "configs": {"cleanup.policy": "compact"}}\n'
            '{"topic": "c", "value": ""}',
            "seed.jsonl:2: c-0 refused the record: ",
        ),
    ],
)
def test_a_refusal_of_the_broker_names_the_line(
    tmp_path: Path, broker: Broker, text: str, sentence: str
) -> None:
    broker.create_topic("old", 1, {"retention.ms": 9})
    with pytest.raises(SeedError, match=sentence):
        broker.load(seed_of(tmp_path, text))


def test_a_topic_that_exists_as_declared_gets_the_records(tmp_path: Path, broker: Broker) -> None:
    path = seed_of(
        tmp_path,
        '{"create": "t", "partitions": 2, "configs": {"retention.ms": 9}}\n'
        f'{{"topic": "t", "value": "x", "timestamp": {2**60}}}\n',
    )
    assert broker.load(path).topics == ("t",)
    assert broker.load(path).topics == ()
    assert values(broker.records("t")) == [b"x", b"x"]


def test_large_batches_are_divided_for_a_topic_that_takes_small_ones(
    tmp_path: Path, broker: Broker
) -> None:
    lines = [f'{{"topic": "t", "value": "{n:0900d}"}}' for n in range(200)]
    create = '{"create": "t", "configs": {"max.message.bytes": 1100}}\n'
    broker.load(seed_of(tmp_path, create + "\n".join(lines)))
    assert [int(value or b"") for value in values(broker.records("t"))] == list(range(200))
    too_large = '{"topic": "t", "value": "a"}\n' + f'{{"topic": "t", "value": "{"x" * 1200}"}}'
    with pytest.raises(SeedError, match=r"t-0 refused the record: .*max.message.bytes"):
        broker.load(seed_of(tmp_path, too_large))


def test_batches_go_to_a_file_and_keep_their_order(
    tmp_path: Path, broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "BATCH_BYTES", 2000)
    monkeypatch.setattr(staging, "PENDING_BYTES", 5000)
    monkeypatch.setattr(staging, "MEMORY_BYTES", 10_000)
    monkeypatch.setattr(loading, "TURN_BYTES", 6000)
    lines = [f'{{"topic": "t", "partition": {n % 3}, "value": "{n:0100d}"}}' for n in range(999)]
    broker.load(seed_of(tmp_path, '{"create": "t", "partitions": 3}\n' + "\n".join(lines)))
    for partition in range(3):
        numbers = [int(value or b"") for value in values(broker.records("t", partition))]
        assert numbers == list(range(partition, 999, 3))


def test_several_brokers_get_the_records_of_what_they_lead(tmp_path: Path) -> None:
    path = seed_of(
        tmp_path,
        '{"create": "t", "partitions": 6, "replicas": 3}\n'
        + "".join(f'{{"topic": "t", "partition": {n}, "value": "{n}"}}\n' for n in range(6))
        + '{"group": "g", "topic": "t", "partition": 5, "offset": 1}\n',
    )
    with Cluster(3) as cluster:
        cluster.load(path)
        expected = [str(n).encode() for n in range(6)]
        # Followers show a record one fetch behind their leader.
        assert [values(broker.wait_for("t", 6)) for broker in cluster.brokers] == [expected] * 3
        committed = [broker.committed("g") for broker in cluster.brokers if broker.groups]
        assert {("t", 5): 1} in committed


def test_every_broker_knows_a_topic_of_a_seed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = seed_of(tmp_path, '{"create": "t", "partitions": 3, "replicas": 3}\n')
    with Cluster(3) as cluster, ThreadPoolExecutor(1) as pool:
        looks: list[str] = []
        topics = cluster.node(2).app.cluster.topics
        have_leaders = topics.have_leaders

        def look(name: str) -> bool:
            looks.append(name)
            return have_leaders(name)

        monkeypatch.setattr(topics, "have_leaders", look)
        with late_news(cluster, 2):
            future = pool.submit(cluster.load, path)
            wait_until(lambda: future.done() or bool(looks), "it waits")
            assert not future.done()
        future.result(TIMEOUT_S)
        assert cluster.broker(2).topics == {"t": 3}


async def test_a_test_in_a_loop_awaits_the_load(tmp_path: Path, broker: Broker) -> None:
    await broker.load_async(seed_of(tmp_path, "topics:\n  t:\n", "seed.yaml"))
    assert broker.topics == {"t": 1}


def test_a_directory_has_files_of_items_and_of_segments(tmp_path: Path, broker: Broker) -> None:
    logs = segment(tmp_path, build_batch([record(b"a"), record(b"b")]))
    segment(tmp_path, build_batch([record(b"c")], base_offset=2), base_offset=2)
    segment(tmp_path, build_batch([record(b"d")]), name="t-3")
    segment(tmp_path, build_batch([record(b"o")]), name="__consumer_offsets-0")
    segment(tmp_path, build_batch([record(b"e")]), name="undeclared-1")
    (logs / "topics.jsonl").write_text('{"create": "t", "partitions": 5}\n')
    loaded = broker.load(logs)
    assert loaded.records == {"t": 4, "undeclared": 1}
    assert broker.topics == {"t": 5, "undeclared": 2}
    assert values(broker.records("t")) == [b"a", b"b", b"c", b"d"]
    assert broker.records("t")[0].headers == (("h", None),)
    assert broker.load(logs / "t-3" / "00000000000000000000.log").records == {"t": 1}


def test_only_committed_records_of_segments_are_loaded(tmp_path: Path, broker: Broker) -> None:
    def batch_at(
        offset: int, value: bytes, producer: int, *, is_transactional: bool = True
    ) -> bytes:
        return bytes(
            build_batch(
                [record(value)],
                base_offset=offset,
                producer_id=producer,
                producer_epoch=3,
                base_sequence=40,
                is_transactional=is_transactional,
            )
        )

    def marker(offset: int, producer: int, *, is_commit: bool) -> bytes:
        return bytes(
            build_marker(
                TransactionMarker(is_commit, 0),
                producer_id=producer,
                producer_epoch=3,
                timestamp_ms=WHEN,
                base_offset=offset,
            )
        )

    logs = segment(
        tmp_path,
        batch_at(0, b"committed", 1),
        batch_at(1, b"aborted", 2),
        marker(2, 1, is_commit=True),
        batch_at(3, b"idempotent", 7, is_transactional=False),
        marker(4, 2, is_commit=False),
        batch_at(5, b"after an abort", 2),
    )
    segment(tmp_path, marker(6, 2, is_commit=True), batch_at(7, b"open", 1), base_offset=6)
    expected = [b"committed", b"idempotent", b"after an abort"]
    assert broker.load(logs).records == {"t": 3}
    assert values(broker.records("t", isolation="read_committed")) == expected


def test_batches_with_gaps_and_of_a_brokers_time_are_built_anew(
    tmp_path: Path, broker: Broker
) -> None:
    gaps = build_batch(
        [record(b"a", 10), record(None, 17)], base_offset=10, keep_offsets=True, codec="gzip"
    )
    dated = build_batch([record(b"b", when=7)], base_offset=20, append_time_ms=WHEN + 9)
    broker.load(segment(tmp_path, gaps, dated))
    records = [(r.offset, r.value, r.timestamp, r.timestamp_type) for r in broker.records("t")]
    assert records == [
        (0, b"a", WHEN, "CreateTime"),
        (1, None, WHEN, "CreateTime"),
        (2, b"b", WHEN + 9, "CreateTime"),
    ]


def test_a_topic_of_append_time_dates_records_itself(tmp_path: Path, broker: Broker) -> None:
    dated = build_batch([record(b"b", when=7)], append_time_ms=WHEN)
    logs = segment(tmp_path, dated)
    config = '{"message.timestamp.type": "LogAppendTime"}'
    (logs / "topics.jsonl").write_text(f'{{"create": "t", "configs": {config}}}\n')
    first_ms = broker.clock.now_ms()
    broker.load(logs)
    [loaded] = broker.records("t")
    assert loaded.timestamp_type == "LogAppendTime"
    assert loaded.timestamp >= first_ms


@pytest.mark.parametrize("magic", [V0, V1])
def test_old_formats_are_loaded(tmp_path: Path, broker: Broker, magic: int) -> None:
    plain = [Record(n, WHEN if magic == V1 else -1, b"k", b"ab"[n : n + 1]) for n in range(2)]
    messages = build_message_set(plain, magic=magic)
    broker.load(segment(tmp_path, bytes(messages)))
    assert values(broker.records("t")) == [b"a", b"b"]


def test_segments_of_a_real_log_directory_are_loaded(tmp_path: Path, broker: Broker) -> None:
    with Broker(data_dir=tmp_path / "data") as source:
        source.create_topic("t", 2)
        source.produce("t", ["a", None, "b"], key="k", partition=1)
        source.load(seed_of(tmp_path, '{"group": "g", "topic": "t", "partition": 1, "offset": 2}'))
    assert broker.load(tmp_path / "data").records == {"t": 3}
    assert values(broker.records("t", 1)) == [b"a", None, b"b"]


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda b: b[:-1], "byte 0: the file ends inside of a batch"),
        (lambda b: b[:40], "byte 0: the file ends inside of a batch"),
        (lambda b: b + b"\0" * 40, "batch at byte 70 has length 0"),
        (lambda b: b[:-1] + b"\xff", "byte 0: the batch of offset 0 has a wrong CRC"),
        (lambda b: b[:8] + b"\x7f\xff\xff\xff" + b[12:], "byte 0: the file ends inside of a batch"),
    ],
)
def test_a_damaged_segment_is_a_sentence(
    tmp_path: Path, broker: Broker, damage: object, sentence: str
) -> None:
    batch = build_batch([Record(0, WHEN, b"k", b"a")])
    assert callable(damage)
    logs = segment(tmp_path, damage(bytes(batch)))
    with pytest.raises(SeedError, match=sentence):
        broker.load(logs)
    assert broker.topics == {}


def test_loaded_batches_are_whole_by_an_independent_judge(tmp_path: Path, broker: Broker) -> None:
    batch = build_batch([record(b"a")], producer_id=5, producer_epoch=0, base_sequence=0)
    logs = segment(tmp_path, batch)
    broker.load(logs)
    partition = broker.call(lambda: broker._running.app.partitions.get("t", 0))
    records = broker.call(lambda: partition.read(0, 1 << 20, isolation_level=READ_COMMITTED))
    stored = bytes(records.records)
    assert read_header(stored).producer_id == -1
    [described] = judge.describe(stored)
    assert isinstance(described, dict)
    assert described["crc"] == "right"


def test_a_killed_broker_says_so(tmp_path: Path, broker: Broker) -> None:
    path = seed_of(tmp_path, '{"topic": "t", "value": ""}')
    with broker.faults.add(broker="killed"), pytest.raises(RuntimeError, match=r"was killed"):
        broker.load(path)
