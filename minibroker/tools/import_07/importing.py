"""Logs of Kafka 0.7 on their way into topics: surveyed, written and entered in the table.

    logs ─survey─► counts, damage ─prepare─► empty topics ─write─► records ─┬─► topic
                                                                            └─► table

All logs are read twice. The first reading changes nothing, and refuses damage before a topic is
made. Each partition of 0.7 becomes a partition of its own. The topics have to be empty, and nobody
else may write to them: then the offset of each record is known, and in the end it is compared with
the end of each partition.

Messages of 0.7 have no timestamp, and the records have none (-1), as those of format 0 that Kafka
converts. The time of the import would be a time at which nothing happened.

Source: Kafka LogValidator (a message of format 0 in a batch of format 2), KIP-32.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import counted, number, size
from minibroker.client import admin, configs
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.write import TopicWriter, WriteOptions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from minibroker.kafka.records.batch import NO_TIMESTAMP
from minibroker.kafka.records.record import Record
from minibroker.tools.import_07.errors import ImportRefusedError
from minibroker.tools.import_07.logs import LogNotes, check_unchanged, messages_of
from minibroker.tools.import_07.table import ImportedPartition, imported_partition, writing_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from minibroker.client.client import Client
    from minibroker.tools.import_07.logs import Log07
    from minibroker.tools.import_07.table import TableWriter

TIMEOUT_S: Final = 30.0
_MESSAGE_BYTES: Final = 1_048_588
"""The default of message.max.bytes."""
_BATCH_BYTES: Final = 100
"""A batch has so much beside one value, about."""
_PROGRESS_EVERY: Final = 1_000


class SurveyedLog(NamedTuple):
    """A log that was read once."""

    log: Log07
    records: int
    largest_bytes: int
    """The size of its largest value; 0: it has none."""


class TargetPartition(NamedTuple):
    """A log and its place among the topics of now."""

    source: SurveyedLog
    place: TopicPartition


class SkippingNotes(LogNotes):
    """Notes that have damage left out; each is a sentence, once."""

    def __init__(self, note: Callable[[str], None], *, skips: bool) -> None:
        """`skips`: damage is left out, else it is refused."""
        self._note = note
        self._skips = skips

    def torn(self, path: Path, at: int, size_bytes: int) -> None:
        """Note the part of a message."""
        self._note(
            f"{path} ends with {counted(size_bytes, 'byte')} of a message that was not written "
            f"whole, at byte {at}: the log ends there"
        )

    def damaged(self, path: Path, at: int, reason: str) -> None:
        """Note the damage. Raises CorruptionError unless it is left out."""
        if not self._skips:
            super().damaged(path, at, reason)
        self._note(f"{path}, byte {at}: {reason}; it is left out")


class _RecordCount:
    """A count that is shown now and then."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show = show
        self._count = 0
        self._shown_count = 0

    def add(self, records: int) -> None:
        """Count records."""
        self._count += records
        if self._count - self._shown_count >= _PROGRESS_EVERY:
            self._shown_count = self._count
            self._show(self._count)


def survey(
    logs: Iterable[Log07], notes: LogNotes, on_progress: Callable[[str], None]
) -> list[SurveyedLog]:
    """Return the logs with what they have; every message is checked.

    Raises CorruptionError, as `notes` decides; KafkaError UNSUPPORTED_COMPRESSION_TYPE; OSError.
    """
    surveyed_logs = []
    count = _RecordCount(lambda total: on_progress(f"{number(total)} records checked"))
    for log in logs:
        records = largest = 0
        for message in messages_of(log, notes):
            for value in message.values(notes):
                records += 1
                largest = max(largest, len(value))
                count.add(1)
        surveyed_logs.append(SurveyedLog(log, records, largest))
    return surveyed_logs


def placed_logs(logs: Iterable[SurveyedLog], new_name: str | None = None) -> list[TargetPartition]:
    """Return the new place of each log: the partitions of a topic are counted from 0, in the order
    of broker and number. `new_name`: of the one topic; None: each keeps its name.
    """
    targets: list[TargetPartition] = []
    counts: dict[str, int] = {}
    for each in logs:
        name = new_name or each.log.topic
        counts[name] = counts.get(name, -1) + 1
        targets.append(TargetPartition(each, TopicPartition(name, counts[name])))
    return targets


def check_topics(client: Client, names: Iterable[str]) -> None:
    """Raise ImportRefusedError if one of the topics has records; KafkaError, OSError,
    ProtocolError, ConfigError.
    """
    for name, topic in _present(client, names).items():
        _check_empty(client, name, topic.partition_count)


def _present(client: Client, names: Iterable[str]) -> dict[str, admin.DescribedTopic]:
    """Return the topics that are there. Raises KafkaError for one that is not shown."""
    topics = admin.describe(client, names).topics
    for name, topic in topics.items():
        if topic.error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
            raise KafkaError(topic.error, f"topic {name}")
    return {name: topic for name, topic in topics.items() if not topic.error}


def prepare_topics(client: Client, targets: Sequence[TargetPartition]) -> dict[TopicPartition, int]:
    """Make the topics, or the partitions that they lack; return the offset that each begins at.

    Raises ImportRefusedError for a topic with records, or one whose max.message.bytes is too small:
    nothing is made then. Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    names = sorted({target.place.topic for target in targets})
    old_topics = _present(client, names)
    for name, topic in old_topics.items():
        _check_empty(client, name, topic.partition_count)
        _check_size(client, name, _largest(targets, name))
    places = [target.place for target in targets]
    offsets = dict.fromkeys(places, 0)
    for name in names:
        count = sum(place.topic == name for place in places)
        old_count = old_topics[name].partition_count if name in old_topics else 0
        if not old_count:
            _create(client, name, count, _largest(targets, name))
            continue
        old_places = [
            place for place in places if place.topic == name and place.partition < old_count
        ]
        offsets |= _ends(client, old_places)
        if old_count < count:
            admin.create_partitions(client, name, count, timeout_s=TIMEOUT_S)
            client.forget(name)
    return offsets


def _largest(targets: Iterable[TargetPartition], name: str) -> int:
    return max(each.source.largest_bytes for each in targets if each.place.topic == name)


def _ends(client: Client, places: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    return admin.offsets_at(client, places, LATEST_TIMESTAMP, is_committed=False)


def _check_empty(client: Client, name: str, partitions: int) -> None:
    """Raise ImportRefusedError for a topic that has records."""
    places = [TopicPartition(name, partition) for partition in range(partitions)]
    starts = admin.offsets_at(client, places, EARLIEST_TIMESTAMP, is_committed=False)
    records = sum(end - starts[place] for place, end in _ends(client, places).items())
    if records:
        raise ImportRefusedError(
            f"topic {name} has {counted(records, 'record')} already, as after an import that was "
            f"killed: delete it (minibroker topics --delete {name}), or import into another one "
            "(--to-topic). The table of positions is true for an empty topic alone"
        )


def _check_size(client: Client, name: str, largest_bytes: int) -> None:
    """Raise ImportRefusedError if a topic takes no value of this size."""
    try:
        settings = configs.topic_settings(client, name)
    except KafkaError as error:  # hidden from this user, or the broker is too old: it decides then
        if error.code not in (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ):
            raise
        return
    except BrokerRefusedError:
        return
    for setting in settings:
        if setting.name == "max.message.bytes" and (setting.value or "").isdecimal():
            allowed_bytes = int(setting.value or "0")
            if largest_bytes + _BATCH_BYTES > allowed_bytes:
                raise ImportRefusedError(
                    f"topic {name} has max.message.bytes={allowed_bytes}, and the largest message "
                    f"has {largest_bytes} bytes: set it to {largest_bytes + _BATCH_BYTES} at least"
                )


def _create(client: Client, name: str, partitions: int, largest_bytes: int) -> None:
    """Make a topic that takes values of this size. Raises ImportRefusedError; OSError,
    ProtocolError, ConfigError.
    """
    needed_bytes = largest_bytes + _BATCH_BYTES
    settings = {"max.message.bytes": str(needed_bytes)} if needed_bytes > _MESSAGE_BYTES else {}
    try:
        admin.create_topic(client, name, partitions, settings, timeout_s=TIMEOUT_S)
    except BrokerRefusedError as error:
        raise ImportRefusedError(
            f"topic {name} cannot be made: {error}. A broker before Kafka 0.10.1 makes none when "
            f"it is asked: make it there, with {counted(partitions, 'partition')}"
        ) from error
    except KafkaError as error:
        raise ImportRefusedError(
            f"topic {name} cannot be made: {error}. Another name may stand in --to-topic"
        ) from error


class ImportOptions(NamedTuple):
    """The way in which records are written."""

    codec: str
    notes: LogNotes
    on_progress: Callable[[str], None]


def write(
    client: Client,
    targets: Sequence[TargetPartition],
    offsets: Mapping[TopicPartition, int],
    table_path: Path,
    options: ImportOptions,
) -> list[ImportedPartition]:
    """Write the records and the table; return the partitions.

    `offsets`: the first one of each partition, as `prepare_topics` returns them.

    Raises ImportRefusedError if somebody else wrote to the topics or the logs; CorruptionError;
    KafkaError, OSError, ProtocolError, ConfigError. There is no table then.
    """
    partitions = []
    total = sum(target.source.records for target in targets)
    with writing_table(table_path) as table:
        writing = _Writing(table, offsets, options, total)
        for name in dict.fromkeys(target.place.topic for target in targets):
            with TopicWriter.open(client, name, WriteOptions(codec=options.codec)) as writer:
                of_topic = (target for target in targets if target.place.topic == name)
                partitions += [writing.write_log(writer, target) for target in of_topic]
                writer.flush()
        _check_ends(client, partitions)
        for target in targets:
            check_unchanged(target.source.log)
    return partitions


class _Writing:
    """The records of logs on their way. Used by one thread."""

    def __init__(
        self,
        table: TableWriter,
        offsets: Mapping[TopicPartition, int],
        options: ImportOptions,
        total: int,
    ) -> None:
        self._table = table
        self._offsets = offsets
        self._options = options
        self._count = _RecordCount(
            lambda count: options.on_progress(f"{number(count)} of {number(total)} records")
        )
        """The records that the writer has got."""

    def write_log(self, writer: TopicWriter, target: TargetPartition) -> ImportedPartition:
        """Write one log; return its partition.

        Raises CorruptionError; KafkaError, OSError, ProtocolError, ConfigError.
        """
        log, notes = target.source.log, self._options.notes
        first_offset = offset = self._offsets[target.place]
        end = log.start
        self._table.begin_partition()
        for message in messages_of(log, notes):
            values = message.values(notes)
            self._table.add(message.position, offset, len(values))
            for value in values:
                writer.add(Record(0, NO_TIMESTAMP, None, value), target.place.partition)
            offset += len(values)
            end = message.end
            self._count.add(len(values))
        partition = imported_partition(log, end, target.place, (first_offset, offset))
        self._table.end_partition(partition)
        return partition


def _check_ends(client: Client, partitions: Sequence[ImportedPartition]) -> None:
    """Raise ImportRefusedError if a partition does not end where its import ended."""
    places = [TopicPartition(each.new_topic, each.new_number) for each in partitions]
    ends = _ends(client, places)
    for place, partition in zip(places, partitions, strict=True):
        if ends[place] != partition.end_offset:
            raise ImportRefusedError(
                f"{place} ends at offset {ends[place]}, expected {partition.end_offset}: somebody "
                "else wrote to it, so the table would not be true. Stop them, delete the topic "
                "and import again"
            )


def summary_of(partition: ImportedPartition) -> str:
    """Return a line about an imported partition."""
    records = partition.end_offset - partition.first_offset
    span = size(partition.end - partition.start)
    return (
        f"{partition.name} is {partition.new_topic}-{partition.new_number}: "
        f"{counted(records, 'record')}, {span}"
    )
