"""Offset checkpoints: small text files that are replaced as a whole, one line per partition.

    0                    version
    2                    number of lines that follow
    payments 0 1500      topic, partition, offset
    payments 1 0

Four of them stand in every log directory: recovery points (below them everything is on the disk),
log start offsets (where DeleteRecords or retention moved them), high watermarks, and how far the
cleaner came. A missing or empty file means "none"; a damaged one is a CorruptionError, and the log
manager starts from nothing known, as Kafka does: more is recovered then, nothing is lost.

Source: Kafka OffsetCheckpointFile, CheckpointFile; FORMAT.md section 6.
"""

from collections.abc import Mapping

from minibroker.broker.storage.files import Files
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition

_VERSION = "0"


def encode_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """Return the file's bytes, ASCII, every line ended by a newline."""
    lines = [_VERSION, str(len(offsets))]
    lines += [f"{topic} {partition} {offset}" for (topic, partition), offset in offsets.items()]
    lines.append("")
    return "\n".join(lines).encode("ascii")


def decode_offsets(content: bytes, path: str) -> dict[TopicPartition, int]:
    """Raises CorruptionError with `path` where the content is not a checkpoint."""
    lines = content.decode("ascii", "replace").split("\n")
    if lines == [""]:
        return {}
    if lines[0].strip() != _VERSION:
        raise CorruptionError(f"{path}: version {lines[0]!r}, expected {_VERSION}")
    try:
        expected = int(lines[1])
        offsets: dict[TopicPartition, int] = {}
        for line in lines[2:]:
            if line:
                topic, partition, offset = line.split()
                offsets[TopicPartition(topic, int(partition))] = int(offset)
    except (ValueError, IndexError) as error:
        raise CorruptionError(f"{path}: not an offset checkpoint ({error})") from error
    if len(offsets) != expected:
        raise CorruptionError(f"{path}: {len(offsets)} entries, {expected} announced")
    return offsets


def read_offsets(files: Files, path: str) -> dict[TopicPartition, int]:
    """Return the checkpoint at `path`, empty where there is none. Raises CorruptionError,
    OSError.
    """
    try:
        content = files.read_all(path)
    except FileNotFoundError:
        return {}
    return decode_offsets(content, path)
