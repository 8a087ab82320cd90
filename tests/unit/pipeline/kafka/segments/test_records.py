"""Records out of partition directories of all formats, against a reader that goes one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.broker.storage import names
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.segments.layout import find_partitions, plan_tasks
from minibroker.pipeline.kafka.segments.parts import SegmentPart, parts_of
from minibroker.pipeline.kafka.segments.records import (
    SegmentOptions,
    SegmentReader,
    SegmentSource,
    read_records,
)
from minibroker.tools.log_file import LogFile
from minibroker.tools.log_records import control_of, records_of
from tests.support.batches import batch
from tests.support.generated_logs import write_logs
from tests.support.message_sets import plain

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(30)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    logs = tmp_path_factory.mktemp("logs")
    write_logs(logs, SEEDS)
    return logs


def read(path: Path, **options: str) -> list[tuple[Any, ...]]:
    all_options = {"path": str(path), "includeHeaders": "true"}
    all_options |= {name.replace("_", "."): value for name, value in options.items()}
    reader = SegmentReader(SegmentOptions.parse(all_options))
    batches: list[tuple[Any, ...]] = []
    for partition in reader.partitions():
        for rows in reader.read(partition):
            place = rows.schema.get_field_index("timestamp")
            ticks = rows.column(place).view(pa.int64())
            with_ticks = rows.set_column(place, "timestamp", ticks).to_pylist()
            batches += [tuple(row.values()) for row in with_ticks]
    return batches


def expected(directory: Path, *, committed_only: bool) -> list[tuple[Any, ...]]:
    """Batch by batch; a transaction's rows wait for its marker."""
    batches: list[tuple[Any, ...]] = []
    for partition in sorted(SEEDS):
        rows: list[tuple[Any, ...]] = []
        waiting: dict[int, list[tuple[Any, ...]]] = {}
        for path in sorted((directory / f"made-{partition}").glob("*.log")):
            with LogFile(str(path)) as file:
                for stored in file.batches():
                    header = stored.header
                    if header.magic == 2 and header.is_control:
                        ended = waiting.pop(header.producer_id, [])
                        is_commit = control_of(next(records_of(stored))).name == "COMMIT"
                        rows += ended if is_commit or not committed_only else []
                        continue
                    some = [row(record, partition, header) for record in records_of(stored)]
                    if header.magic == 2 and header.is_transactional:
                        waiting.setdefault(header.producer_id, []).extend(some)
                    else:
                        rows += some
        batches += sorted(rows, key=lambda row: row[4])
    return batches


def row(record: Any, partition: int, header: Any) -> tuple[Any, ...]:
    kind = -1 if header.magic == 0 else int(header.is_append_time)
    headers = [{"key": key, "value": value} for key, value in record.headers] or None
    return (
        record.key,
        record.value,
        "made",
        partition,
        record.offset,
        record.timestamp * 1000,
        kind,
        headers,
    )


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_the_records_of_all_formats_and_codecs(directory: Path, isolation: str) -> None:
    rows_expected = expected(directory, committed_only=isolation == "read_committed")
    assert read(directory, isolation_level=isolation) == rows_expected
    assert len({row[3] for row in rows_expected}) == len(SEEDS)


def test_committed_records_are_what_is_read_unless_told_otherwise(directory: Path) -> None:
    assert read(directory) == read(directory, isolation_level="read_committed")
    assert len(read(directory)) < len(read(directory, kafka_isolation_level="read_uncommitted"))


def test_records_below_the_log_start_are_left_out_within_a_batch(tmp_path: Path) -> None:
    log = tmp_path / "a-0" / names.segment_file(0, names.LOG)
    log.parent.mkdir()
    log.write_bytes(batch(b"0", b"1", b"2") + batch(b"3", base_offset=3))
    (tmp_path / names.LOG_START_OFFSETS).write_text("0\n1\na 0 2\n")
    assert [row[1] for row in read(tmp_path)] == [b"2", b"3"]


def test_formats_that_alternate_keep_their_order(tmp_path: Path) -> None:
    log = tmp_path / "a-0" / names.segment_file(0, names.LOG)
    log.parent.mkdir()
    parts = [plain(b"0", b"1", magic=0), batch(b"2", base_offset=2), plain(b"3")]
    parts[2] = (3).to_bytes(8, "big") + parts[2][8:]
    log.write_bytes(b"".join([*parts, batch(b"4", b"5", base_offset=4)]))
    assert [(row[4], row[1], row[6]) for row in read(tmp_path)] == [
        (0, b"0", -1),
        (1, b"1", -1),
        (2, b"2", 0),
        (3, b"3", 0),
        (4, b"4", 0),
        (5, b"5", 0),
    ]


def torn(directory: Path, base_offset: int = 0) -> Path:
    log = directory / "a-0" / names.segment_file(base_offset, names.LOG)
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(batch(b"whole", base_offset=base_offset) + batch(b"cut", base_offset=9)[:-1])
    return log


def test_a_torn_tail_is_logged_and_no_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = torn(tmp_path)
    assert [row[1] for row in read(tmp_path)] == [b"whole"]
    assert f"{log}: 70 bytes from position 73 on are no batches" in caplog.text


def test_a_defect_inside_a_log_is_an_error_unless_told_otherwise(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torn(tmp_path)
    torn(tmp_path, 20)
    with pytest.raises(PipelineError, match=r"later batches follow.*failOnDataLoss"):
        read(tmp_path)
    assert len(read(tmp_path, failOnDataLoss="false")) == 2
    assert caplog.text.count("are no batches") == 2


def test_a_sound_batch_with_wrong_records_is_an_error(tmp_path: Path) -> None:
    log = torn(tmp_path)
    log.write_bytes(batch(payload=b"nonsense", count=3, last_offset_delta=2))
    with pytest.raises(PipelineError, match=r"\.log: batch at position 0 .*dump-log"):
        read(tmp_path)
    log.write_bytes(batch(payload=b"nonsense", attributes=1, count=3, last_offset_delta=2))
    with pytest.raises(PipelineError, match="gzip"):
        read(tmp_path)


def whole_part(directory: Path) -> SegmentPart:
    [task] = plan_tasks(find_partitions([str(directory)]))
    [part] = parts_of(task, tell_aborted=False, leave_out_open=False)
    return part


def test_a_file_that_vanished_is_named(tmp_path: Path) -> None:
    log = torn(tmp_path)
    part = whole_part(tmp_path)
    log.unlink()
    with pytest.raises(PipelineError, match=r"0\.log cannot be read: No such file"):
        list(read_records(part, include_headers=False))


def test_large_chunks_are_cut_at_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("minibroker.pipeline.kafka.segments.records.CHUNK_RECORDS", 2)
    log = tmp_path / "a-0" / names.segment_file(0, names.LOG)
    log.parent.mkdir()
    log.write_bytes(b"".join(batch(b"v", base_offset=offset) for offset in range(5)))
    part = whole_part(tmp_path)
    assert [rows.num_rows for rows in read_records(part, include_headers=False)] == [2, 2, 1]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({}, "needs a path"),
        ({"path": " , "}, "needs a path"),
        ({"path": "d", "subscribe": "a", "subscribePattern": "b"}, "are both given"),
        ({"path": "d", "subscribePattern": "("}, "no regular expression"),
        ({"path": "d", "isolation.level": "committed"}, "expected read_committed or"),
        ({"path": "d", "includeHeaders": "yes"}, "includeHeaders is 'yes'"),
        ({"path": "d", "failOnDataLoss": "1"}, "failOnDataLoss is '1'"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict[str, str], reason: str) -> None:
    with pytest.raises(PipelineError, match=reason):
        SegmentSource(options).schema()


def test_topics_are_chosen_by_name_or_pattern(tmp_path: Path) -> None:
    for topic in ("one", "two", "three", "__consumer_offsets"):
        (tmp_path / f"{topic}-0").mkdir()
        (tmp_path / f"{topic}-0" / names.segment_file(0, names.LOG)).write_bytes(batch(b"v"))

    def topics(**options: str) -> set[str]:
        return {row[2] for row in read(tmp_path, **options)}

    assert topics(subscribe="one, two") == {"one", "two"}
    assert topics(subscribePattern="t.*") == {"two", "three"}
    assert topics(subscribePattern="t") == set()
    assert topics(subscribePattern=".*") == topics() == {"one", "two", "three"}
    assert topics(subscribe="__consumer_offsets") == {"__consumer_offsets"}
    missing = "no partition of topic four, zero; there are one, three, two"
    with pytest.raises(PipelineError, match=missing):
        topics(subscribe="one,zero,four")


def test_records_appended_after_planning_are_not_read(tmp_path: Path) -> None:
    log = tmp_path / "a-0" / names.segment_file(0, names.LOG)
    log.parent.mkdir()
    log.write_bytes(batch(b"before"))
    for isolation in ("read_committed", "read_uncommitted"):
        log.write_bytes(batch(b"before"))
        options = {"path": str(tmp_path), "isolation.level": isolation}
        reader = SegmentReader(SegmentOptions.parse(options))
        [task] = reader.partitions()
        log.write_bytes(batch(b"before") + batch(b"open", attributes=0x10, base_offset=1))
        assert sum(rows.num_rows for rows in reader.read(task)) == 1
