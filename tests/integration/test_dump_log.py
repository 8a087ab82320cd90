"""`dump-log` and Kafka 3.9.1's DumpLogSegments print the same, for directories of either.

One JVM does all runs. The test compares every line of output, whether the run fails, and (if it
does not) the reports at the end. Texts about a damaged file may differ.
"""

from __future__ import annotations

import io
import random
import shutil
from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.protocol.stored.consumer_group_current_member_assignment import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    TopicPartitions,
)
from minibroker.kafka.protocol.stored.consumer_group_member_metadata import (
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_group_metadata import (
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_group_target_assignment_metadata import (
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import ConsumerProtocolAssignment
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from minibroker.kafka.protocol.stored.group_metadata import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from minibroker.kafka.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from minibroker.kafka.protocol.stored.transaction_log import (
    PartitionsSchema,
    TransactionLogKey,
    TransactionLogValue,
)
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.record import Record
from minibroker.tools.dump_log import run_dump_log
from minibroker.verbs.dump_log import VERB
from tests.support.generated_logs import damage, write_logs
from tests.support.log_tool import LogTool, ToolOutput
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from minibroker.kafka.protocol.versioned import VersionedMessage

pytestmark = pytest.mark.java

OURS = range(120)
THEIRS = range(90)
FLAGS = (
    ("--print-data-log",),
    (),
    ("--deep-iteration",),
    ("--print-data-log", "--skip-record-metadata"),
    ("--verify-index-only",),
    ("--index-sanity-check",),
    ("--max-bytes", "300"),
    ("--max-message-size", "150"),
    ("--value-decoder-class", "org.apache.kafka.tools.api.StringDecoder"),
)


@pytest.fixture(scope="module")
def tool() -> Iterator[LogTool]:
    with LogTool() as tool:
        yield tool


@pytest.fixture(scope="module")
def logs(tool: LogTool, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Return directories of partitions: minibroker's first, then Kafka's."""
    root = tmp_path_factory.mktemp("logs")
    directories = write_logs(root, OURS)
    for seed in THEIRS:
        directories.append(root / f"kafka-{seed}")
        tool.write(directories[-1], seed)
    return directories


def ours(*arguments: str) -> ToolOutput:
    output, errors = io.StringIO(), io.StringIO()
    code = run_dump_log(plan_from(VERB, arguments), output, errors)
    return ToolOutput(output.getvalue(), errors.getvalue(), code != 0)


def assert_same(tool: LogTool, *arguments: str) -> ToolOutput:
    theirs, mine = tool.dump(*arguments), ours(*arguments)
    assert mine.failed == theirs.failed, (arguments, mine.errors, theirs.errors)
    if theirs.failed:
        # Where it breaks off Kafka may have begun a line; here a line is written as a whole.
        assert theirs.output.startswith(mine.output), arguments
    else:
        assert mine.output == theirs.output, arguments
        assert sorted(mine.errors.splitlines()) == sorted(theirs.errors.splitlines()), arguments
    return mine


def files_of(directory: Path) -> str:
    suffixes = (".log", ".index", ".timeindex", ".txnindex", ".snapshot")
    return ",".join(sorted(str(path) for path in directory.iterdir() if path.suffix in suffixes))


def test_sound_logs_print_the_same(tool: LogTool, logs: list[Path]) -> None:
    """More than 200 logs, each with contents and with another of the flags."""
    assert len(logs) > 200
    output = ""
    for number, directory in enumerate(logs):
        for flags in (FLAGS[0], FLAGS[1 + number % (len(FLAGS) - 1)]):
            output += assert_same(tool, *flags, "--files", files_of(directory)).output
    for word in ("gzip", "snappy", "lz4", "zstd", "magic: 0", "magic: 1", "magic: 2", "ABORT"):
        assert word in output
    for word in ("LogAppendTime", "NoTimestampType", "LEADER_CHANGE", "isTransactional: true"):
        assert word in output
    for word in ("deleteHorizonMs: OptionalLong[", "lastStableOffset: ", "firstSequence: "):
        assert word in output


def test_damaged_files_print_the_same(tool: LogTool, logs: list[Path], tmp_path: Path) -> None:
    """Torn tails, odd bytes, flipped bits: in logs and in what stands beside them."""
    chance = random.Random(3)
    complained = set()
    for number, directory in enumerate(logs):
        copy = tmp_path / f"{directory.name}"
        shutil.copytree(directory, copy)
        paths = [path for path in sorted(copy.iterdir()) if path.stat().st_size]
        victims = [path for path in paths if path.suffix in (".log", ".index", ".timeindex")]
        victim = chance.choice(victims)
        damage(victim, chance)
        for path in copy.glob(victim.stem + ".*"):
            outcome = assert_same(tool, *FLAGS[number % 2], "--files", str(path))
            complained.update(line.split(":")[0].strip() for line in outcome.errors.splitlines())
    assert "Mismatches in" in complained
    assert "Found timestamp mismatch in" in complained or "Index timestamp" in complained


def test_offsets_decoder(tool: LogTool, tmp_path: Path) -> None:
    subscription = ConsumerProtocolSubscription(topics=["a", "b"], user_data=b"\x00\xff")
    assignment = ConsumerProtocolAssignment(user_data=None)
    member = MemberMetadata(
        member_id='m-"1"\x1f',
        group_instance_id="static",
        client_id="λ",
        client_host="/127.0.0.1",
        rebalance_timeout=5,
        session_timeout=6,
        subscription=subscription.to_bytes(3),
        assignment=assignment.to_bytes(0),
    )
    opaque = MemberMetadata(member_id="m2", subscription=b"\x00", assignment=b"")
    group = GroupMetadataValue(
        protocol_type="consumer", generation=3, protocol="range", leader="m", members=[member]
    )
    stored: list[tuple[VersionedMessage, int, VersionedMessage | None, int]] = []
    for version in range(5):
        key = OffsetCommitKey(group="g", topic="t", partition=version)
        value = OffsetCommitValue(offset=5, metadata="note\n", commit_timestamp=9)
        stored.append((key, min(version, 1), value, version))
        stored.append(
            (GroupMetadataKey(group="g"), 2, group, version)
            if version > 2
            else (GroupMetadataKey(group="g"), 2, None, 0)
        )
    other = GroupMetadataValue(protocol_type="connect", members=[opaque])
    broken = GroupMetadataValue(protocol_type="consumer", members=[opaque])
    stored += [
        (GroupMetadataKey(group="c"), 2, other, 3),
        (GroupMetadataKey(group="c"), 2, broken, 3),
        (ConsumerGroupMetadataKey(group_id="n"), 3, ConsumerGroupMetadataValue(epoch=4), 0),
        (
            ConsumerGroupMemberMetadataKey(group_id="n", member_id="m"),
            5,
            ConsumerGroupMemberMetadataValue(client_id="c", subscribed_topic_names=["a"]),
            0,
        ),
        (
            ConsumerGroupTargetAssignmentMetadataKey(group_id="n"),
            6,
            ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2),
            0,
        ),
        (
            ConsumerGroupCurrentMemberAssignmentKey(group_id="n", member_id="m"),
            8,
            ConsumerGroupCurrentMemberAssignmentValue(
                member_epoch=2,
                assigned_partitions=[TopicPartitions(topic_id=bytes(range(16)), partitions=[1])],
            ),
            0,
        ),
    ]
    records = [
        Record(n, 0, key.to_bytes(kind), None if value is None else value.to_bytes(version))
        for n, (key, kind, value, version) in enumerate(stored)
    ]
    records.append(Record(len(records), 0, b"\x00\x63", b"\x00\x00"))
    path = write_batch(tmp_path, records)
    outcome = assert_same(tool, "--offsets-decoder", "--files", str(path))
    assert '"type":"8"' in outcome.output
    assert "Unknown record type 99" in outcome.output
    torn = write_batch(tmp_path, [Record(0, 0, b"\x00\x01\x00", b"\x00\x00")])
    assert "| offset: 0" in ours("--offsets-decoder", str(torn)).output
    assert "key: Error at offset 0" in ours("--offsets-decoder", str(torn)).output


def test_transaction_log_decoder(tool: LogTool, tmp_path: Path) -> None:
    records = []
    for state in range(8):
        partitions = [PartitionsSchema(topic="t", partition_ids=[4])] if state else None
        value = TransactionLogValue(
            producer_id=9,
            producer_epoch=1,
            transaction_timeout_ms=60_000,
            transaction_status=state,
            transaction_partitions=partitions,
            transaction_last_update_timestamp_ms=11,
            transaction_start_timestamp_ms=10,
        )
        key = TransactionLogKey(transactional_id=f"id-{state}").to_bytes(0)
        records.append(Record(state, 0, key, value.to_bytes(state % 2)))
    records.append(Record(8, 0, TransactionLogKey(transactional_id="gone").to_bytes(0), None))
    records.append(Record(9, 0, b"\x00\x07", b"\x00\x00"))
    path = write_batch(tmp_path, records)
    outcome = assert_same(tool, "--transaction-log-decoder", "--files", str(path))
    assert "state=PrepareEpochFence" in outcome.output
    assert "key: unknown::version=7" in outcome.output


def write_batch(directory: Path, records: list[Record]) -> Path:
    path = directory / "00000000000000000000.log"
    path.write_bytes(build_batch(records))
    return path


def test_numbers_gaps_and_names(tool: LogTool, tmp_path: Path) -> None:
    """Decoders by class, a compacted log, a name that says nothing, a metadata snapshot."""
    records = [Record(n, 0, n.to_bytes(4, "big"), n.to_bytes(8, "big")) for n in range(3)]
    path = tmp_path / "00000000000000000005.log"
    path.write_bytes(build_batch(records, base_offset=5) + build_batch(records, base_offset=11))
    (tmp_path / "partition.metadata").write_text("version: 0\n")
    (tmp_path / "00000000000000000007-0000000002.checkpoint").write_bytes(build_batch(records))
    package = "org.apache.kafka.tools.api"
    decoders = ("--key-decoder-class", f"{package}.IntegerDecoder")
    decoders += ("--value-decoder-class", f"{package}.LongDecoder")
    outcome = assert_same(tool, *decoders, "--files", str(path))
    assert "key: 2 payload: 2" in outcome.output
    assert "  7 is followed by 11" in outcome.errors
    others = sorted(str(other) for other in tmp_path.iterdir() if other != path)
    outcome = assert_same(tool, "--files", ",".join(others))
    assert "Ignoring unknown file" in outcome.errors
    assert "Snapshot end offset: 7, epoch: 2" in outcome.output
