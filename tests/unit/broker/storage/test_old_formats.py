"""Message sets on their way into a log, and the log that holds them: numbering, times, lookups,
recovery. What Kafka answers to each kind of set is in tests/golden/test_old_formats.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.storage import log_reads
from minibroker.broker.storage.log_reads import TimestampOffset
from minibroker.broker.storage.record_checks import AppendRules
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.conversion import read_records
from tests.support.logs import (
    NOW_MS,
    TOPIC_ID,
    ManualClock,
    NewLog,
    abandon,
    append_records,
    batch,
    check_and_number,
    config,
    open_manager,
)
from tests.support.message_sets import (
    APPEND_TIME,
    GZIP,
    LZ4,
    SNAPPY,
    TIMESTAMP,
    Message,
    magics,
    message,
    parse,
    plain,
    unpack,
    wrapper,
)

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.broker.storage.partition_log import PartitionLog

FORMAT_0, FORMAT_1 = "0.9.0", "0.10.2"


def stored(data: bytes, next_offset: int = 0, **settings: Any) -> bytes:
    """Return the bytes that are written for `data`."""
    rules = AppendRules(config(**settings))
    numbered, header = check_and_number(memoryview(bytearray(data)), rules, next_offset, 3, NOW_MS)
    assert header.base_offset == next_offset
    assert header.size_bytes == len(numbered)
    return bytes(numbered)


def code_of(data: bytes, **settings: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as raised:
        stored(data, **settings)
    return ErrorCode(raised.value.code)


def inner_of(outer: Message) -> list[Message]:
    assert outer.value is not None
    return parse(unpack(outer.attributes & 7, outer.value, outer.magic))


def append(log: PartitionLog, data: bytes) -> tuple[int, int]:
    info = append_records(log, memoryview(bytearray(data)), 0, NOW_MS)
    log.write_staged()
    return info.first_offset, info.last_offset


def offsets_of(log: PartitionLog, start: int = 0) -> list[int]:
    fetched = log_reads.read(log, start, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
    return [
        record.offset
        for position, header in iterate_headers(fetched.records)
        for record in read_records(fetched.records, position, header)
    ]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY, LZ4])
def test_format_0_is_recompressed_with_absolute_offsets(codec: int) -> None:
    """After a wrapper with offset 7, three messages get 8, 9, 10 and their wrapper 10."""
    message_set = wrapper(codec, plain(b"a", b"b", b"c", magic=0), magic=0, offset=2)
    [outer] = parse(stored(message_set, 8, message_format_version=FORMAT_0))
    assert (outer.offset, outer.magic, outer.attributes) == (10, 0, codec)
    assert [m.offset for m in inner_of(outer)] == [8, 9, 10]


def test_consecutive_inner_offsets_are_numbered_in_place() -> None:
    """Not one byte behind the wrapper's offset changes."""
    message_set = wrapper(GZIP, plain(b"a", b"b", b"c"), offset=2)
    numbered = stored(message_set, 8, message_format_version=FORMAT_1)
    assert parse(numbered)[0].offset == 10
    assert numbered[8:] == message_set[8:]


@pytest.mark.parametrize("offsets", [(0, 0, 0), (0, 2, 4), (1, 2, 3)])
def test_other_inner_offsets_are_rewritten(offsets: tuple[int, ...]) -> None:
    inner = b"".join(message(b"v", offset=offset) for offset in offsets)
    [outer] = parse(stored(wrapper(GZIP, inner), 8, message_format_version=FORMAT_1))
    assert outer.offset == 10
    assert [m.offset for m in inner_of(outer)] == [0, 1, 2]


@pytest.mark.parametrize(("magic", "version"), [(0, FORMAT_0), (1, FORMAT_1)])
def test_plain_messages_are_numbered_in_place(magic: int, version: str) -> None:
    message_set = plain(b"a", b"b", b"c", magic=magic)
    numbered = stored(message_set, 8, message_format_version=version)
    assert [m.offset for m in parse(numbered)] == [8, 9, 10]
    assert [m._replace(offset=0) for m in parse(numbered)] == [
        m._replace(offset=0) for m in parse(message_set)
    ]


@pytest.mark.parametrize(
    "message_set", [plain(b"a", b"b"), wrapper(GZIP, plain(b"a", b"b"), offset=1)]
)
def test_append_time_is_written_over_the_producers(message_set: bytes) -> None:
    settings: dict[str, Any] = {
        "message_format_version": FORMAT_1,
        "message_timestamp_type": "LogAppendTime",
    }
    for outer in parse(stored(message_set, **settings)):
        assert outer.timestamp == NOW_MS
        assert outer.attributes & APPEND_TIME
    assert code_of(message(b"x", attributes=APPEND_TIME), **settings) == (
        ErrorCode.INVALID_TIMESTAMP
    )


@pytest.mark.parametrize("version", [FORMAT_1, "3.0"])
def test_a_time_too_far_from_now_is_refused(version: str) -> None:
    settings: dict[str, Any] = {
        "message_format_version": version,
        "message_timestamp_difference_max_ms": 10,
    }
    far = message(b"x", timestamp=NOW_MS - 11)
    assert code_of(far, **settings) == ErrorCode.INVALID_TIMESTAMP
    assert code_of(wrapper(GZIP, far), **settings) == ErrorCode.INVALID_TIMESTAMP
    assert stored(message(b"x", timestamp=NOW_MS - 10), **settings)
    assert stored(message(b"x", magic=0), **settings)


def test_sizes_are_looked_at_before_and_after() -> None:
    message_set = plain(*[b"x" * 50] * 20)
    small = {"max_message_bytes": 100}
    assert code_of(message_set, **small) == ErrorCode.MESSAGE_TOO_LARGE  # one batch of all
    assert stored(message_set, message_format_version=FORMAT_1, **small) == message_set
    assert code_of(message(b"x" * 200), **small) == ErrorCode.MESSAGE_TOO_LARGE
    assert code_of(message_set, segment_bytes=1000) == ErrorCode.RECORD_LIST_TOO_LARGE


@pytest.mark.parametrize("version", [FORMAT_0, FORMAT_1])
def test_batches_are_stored_as_messages(version: str) -> None:
    numbered = stored(bytes(batch(b"a", b"b")), 5, message_format_version=version)
    assert magics(numbered) == [0 if version == FORMAT_0 else 1] * 2
    assert [(m.offset, m.value) for m in parse(numbered)] == [(5, b"a"), (6, b"b")]
    zstd = bytes(batch(b"a", codec="zstd"))
    assert code_of(zstd, message_format_version=version) == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_log_of_all_formats_is_read_from_anywhere(new_log: NewLog) -> None:
    """An offset inside a wrapper finds the wrapper."""
    log = new_log(message_format_version=FORMAT_1, index_interval_bytes=100)
    assert append(log, plain(b"a", b"b")) == (0, 1)
    assert append(log, wrapper(GZIP, plain(b"c", b"d", b"e"), offset=2)) == (2, 4)
    log.update_config(config(message_format_version=FORMAT_0), _rules(FORMAT_0))
    assert append(log, wrapper(LZ4, plain(b"f", b"g"), magic=1, offset=1)) == (5, 6)
    log.update_config(config(), _rules("3.0"))
    assert append(log, plain(b"h", b"i", magic=0)) == (7, 8)
    assert offsets_of(log) == list(range(9))
    for start, first in enumerate((0, 1, 2, 2, 2, 5, 5, 7, 7)):
        assert offsets_of(log, start) == list(range(first, 9))


def _rules(version: str) -> AppendRules:
    return AppendRules(config(message_format_version=version))


def test_times_of_messages_are_found(new_log: NewLog) -> None:
    log = new_log(message_format_version=FORMAT_1, index_interval_bytes=60, segment_bytes=600)
    times: list[int] = []
    for start in range(0, 60, 3):
        group = [TIMESTAMP + (n * 29 % 60) for n in range(start, start + 3)]
        messages = [message(b"v" * 20, offset=n, timestamp=t) for n, t in enumerate(group)]
        data = b"".join(messages)
        append(log, wrapper(GZIP, data, offset=2) if start % 2 else data)
        times += group
    assert len(log.segments) > 3
    for target in range(TIMESTAMP - 1, TIMESTAMP + 62):
        late = [(time, offset) for offset, time in enumerate(times) if time >= target]
        expected = TimestampOffset(*late[0], -1) if late else None
        assert log_reads.offset_for_timestamp(log, target) == expected
    assert log_reads.max_timestamp_offset(log) == TimestampOffset(
        max(times), times.index(max(times)), -1
    )


def test_format_0_has_no_time_index(new_log: NewLog) -> None:
    log = new_log(message_format_version=FORMAT_0, index_interval_bytes=50, segment_bytes=300)
    for _ in range(20):
        append(log, plain(b"value", b"value", magic=0))
    assert len(log.segments) > 2
    assert all(segment.time_index.entry_count == 0 for segment in log.segments)
    assert log.segments.first.offset_index.entry_count > 0


def test_leader_epochs_end_with_an_old_format(new_log: NewLog) -> None:
    log = new_log()
    append(log, bytes(batch(b"a")))
    assert log.epochs.history.entries
    log.update_config(config(message_format_version=FORMAT_1), _rules(FORMAT_1))
    append(log, plain(b"b"))
    assert not log.epochs.history.entries


@pytest.mark.parametrize("version", [FORMAT_0, FORMAT_1])
def test_a_torn_message_is_cut_off_at_any_byte(version: str, tmp_path: Path) -> None:
    settings = config(message_format_version=version, index_interval_bytes=40)
    clock = ManualClock()
    manager = open_manager(str(tmp_path / "a"), clock=clock, topic=settings)
    log = manager.create_log("t", 0, TOPIC_ID, settings)
    sizes = [0]
    for data in (plain(b"a"), wrapper(GZIP, plain(b"b", b"c"), offset=1), plain(b"d", b"e")):
        append(log, data)
        sizes.append(log.size_bytes)
    abandon(manager)
    path = tmp_path / "a" / "t-0" / "00000000000000000000.log"
    whole = path.read_bytes()
    ends = [sizes[1], sizes[2], sizes[2] + (sizes[3] - sizes[2]) // 2, sizes[3]]
    for length in range(len(whole), -1, -7):
        path.write_bytes(whole[:length])
        again = open_manager(str(tmp_path / "a"), clock=clock, topic=settings)
        reopened = again.get("t", 0)
        assert reopened is not None
        whole_count = sum(end <= length for end in ends)
        assert reopened.log_end_offset == (0, 1, 3, 4, 5)[whole_count]
        assert offsets_of(reopened) == list(range(reopened.log_end_offset))
        abandon(again)


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_of_far_more_messages_than_it_has_bytes_is_refused(magic: int) -> None:
    def bomb(count: int) -> bytes:
        return wrapper(GZIP, message(b"", magic=magic) * count, magic=magic)

    assert code_of(bomb(100_000), message_format_version=FORMAT_1) == ErrorCode.MESSAGE_TOO_LARGE
    assert stored(bomb(10_000), message_format_version=FORMAT_1)
