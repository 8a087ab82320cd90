"""Logs of Kafka 0.7 on disk, their damage, the table of positions, and stored positions."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition
from minibroker.tools.import_07 import zookeeper
from minibroker.tools.import_07.committing import commits_of
from minibroker.tools.import_07.consumers import StoredPosition, positions_in_file
from minibroker.tools.import_07.errors import ImportRefusedError
from minibroker.tools.import_07.importing import SkippingNotes, placed_logs, survey
from minibroker.tools.import_07.logs import (
    BrokerDirectory,
    Log07,
    LogNotes,
    messages_of,
    partition_logs,
)
from minibroker.tools.import_07.table import (
    ImportedPartition,
    TableRow,
    check_place,
    open_table,
    writing_table,
)
from tests.support.logs_07 import GZIP, message, packed, write_log

if TYPE_CHECKING:
    from pathlib import Path

A, B, C = (message(text) for text in (b"a", b"bb", b"ccc"))
"""Messages of 11, 12 and 13 bytes."""


def log_of(directory: Path) -> Log07:
    (log,) = partition_logs([BrokerDirectory(0, str(directory))])
    return log


def read(log: Log07, notes: LogNotes | None = None) -> list[tuple[int, int, list[bytes]]]:
    """Return position, end and values of each message."""
    notes = notes or LogNotes()
    return [(each.position, each.end, each.values(notes)) for each in messages_of(log, notes)]


def skipping(log: Log07) -> tuple[list[tuple[int, int, list[bytes]]], list[str]]:
    """Return the messages of a log without its damage, and the notes."""
    notes: list[str] = []
    return read(log, SkippingNotes(notes.append, skips=True)), notes


def test_positions_count_over_segments(tmp_path: Path) -> None:
    write_log(tmp_path, "orders-0", [A, B], [C], [])
    assert read(log_of(tmp_path)) == [(0, 11, [b"a"]), (11, 23, [b"bb"]), (23, 36, [b"ccc"])]


def test_a_log_may_begin_behind_what_retention_has_deleted(tmp_path: Path) -> None:
    partition = write_log(tmp_path, "orders-0", [A, B], [C])
    (partition / f"{0:020d}.kafka").unlink()
    log = log_of(tmp_path)
    assert (log.start, read(log)) == (23, [(23, 36, [b"ccc"])])


def test_partitions_are_in_the_order_of_topic_broker_and_number(tmp_path: Path) -> None:
    for name in ("one/b-topic-10", "one/b-topic-2", "one/a-0", "two/b-topic-0"):
        write_log(tmp_path, name, [A])
    (tmp_path / "one" / "notes").mkdir()
    (tmp_path / "one" / "empty-0").mkdir()
    (tmp_path / "one" / ".kafka_cleanshutdown").touch()
    directories = [BrokerDirectory(7, str(tmp_path / "two")), BrokerDirectory(1, f"{tmp_path}/one")]
    logs = partition_logs(directories)
    names = [(log.topic, log.name) for log in logs]
    assert names == [("a", "1-0"), ("b-topic", "1-2"), ("b-topic", "1-10"), ("b-topic", "7-0")]
    targets = placed_logs(survey(logs, LogNotes(), lambda _: None))
    assert [str(target.place) for target in targets] == ["a-0", *(f"b-topic-{n}" for n in range(3))]
    assert len(partition_logs(directories, ["a"])) == 1
    with pytest.raises(ImportRefusedError, match=r"topic c has no partition.*they have a, b-topic"):
        partition_logs(directories, ["c"])


@pytest.mark.parametrize("files", [[], ["orders-0/00000000000000000000.log"], ["0.kafka"]])
def test_a_directory_of_something_else_is_refused(tmp_path: Path, files: list[str]) -> None:
    for name in files:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.touch()
    with pytest.raises(ImportRefusedError, match="no log directory of Kafka"):
        log_of(tmp_path)


@pytest.mark.parametrize("name", [b"\x1b[2J-0", b"caf\xe9-0", b"two\nlines-0"])
def test_a_name_that_cannot_be_printed_is_refused(tmp_path: Path, name: bytes) -> None:
    write_log(tmp_path, os.fsdecode(name), [A])
    with pytest.raises(ImportRefusedError, match="expected a name of printable characters"):
        log_of(tmp_path)


@pytest.mark.parametrize(
    "tail", [B[:1], B[:4], B[:-1], bytes(3), bytes(4), bytes(1000), b"\x00\x00\x10\x00" + bytes(9)]
)
def test_a_torn_message_ends_the_log(tmp_path: Path, tail: bytes) -> None:
    write_log(tmp_path, "orders-0", [A], [A, tail])
    log = log_of(tmp_path)
    notes: list[str] = []
    assert read(log, SkippingNotes(notes.append, skips=False)) == [
        (0, 11, [b"a"]),
        (11, 22, [b"a"]),
    ]
    (note,) = notes
    count = f"{len(tail):,} byte{'' if len(tail) == 1 else 's'}"
    assert f"0011.kafka ends with {count} of a message that was not written whole" in note
    assert note.endswith("at byte 11: the log ends there")


@pytest.mark.parametrize(
    ("segments", "place", "positions"),
    [
        ([[A, message(b"bb", crc=1), C]], "0000.kafka, byte 11: a message has CRC", [0, 11, 23]),
        (
            [[A, message(b"bb", magic=5), C]],
            "0000.kafka, byte 11: a message has magic",
            [0, 11, 23],
        ),
        ([[A, packed(GZIP, A, A[:5])]], "byte 11: a set of messages in gzip is cut", [0, 11]),
        ([[A, B[:-1]], [C]], "0000.kafka, byte 11: a message declares 8 bytes", [0, 11, 22]),
        ([[A, bytes(9)], [C]], "byte 11: a message declares 0 bytes, expected 5 to 5", [0, 11, 20]),
        ([[A, b"\xff" * 9]], "byte 11: a message declares -1 bytes, expected 5 to 5", [0, 11]),
        ([[A, b"\x7f\xff\xff\xff" * 3]], "byte 11: a message declares 2147483647", [0, 11]),
        ([[A, b"\x00\x00"], [C]], "the segment ends in the length of a message", [0, 11, 13]),
    ],
)
def test_damage_is_refused_with_its_place_or_left_out(
    tmp_path: Path, segments: list[list[bytes]], place: str, positions: list[int]
) -> None:
    write_log(tmp_path, "orders-0", *segments)
    log = log_of(tmp_path)
    with pytest.raises(CorruptionError, match=place):
        read(log)
    messages, (note,) = skipping(log)
    assert [position for position, _, _ in messages] == positions
    assert [values for _, _, values in messages if not values] == [[]]
    assert note.endswith("; it is left out")
    ends = [end for _, end, _ in messages]
    assert ends[:-1] == positions[1:]
    assert ends[-1] == sum(len(part) for segment in segments for part in segment)


def test_a_segment_that_is_missing_is_refused_or_left_out(tmp_path: Path) -> None:
    partition = write_log(tmp_path, "orders-0", [A], [B], [C])
    (partition / f"{11:020d}.kafka").unlink()
    log = log_of(tmp_path)
    with pytest.raises(
        CorruptionError, match="begins at position 23, the one before it ends at 11"
    ):
        read(log)
    messages, (note,) = skipping(log)
    assert messages == [(0, 11, [b"a"]), (11, 23, []), (23, 36, [b"ccc"])]
    assert "position 23" in note


def test_two_segments_that_claim_the_same_bytes_are_refused(tmp_path: Path) -> None:
    partition = write_log(tmp_path, "orders-0", [A, B], [C])
    (partition / f"{11:020d}.kafka").write_bytes(B)
    log = log_of(tmp_path)
    with pytest.raises(
        CorruptionError, match="begins at position 11, the one before it ends at 23"
    ):
        read(log)
    messages, _ = skipping(log)
    assert [position for position, _, _ in messages] == [0, 11, 23]


def test_a_survey_counts_records_and_their_sizes(tmp_path: Path) -> None:
    write_log(tmp_path, "orders-0", [A, packed(GZIP, C, B)], [B])
    (surveyed,) = survey([log_of(tmp_path)], LogNotes(), lambda _: None)
    assert (surveyed.records, surveyed.largest_bytes) == (4, 3)


PARTITION = ImportedPartition("orders", 2, 5, "orders-07", 0, 100, 160, 0, 4)


def made_table(directory: Path) -> Path:
    """Write a table with messages at 100 (one record), 120 (three) and 140 (none)."""
    path = directory / "t.table"
    with writing_table(path) as table:
        table.begin_partition()
        table.end_partition(ImportedPartition("empty", 2, 0, "empty", 0, 9, 9, 0, 0))
        table.begin_partition()
        for row in ((100, 0, 1), (120, 1, 3), (140, 4, 0)):
            table.add(*row)
        table.end_partition(PARTITION)
    return path


@pytest.mark.parametrize(
    ("position", "kind", "offset"),
    [
        (99, "before the start", 0),
        (100, "message", 0),
        (101, "inside", 0),
        (120, "message", 1),
        (139, "inside", 1),
        (140, "message", 4),
        (160, "end", 4),
        (161, "behind the end", 4),
        (2**70, "behind the end", 4),
    ],
)
def test_a_position_has_its_offset(tmp_path: Path, position: int, kind: str, offset: int) -> None:
    with open_table(made_table(tmp_path)) as table:
        assert table.partitions[1] == PARTITION
        place = table.place_of(PARTITION, position)
    assert (place.kind, place.offset) == (kind, offset)
    assert place.is_exact == (kind in ("message", "end"))
    if kind == "inside":
        assert place.row is not None
        assert place.next_row == (TableRow(120, 1, 3) if position < 120 else TableRow(140, 4, 0))


def test_an_empty_partition_has_its_end_alone(tmp_path: Path) -> None:
    with open_table(made_table(tmp_path)) as table:
        place = table.place_of(table.partitions[0], 9)
        assert (place.kind, place.offset) == ("end", 0)


def test_a_table_is_whole_or_absent_and_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "t.table"
    with pytest.raises(OSError, match="the disk"), writing_table(path):
        raise OSError("the disk")
    assert list(tmp_path.iterdir()) == []
    made_table(tmp_path)
    with pytest.raises(ImportRefusedError, match="is there already"), writing_table(path):
        pass
    assert path.exists()


def test_a_table_needs_its_directory(tmp_path: Path) -> None:
    for path in (tmp_path / "away" / "table", made_table(tmp_path) / "table"):
        with pytest.raises(ImportRefusedError, match="expected a directory"):
            check_place(path)


def test_another_file_is_no_table(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("no database, but long enough to be one" * 100)
    sqlite3.connect(database).executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    for path in (text, database, tmp_path / "nothing"):
        with pytest.raises(ImportRefusedError), open_table(path):
            pass


def test_the_lines_of_export_zk_offsets(tmp_path: Path) -> None:
    path = tmp_path / "offsets.txt"
    path.write_text(
        "/consumers/group1/offsets/topic1/1-0:286894308\n\n"
        "/consumers/group1/offsets/topic1/2-0:null\n"
        "/consumers/g 2/offsets/t-1/12-3:0\n"
    )
    assert positions_in_file(path) == [
        StoredPosition("group1", "topic1", 1, 0, 286894308),
        StoredPosition("g 2", "t-1", 12, 3, 0),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "x",
        "/consumers/g/offsets/t/1-0",
        "/consumers/g/offsets/t/1:5",
        "/consumers/g/offsets/t/1-0:-5",
        "/consumers/\x1bg/offsets/t/1-0:5",
    ],
)
def test_another_line_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "offsets.txt"
    path.write_text(f"/consumers/g/offsets/t/1-0:5\n{line}\n")
    with pytest.raises(ImportRefusedError, match=r"offsets\.txt, line 2"):
        positions_in_file(path)


def test_a_group_misses_no_record(tmp_path: Path) -> None:
    notes: list[str] = []
    places = [
        StoredPosition("exact", "orders", 2, 5, 120),
        StoredPosition("end", "orders", 2, 5, 160),
        StoredPosition("inside", "orders", 2, 5, 125),
        StoredPosition("old", "orders", 2, 5, 3),
        StoredPosition("ahead", "orders", 2, 5, 500),
        StoredPosition("away", "orders", 9, 0, 77),
        StoredPosition("nothing", "orders", 9, 0, 0),
    ]
    with open_table(made_table(tmp_path)) as table:
        commits = commits_of(table, places, notes.append)
    place = TopicPartition("orders-07", 0)
    assert {commit.group: commit.offsets[place] for commit in commits} == {
        "ahead": 4,
        "end": 4,
        "exact": 1,
        "inside": 1,
        "old": 0,
    }
    assert [note.split()[1] for note in notes] == ["inside", "old", "ahead", "away"]
    assert notes[3].endswith(
        "position 77 of orders/9-0, which is not imported: nothing is committed for it"
    )


def test_a_zookeeper_that_is_away_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper, "CONNECT_S", 0.2)
    for connect in ("127.0.0.1:1", "127.0.0.1:1/kafka"):
        with pytest.raises(ImportRefusedError, match=f"ZooKeeper at {connect} cannot be read"):
            zookeeper.positions_in_zookeeper(connect, ["orders"])
