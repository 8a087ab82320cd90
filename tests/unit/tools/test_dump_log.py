"""The output of dump-log. (Beside Kafka's tool: tests/integration/test_dump_log.py.)"""

from __future__ import annotations

import io
import json
import struct
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.storage.producer_state import ProducerEntry, RecentBatch
from minibroker.cli.errors import UsageError
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitValue
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools.decoders import Decoded, decode_text, field_decoder, fields
from minibroker.tools.dump_indexes import OFFSET_ENTRY, IndexEntries
from minibroker.tools.dump_output import TextOutput
from minibroker.tools.dump_plan import INT_MAX
from minibroker.tools.log_records import LogRecord
from minibroker.tools.stored_json import RawNumber, to_json, to_line
from minibroker.verbs.dump_log import VERB
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.unit.tools.conftest import Outcome


NAME = "00000000000000000000"


def test_batches_and_records(dump: Callable[..., Outcome], data: Path) -> None:
    report = dump("--print-data-log", data / "t-0" / f"{NAME}.log")
    lines = report.output.splitlines()
    assert lines[:2] == [f"Dumping {data}/t-0/{NAME}.log", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 0 count: 1 baseSequence: -1")
    assert lines[3].startswith("| offset: 0 CreateTime: 1700000000000 keySize: -1 valueSize: 35")
    assert lines[3].endswith("headerKeys: [] payload: " + "value-0" * 5)
    assert lines[-1].endswith("endTxnMarker: ABORT coordinatorEpoch: 0")
    assert (report.errors, report.code) == ("", 0)


def test_without_metadata_and_only_some_bytes(dump: Callable[..., Outcome], data: Path) -> None:
    path = data / "t-0" / f"{NAME}.log"
    report = dump("--print-data-log", "--skip-record-metadata", "--max-bytes", 250, path)
    assert report.output.splitlines()[3] == " payload: " + "value-0" * 5
    assert "invalid bytes" not in report.output
    assert report.output.count("baseOffset") == 2


def test_a_torn_end_and_gaps(dump: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.log"
    record = [Record(0, 1, None, b"v")]
    path.write_bytes(build_batch(record) + build_batch(record, base_offset=4) + b"torn")
    report = dump("--deep-iteration", path)
    assert report.output.endswith(f"Found 4 invalid bytes at the end of {NAME}.log\n")
    assert report.errors == f"Non-consecutive offsets in {path}\n  0 is followed by 4\n"
    assert report.code == 0


def test_damage_beyond_reading_on_is_one_sentence(
    dump: Callable[..., Outcome], tmp_path: Path
) -> None:
    path = tmp_path / f"{NAME}.log"
    path.write_bytes(bytes(100))
    report = dump(path, path)
    assert report.code == 1
    assert report.output.count("Dumping") == 1
    assert report.errors.startswith(f"minibroker dump-log: {path}: length 0 in the batch")
    assert dump(tmp_path / "absent.log").code == 1
    assert dump(tmp_path / "notes.txt").errors.startswith("Ignoring unknown file")
    (tmp_path / f"{NAME}9.log").mkdir()
    assert "is a directory" in dump(tmp_path / f"{NAME}9.log").errors.lower()


def test_a_metadata_snapshot_by_its_name(dump: Callable[..., Outcome], tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}-0000000003.checkpoint"
    path.write_bytes(b"")
    assert "Snapshot end offset: 0, epoch: 3" in dump(path).output
    other = tmp_path / "other.checkpoint"
    other.write_bytes(b"")
    assert dump(other).code == 1


# Kafka's flags, files with and without a flag, what is refused.


DECODES = {
    "cluster-metadata": "metadata",
    "offsets": "group",
    "remote-log-metadata": "remote",
    "share-group-state": "share",
}


def test_files_come_with_the_flag_and_without() -> None:
    arguments = plan_from(VERB, ["c.log", "--files", "a.log,b.index,", "--deep-iteration"])
    assert arguments.files == ("a.log", "b.index", "c.log")
    assert arguments.is_deep
    assert not arguments.prints_data
    assert (arguments.max_bytes, arguments.max_message_size) == (INT_MAX, 5242880)


def test_decoders_print_data_and_data_is_deep() -> None:
    for flag in ("--print-data-log", "--offsets-decoder", "--transaction-log-decoder"):
        arguments = plan_from(VERB, [flag, "a.log"])
        assert arguments.prints_data
        assert arguments.is_deep
    assert plan_from(VERB, ["--key-decoder-class=LongDecoder", "a.log"]).prints_data


def test_switches() -> None:
    words = ["--json", "--index-sanity-check", "--verify-index-only", "--skip-record-metadata"]
    arguments = plan_from(VERB, [*words, "--max-bytes=7", "--max-message-size", "9", "a"])
    assert arguments.is_json
    assert arguments.sanity_only
    assert arguments.verify_only
    assert arguments.without_metadata
    assert (arguments.max_bytes, arguments.max_message_size) == (7, 9)


@pytest.mark.parametrize(
    "flag", ["cluster-metadata", "offsets", "remote-log-metadata", "share-group-state"]
)
def test_a_decoder_of_records_shows_them(flag: str) -> None:
    arguments = plan_from(VERB, [f"--{flag}-decoder", "a.log"])
    assert arguments.prints_data
    assert arguments.is_deep
    assert arguments.decoder().__name__ == f"decode_{DECODES[flag]}_record"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "no file is given"),
        (["--max-bytes", "-1", "a"], "--max-bytes -1: expected a number of bytes"),
        (["--max-bytes", "99999999999", "a"], "expected a number of bytes up to 2147483647"),
        (["--files"], "--files needs a value"),
        (["--json=yes", "a"], "--json takes no value"),
        (["--key-decoder-class", "my.Own", "a"], "expected one of StringDecoder"),
        (["--cluster-metadata-decoder=x", "a"], "takes no value"),
    ],
)
def test_refused(words: list[str], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence.replace("-", "[-]")):
        plan_from(VERB, words)


# Indexes, transaction index and snapshot, and what does not fit.


def test_every_kind_of_file(dump: Callable[..., Outcome], data: Path) -> None:
    files = sorted(path for path in (data / "t-0").iterdir() if path.suffix in _SUFFIXES)
    report = dump(*files)
    assert (report.errors, report.code) == ("", 0)
    assert "offset: 2 position: 206" in report.output
    assert "timestamp: 1700000000008 offset: 8" in report.output
    assert "version: 0 producerId: 7 firstOffset: 9 lastOffset: 11 lastStableOffset: 12" in (
        report.output
    )
    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: 0 currentTxnFirstOffset: Opt" in (
        report.output
    )


_SUFFIXES = (".index", ".timeindex", ".txnindex", ".snapshot")


def test_sanity_and_verification_only(dump: Callable[..., Outcome], data: Path) -> None:
    index = data / "t-0" / f"{NAME}.index"
    assert dump("--index-sanity-check", index).output.endswith("passed sanity check.\n")
    assert dump("--verify-index-only", index).output == f"Dumping {index}\n"
    index.write_bytes(index.read_bytes() + b"odd")
    assert dump("--index-sanity-check", index).code == 1
    empty = data / "t-0" / "00000000000000000022.index"
    assert dump(empty).output.endswith(f"{empty} is empty.\n")


def test_entries_that_do_not_fit(dump: Callable[..., Outcome], data: Path) -> None:
    index = data / "t-0" / f"{NAME}.index"
    index.write_bytes(struct.pack(">iiii", 2, 206, 5, 206))
    report = dump(index)
    assert report.errors == f"Mismatches in :{index}\n  Index offset: 5, log offset: 2\n"
    times = data / "t-0" / f"{NAME}.timeindex"
    entry = struct.Struct(">qi")
    times.write_bytes(entry.pack(5, 2) + entry.pack(4, 4) + entry.pack(9, 99))
    report = dump(times)
    assert f"Found timestamp mismatch in :{times}" in report.errors
    assert "  Index timestamp: 4, Previously indexed timestamp: 5" in report.errors
    assert "Indexed offset: 99, found log offset: -1" in report.errors
    index.write_bytes(struct.pack(">ii", 2, 999_999))
    assert dump(index).code == 1
    assert "an entry points to position 999999" in dump(index).errors


def test_a_damaged_snapshot_is_said_and_passed_by(dump: Callable[..., Outcome], data: Path) -> None:
    path = data / "t-0" / "00000000000000000012.snapshot"
    path.write_bytes(path.read_bytes()[:-1])
    report = dump(path)
    assert report.code == 0
    assert "producer snapshot has CRC" in report.errors


@pytest.mark.parametrize("count", [0, 1, 5, 1023, 1024, 1025, 3000])
def test_the_greatest_entry_up_to_a_target(tmp_path: Path, count: int) -> None:
    path = tmp_path / "i"
    path.write_bytes(b"".join(OFFSET_ENTRY.pack(10 * n + 10, n) for n in range(count)))
    index = IndexEntries(str(path), OFFSET_ENTRY)
    assert index.count == count
    for target in {0, 9, 10, 11, 5 * count, 10 * count, 10 * count + 99}:
        expected = max(0, min(target // 10 - 1, count - 1))
        assert index.position_below(target) == expected


# Lines of dump-log that a small log does not show.


def test_producers_with_and_without_a_batch() -> None:
    out = io.StringIO()
    text = TextOutput(out, out)
    text.producer(5, ProducerEntry(1, 2, 30, -1, ()))
    text.producer(6, ProducerEntry(1, 2, 30, 7, (RecentBatch(0, 9, 3, 30),)))
    first, second = out.getvalue().splitlines()
    assert first == (
        "producerId: 5 producerEpoch: 1 coordinatorEpoch: 2 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 30 "
    )
    assert second.endswith(
        "currentTxnFirstOffset: OptionalLong[7] lastTimestamp: 30 firstSequence: 2147483645 "
        "lastSequence: 0 lastOffset: 9 offsetDelta: 3 timestamp: 30"
    )


# Decoders of keys and values, by Kafka's names.


RECORD = LogRecord(0, 0, b"k", None, (), -1, None, None)


def test_by_their_names_with_and_without_package() -> None:
    for name in (
        "LongDecoder",
        "org.apache.kafka.tools.api.LongDecoder",
        "kafka.serializer.LongDecoder",
    ):
        decode = field_decoder(name)
        assert decode is not None
        assert decode((-5).to_bytes(8, "big", signed=True)) == "-5"
    assert field_decoder("my.own.Decoder") is None


def test_text_numbers_and_bytes() -> None:
    assert decode_text(b"a\xff") == "a\ufffd"
    hexadecimal, number = field_decoder("DefaultDecoder"), field_decoder("IntegerDecoder")
    assert hexadecimal is not None
    assert number is not None
    assert hexadecimal(b"\x00\xff") == "00ff"
    assert number(b"\x00\x00\x01\x00\xff") == "256"
    with pytest.raises(CorruptionError, match="3 bytes where a number of 4 bytes"):
        number(b"\x00\x00\x01")


def test_null_is_nothing() -> None:
    assert fields(decode_text, decode_text)(RECORD) == Decoded("k", None)


# JSON: of dump-log's findings, and of stored records as Kafka writes them.


def test_every_line_is_an_object_that_names_file_and_type(
    dump: Callable[..., Outcome], data: Path
) -> None:
    files = sorted((data / "t-0").iterdir())
    report = dump("--json", "--print-data-log", *files)
    lines = [json.loads(line) for line in report.output.splitlines()]
    assert all(line["file"] in map(str, files) for line in lines)
    assert {line["type"] for line in lines} == {
        "aborted_transaction",
        "batch",
        "empty_index",
        "log",
        "offset_entry",
        "producer",
        "record",
        "time_entry",
        "unknown_file",
    }
    (marker,) = [line for line in lines if line.get("control_type")]
    assert (marker["control_type"], marker["offset"]) == ("ABORT", 11)
    assert [line["value"] for line in lines if "value" in line][-1] == "last"


def test_reports_are_objects_too(dump: Callable[..., Outcome], data: Path) -> None:
    index = data / "t-0" / "00000000000000000000.index"
    index.write_bytes(b"\0\0\0\5\0\0\0\xce")
    last = json.loads(dump("--json", index).output.splitlines()[-1])
    assert last == {"file": str(index), "type": "wrong_offset", "index_offset": 5, "log_offset": 2}


def test_a_version_has_its_fields_and_a_tag_only_what_is_set() -> None:
    value = OffsetCommitValue(offset=1, metadata="x", topic_id=bytes(range(16)))
    plain = OffsetCommitValue(offset=1)
    expected = ["offset", "metadata", "commitTimestamp", "expireTimestamp"]
    assert list(to_json(plain, 1)) == expected
    assert to_json(value, 4)["topicId"] == "AAECAwQFBgcICQoLDA0ODw"
    assert "topicId" not in to_json(OffsetCommitValue(), 4)
    assert "leaderEpoch" in to_json(value, 3)


def test_text_as_jackson_writes_it() -> None:
    assert to_line({"a": 'é"\\\n\x1f', "b": [True, None]}) == (
        '{"a":"é\\"\\\\\\n\\u001F","b":[true,null]}'
    )
    content = {"a": [1, True, None, RawNumber("1.0E7")], "b": {"ü": "\x1f"}}
    assert to_line(content) == '{"a":[1,true,null,1.0E7],"b":{"ü":"\\u001F"}}'
