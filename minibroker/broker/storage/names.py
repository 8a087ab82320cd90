"""Names of files and directories in a log directory, as Apache Kafka gives them.

A segment's files carry its base offset in 20 digits, so that a plain sort is the order of the log:
`00000000000000203000.log`. Suffixes tell what a file is; a second suffix (`.deleted`, `.cleaned`,
`.swap`) tells which step of a deletion or a compaction it is in. A partition's directory is
`<topic>-<partition>`; `….<32 hex digits>-delete`, `-future` and `-stray` mark one that is on its
way out, on its way in, or without an owner.

Source: Kafka LogFileUtils, LocalLog; FORMAT.md section 1.
"""

from __future__ import annotations

from typing import Final

from minibroker.kafka.ids import TopicPartition

LOG: Final = ".log"
OFFSET_INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
SEGMENT_SUFFIXES: Final = (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX)

DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

LEADER_EPOCHS: Final = "leader-epoch-checkpoint"
PARTITION_METADATA: Final = "partition.metadata"
MOVED_HERE: Final = "moved-here"
"""In a partition's directory that a move made: the log in another one of the same name is older."""
MADE_ANEW: Final = "made-anew"
"""In the directory of a new partition: checkpoints may still tell of an older one of that name."""
META_PROPERTIES: Final = "meta.properties"
LOCK: Final = ".lock"
CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
RECOVERY_POINTS: Final = "recovery-point-offset-checkpoint"
LOG_START_OFFSETS: Final = "log-start-offset-checkpoint"
HIGH_WATERMARKS: Final = "replication-offset-checkpoint"
CLEANER_OFFSETS: Final = "cleaner-offset-checkpoint"
KRAFT_LOG: Final = "__cluster_metadata-0"
"""In the first log directory: a directory with the metadata of Apache Kafka with KRaft, or a file
of ours that keeps Kafka out."""
QUORUM_STATE: Final = f"{KRAFT_LOG}/quorum-state"
"""A file that Apache Kafka with KRaft writes at its start, in the first of its directories."""

DELETE_DIRECTORY: Final = "-delete"
FUTURE_DIRECTORY: Final = "-future"
STRAY_DIRECTORY: Final = "-stray"
_MARKS: Final = (DELETE_DIRECTORY, FUTURE_DIRECTORY, STRAY_DIRECTORY)

_DIGITS: Final = 20
_FILE_NAME_MAX: Final = 255


def segment_file(base_offset: int, suffix: str) -> str:
    """`segment_file(203000, ".log")` → `00000000000000203000.log`."""
    return f"{base_offset:020d}{suffix}"


def base_offset_of(name: str) -> int | None:
    """Return the base offset in a segment file's name, None for a name of any other form."""
    digits = name[:_DIGITS]
    if len(name) > _DIGITS and name[_DIGITS] == "." and digits.isascii() and digits.isdigit():
        return int(digits)
    return None


def partition_directory(topic: str, partition: int) -> str:
    """Return the name of a partition's directory."""
    return f"{topic}-{partition}"


def marked_directory(topic: str, partition: int, suffix: str) -> str:
    """Return a fresh name for a directory on its way out, e.g. `<topic>-<partition>.<32
    hex>-delete`.

    The topic is cut where the whole name would be longer than a file system allows (255).
    """
    from uuid import uuid4  # noqa: PLC0415  10 ms of a start that deletes nothing

    ending = f"-{partition}.{uuid4().hex}{suffix}"
    return topic[: _FILE_NAME_MAX - len(ending)] + ending


def parse_directory(name: str) -> tuple[TopicPartition, str] | None:
    """Return the partition and the mark of a directory's name (`""`, `-delete`, `-future`,
    `-stray`).

    None where the name is not a partition's: such a directory is no part of a log.
    """
    mark = ""
    if name.endswith(_MARKS):
        mark = next(suffix for suffix in _MARKS if name.endswith(suffix))
        name, dot, _unique = name.rpartition(".")
        if not dot:
            return None
    topic, dash, digits = name.rpartition("-")
    if not dash or not topic or not digits.isascii() or not digits.isdigit():
        return None
    return TopicPartition(topic, int(digits)), mark
