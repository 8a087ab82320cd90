"""Columns made of many records at once, against records read one by one."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.records.batch import RECORDS_AT
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.message_set import build_message_set
from minibroker.kafka.records.record import Record
from minibroker.pipeline.kafka.segments.file import SegmentFile
from minibroker.pipeline.kafka.segments.record_columns import Chunk, Columns, LegacyChunk
from tests.support.batches import APPEND_TIME, batch, with_crc

if TYPE_CHECKING:
    from pathlib import Path

NOW_MS = 1_700_000_000_000
LARGE = Record(0, NOW_MS + 10**9, b"k" * 20_000, b"v" * 3_000_000)


def decoded(path: Path, *parts: bytes | bytearray, include_headers: bool = True) -> Columns:
    path.write_bytes(b"".join(parts))
    file = SegmentFile(str(path))
    chunk: Chunk | LegacyChunk | None = None
    for stored in file.batches():
        chunk = chunk or (Chunk() if stored.header.magic == 2 else LegacyChunk())
        chunk.add(stored)
    assert file.defect is None
    assert chunk is not None
    columns = chunk.take_columns(include_headers=include_headers)
    assert chunk.count == chunk.size_bytes == 0
    return columns


def rows(columns: Columns) -> list[tuple[Any, ...]]:
    ticks = columns["timestamp"].view(pa.int64())
    columns_with_time = {**columns, "timestamp": ticks}
    return [tuple(row.values()) for row in pa.table(columns_with_time).to_pylist()]


def expected(records: list[Record], kind: int = 0) -> list[tuple[Any, ...]]:
    return [
        (
            record.key,
            record.value,
            record.offset,
            record.timestamp * 1000,
            kind,
            [{"key": key, "value": value} for key, value in record.headers] or None,
        )
        for record in records
    ]


def random_records(chance: random.Random, start: int) -> list[Record]:
    def field() -> bytes | None:
        return None if chance.random() < 0.3 else bytes(chance.randrange(200))

    headers = (("é", b"1"), ("", None), ("b" * 70, b""))
    return [
        Record(
            start + number,
            NOW_MS + chance.choice([0, -5, 70, 10_000, -(10**11), 10**13]),
            field(),
            field(),
            headers[: chance.randrange(4)] if chance.random() < 0.3 else (),
        )
        for number in range(chance.randrange(1, 150))
    ]


def test_columns_are_the_records_of_all_codecs(tmp_path: Path) -> None:
    chance = random.Random(7)
    parts, records = [], []
    for codec in CODEC_NAMES * 3:
        some = random_records(chance, len(records))
        parts.append(build_batch(some, base_offset=len(records), codec=codec))
        records += some
    large = LARGE._replace(offset=len(records))
    parts.append(build_batch([large], base_offset=large.offset, codec="gzip"))
    assert rows(decoded(tmp_path / "a.log", *parts)) == expected([*records, large])


def test_headers_of_many_and_of_few_are_told_apart(tmp_path: Path) -> None:
    """Few are read together, turn by turn; of a record with very many, one by one."""
    for most in (3, 40):
        sizes = [0, 2, most, 0, 1]
        records = [
            Record(
                n, NOW_MS, b"k", b"v", tuple((f"{n}.{turn}", b"%d" % turn) for turn in range(size))
            )
            for n, size in enumerate(sizes)
        ]
        columns = decoded(tmp_path / "a.log", build_batch(records))
        assert rows(columns) == expected(records)


def test_a_chunk_without_headers_asked_for_has_no_such_column(tmp_path: Path) -> None:
    data = build_batch([Record(0, NOW_MS, b"k", b"v", (("a", b"1"),))])
    assert "headers" not in decoded(tmp_path / "a.log", data, include_headers=False)


def test_append_time_is_of_its_batch_only(tmp_path: Path) -> None:
    records = [Record(n, NOW_MS + n, None, b"v") for n in range(2)]
    columns = decoded(
        tmp_path / "a.log",
        build_batch(records, append_time_ms=NOW_MS + 99),
        build_batch(records, base_offset=2),
    )
    assert [row[3] // 1000 - NOW_MS for row in rows(columns)] == [99, 99, 0, 1]
    assert columns["timestampType"].to_pylist() == [1, 1, 0, 0]


def test_offsets_that_compaction_left_are_kept(tmp_path: Path) -> None:
    records = [Record(n, NOW_MS, b"k", b"v") for n in (3, 4, 90, 20_000)]
    data = build_batch(records, base_offset=1, keep_offsets=True)
    assert decoded(tmp_path / "a.log", data)["offset"].to_pylist() == [3, 4, 90, 20_000]


def test_timestamps_that_no_column_holds_are_null(tmp_path: Path) -> None:
    times = [2**63 - 1, -(2**62), -1, NOW_MS]
    data = build_batch([Record(n, time, None, None) for n, time in enumerate(times)])
    column_times = decoded(tmp_path / "a.log", data)["timestamp"].view(pa.int64()).to_pylist()
    assert column_times == [None, None, -1000, NOW_MS * 1000]


def test_timestamps_that_no_column_holds_are_the_last_that_it_can(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(build_batch([Record(0, 2**62, None, None)]))
    [stored] = SegmentFile(str(tmp_path / "a.log")).batches()
    chunk = Chunk(keeps_far_times=True)
    chunk.add(stored)
    times = chunk.take_columns(include_headers=False)["timestamp"].view(pa.int64())
    assert times.to_pylist() == [(2**63 // 1000 - 1) * 1000]


def test_a_header_key_that_is_no_utf_8_is_shown(tmp_path: Path) -> None:
    body = build_batch([Record(0, NOW_MS, None, None, (("aa", b"1"),))])
    data = with_crc(bytes(body).replace(b"aa", b"\xffa"))
    [row] = decoded(tmp_path / "a.log", data)["headers"].to_pylist()
    assert row == [{"key": "\ufffda", "value": b"1"}]


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_messages_of_the_old_formats(tmp_path: Path, magic: int, codec: int) -> None:
    records = [Record(n, NOW_MS + n, b"k" if n else None, b"v" * n) for n in range(5)]
    records.append(Record(5, NOW_MS, b"", None))
    data = build_message_set(records, magic=magic, codec=codec)
    records_in_columns = rows(decoded(tmp_path / "a.log", data))
    if magic == 0:
        assert records_in_columns == expected(
            [record._replace(timestamp=-1) for record in records], -1
        )
    else:
        assert records_in_columns == expected(records)


def test_append_time_of_a_message_set_is_told(tmp_path: Path) -> None:
    data = build_message_set([Record(0, 1, None, b"v")], magic=1, append_time_ms=NOW_MS)
    columns = decoded(tmp_path / "a.log", data)
    assert columns["timestampType"].to_pylist() == [1]
    assert columns["timestamp"].view(pa.int64()).to_pylist() == [NOW_MS * 1000]


# One record: length, attributes, timestamp delta, offset delta, key length, key, value length,
# value, header count.
SOUND = bytes([16, 0, 0, 0, 2, 107, 2, 118, 0])


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (bytes([16, 0, 0, 0, 40, 107, 2, 118, 0]), "beyond the end"),
        (bytes([16, 0, 0, 0, 2, 107, 40, 118, 0]), "beyond the end"),
        (bytes([16, 0, 0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F]), "beyond the end"),
        (bytes([16, 0, 0]) + bytes([0xFF] * 6), "more than 5 bytes"),
        (bytes([16, 0, 0, 0, 2, 107, 2, 118, 9]), "-5 headers"),
        (bytes([16, 0, 0, 0, 2, 107, 2, 118, 8]), "4 headers"),
        (bytes([20, 0, 0, 0, 1, 1, 2, 1, 0, 0, 0]), "a header without a key"),
        (bytes([20, 0, 0, 0, 1, 1, 2, 90, 0, 0, 0]), "beyond the end"),
        (bytes([18, 0, 0, 0, 2, 107, 2, 118, 0]), "end at byte"),
        (SOUND + SOUND, "end at byte"),
        (b"", "1 records in 0 bytes"),
    ],
)
def test_a_malformed_record_is_refused_and_its_batch_named(
    tmp_path: Path, body: bytes, reason: str
) -> None:
    first_batch = batch(b"fine", b"too")
    wrong = batch(base_offset=2, payload=body, count=1, last_offset_delta=0)
    with pytest.raises(
        CorruptionError, match=rf"position {len(first_batch)} \(offset 2\).*{reason}"
    ):
        decoded(tmp_path / "a.log", first_batch, wrong)


def test_random_bytes_in_a_sound_batch_are_columns_or_refused(tmp_path: Path) -> None:
    chance = random.Random(3)
    data = build_batch(random_records(chance, 0)[:20] or [LARGE])
    for _ in range(300):
        changed = bytearray(data)
        for _ in range(chance.randrange(1, 4)):
            changed[chance.randrange(RECORDS_AT, len(changed))] = chance.randrange(256)
        try:
            columns = decoded(tmp_path / "a.log", with_crc(bytes(changed)))
        except CorruptionError:
            continue
        pa.table(columns).validate(full=True)


def test_a_batch_that_does_not_decompress_is_refused(tmp_path: Path) -> None:
    data = batch(payload=b"no gzip", attributes=1 | APPEND_TIME, count=1, last_offset_delta=0)
    with pytest.raises(CorruptionError, match="gzip"):
        decoded(tmp_path / "a.log", data)
