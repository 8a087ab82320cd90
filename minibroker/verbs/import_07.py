"""`minibroker import-07`: logs of Kafka 0.7 into topics, and its positions as offsets.

The work is in `tools.import_07`.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple, TextIO

from minibroker.cli.declaration import Names, Option, Part, Verb
from minibroker.cli.errors import EXIT_FAILED, EXIT_OK, CommandError, UsageError
from minibroker.cli.kinds import CODEC, FILE, SWITCH, TOPIC, Kind, Many, addresses
from minibroker.cli.quantities import counted
from minibroker.verbs.connecting import ClusterOptions, reader_of, writer_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from minibroker.tools.import_07.consumers import StoredPosition
    from minibroker.tools.import_07.logs import BrokerDirectory, Log07
    from minibroker.tools.import_07.table import (
        ImportedPartition,
        PlaceOfPosition,
        PositionTable,
    )

RECORDS: Final = "Records"
CONSUMERS: Final = "Consumers"
TABLE: Final = "Table"
DEFAULT_TABLE: Final = "import-07.table"
_DIRECTORY: Final = re.compile(r"(?:([0-9]{1,9})=)?(.+)", re.DOTALL)
_POSITION: Final = re.compile(r"(?:(?:(.+)/)?([0-9]{1,9})-([0-9]{1,9}):)?([0-9]{1,18})")


class PositionQuery(NamedTuple):
    """A position that is looked up."""

    topic: str | None
    """None: that of the table's partitions, if it is the only one."""
    partition: tuple[int, int] | None
    """Id of the broker and number; None: as `topic`."""
    position: int


def _directory(text: str) -> tuple[int | None, str]:
    """Return id of the broker, None if there is none, and path of `B=DIR`."""
    match = _DIRECTORY.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r}: expected DIR or BROKER=DIR, such as 0=/data/kafka-logs")
    return None if match[1] is None else int(match[1]), match[2]


def _position(text: str) -> PositionQuery:
    match = _POSITION.fullmatch(text)
    if match is None:
        raise UsageError(
            f"{text!r}: expected a position in bytes, or [TOPIC/]BROKER-PARTITION:POSITION, such "
            "as orders/0-1:52428800"
        )
    topic, broker, number, position = match.groups()
    partition = None if broker is None else (int(broker), int(number))
    return PositionQuery(topic, partition, int(position))


def _tree(text: str) -> str:
    """Return the address of a ZooKeeper, with its chroot. Raises UsageError."""
    addresses(text.partition("/")[0])
    return text


class ImportPlan(NamedTuple):
    """The options of the verb."""

    directories: Annotated[
        tuple[tuple[int | None, str], ...],
        Option(
            "DIR",
            Many("[BROKER=]DIR", _directory, is_split=False, completes="directory"),
            "the log directory of a broker of Kafka 0.7 (log.dir) that is stopped; several have "
            "the id of their broker (brokerid) in front",
            default="of one directory broker 0",
        ),
    ] = ()
    topics: Annotated[
        tuple[str, ...],
        Option(
            "--topic",
            Many("T[,...]"),
            "import these topics alone",
            RECORDS,
            default="all of the directories",
        ),
    ] = ()
    new_topic: Annotated[
        str | None,
        Option(
            "--to-topic",
            TOPIC,
            "write to this topic, if one is imported",
            RECORDS,
            default="the name that it has",
        ),
    ] = None
    codec: Annotated[str, Option("--compression", CODEC, "compression of batches", RECORDS)] = (
        "none"
    )
    skips: Annotated[
        bool,
        Option(
            "--skip-damaged",
            SWITCH,
            "leave out messages with a wrong CRC, and the rest of a segment that cannot be read; "
            "each is said",
            RECORDS,
        ),
    ] = False
    zookeeper: Annotated[
        str | None,
        Option(
            "--zookeeper",
            Kind("HOST:PORT[/CHROOT]", _tree),
            "commit the positions that groups have in the ZooKeeper of Kafka 0.7 (zk.connect)",
            CONSUMERS,
        ),
    ] = None
    offsets: Annotated[
        str | None,
        Option(
            "--offsets",
            FILE,
            "commit the positions in a file of Kafka's ExportZkOffsets",
            CONSUMERS,
        ),
    ] = None
    groups: Annotated[
        tuple[str, ...],
        Option("--group", Many("G[,...]"), "of these groups alone", CONSUMERS, default="of all"),
    ] = ()
    table: Annotated[
        str,
        Option("--table", FILE, "the table of positions and offsets; an import makes it", TABLE),
    ] = DEFAULT_TABLE
    positions: Annotated[
        tuple[PositionQuery, ...],
        Option(
            "--position",
            Many("[[TOPIC/]BROKER-PARTITION:]POSITION", _position),
            "print the offset of a position",
            TABLE,
        ),
    ] = ()
    is_json: Annotated[
        bool, Option("--json", SWITCH, "print an object of JSON for each position", TABLE)
    ] = False
    connection: Annotated[ClusterOptions, Part(ClusterOptions)] = ClusterOptions()


def check(plan: ImportPlan, names: Names) -> None:
    """Raise UsageError for options that do not go together."""
    commits = plan.zookeeper is not None or plan.offsets is not None
    if not (plan.directories or plan.positions or commits):
        raise UsageError(
            "nothing is to be done: name a log directory, or --position, or "
            f"{names['zookeeper']} or {names['offsets']} for a table that is there"
        )
    if plan.positions and (plan.directories or commits):
        raise UsageError(f"{names['positions']} looks up, and goes with {names['table']} alone")
    if plan.is_json and not plan.positions:
        raise UsageError(f"{names['is_json']} needs {names['positions']}")
    if plan.groups and not commits:
        raise UsageError(f"{names['groups']} needs {names['zookeeper']} or {names['offsets']}")
    for field in ("topics", "new_topic", "skips"):
        if getattr(plan, field) and not plan.directories:
            raise UsageError(f"{names[field]} needs a log directory")
    if plan.zookeeper is not None and plan.offsets is not None:
        raise UsageError(f"{names['zookeeper']} and {names['offsets']} do not go together")
    brokers = [broker for broker, _ in plan.directories]
    if len(brokers) > 1 and (None in brokers or len(set(brokers)) < len(brokers)):
        raise UsageError("several directories need the ids of their brokers: 0=DIR 1=DIR")


def run(plan: ImportPlan, out: TextIO, errors: TextIO) -> int:
    """Import, commit or look up; return the exit code.

    Raises UsageError, CommandError, ImportRefusedError, CorruptionError; KafkaError, OSError,
    ProtocolError, ConfigError.
    """
    from minibroker.tools.import_07.table import open_table  # noqa: PLC0415  not for a help page

    path = Path(plan.table)
    if plan.positions:
        with open_table(path) as table:
            return _print_places(plan, table, out)
    work = _Work(plan, out, errors)
    if plan.directories:
        work.import_logs(path)
    else:
        with open_table(path) as table:
            work.commit(table, work.stored_positions(each.topic for each in table.partitions))
    return EXIT_OK


class _Work:
    """An import, or the commits of one. Used by one thread."""

    def __init__(self, plan: ImportPlan, out: TextIO, errors: TextIO) -> None:
        from minibroker.verbs.streams import ProgressLine  # noqa: PLC0415  not for a help page

        self._plan = plan
        self._out = out
        self._errors = errors
        self._progress = ProgressLine(errors)

    def _note(self, text: str) -> None:
        self._progress.clear()
        self._errors.write(f"{text}\n")

    def _say(self, text: str) -> None:
        self._out.write(f"{text}\n")

    def import_logs(self, path: Path) -> None:
        """Import the logs, write the table, commit the positions.

        Raises UsageError, CommandError, ImportRefusedError, CorruptionError; KafkaError, OSError,
        ProtocolError, ConfigError.
        """
        from minibroker.tools.import_07 import importing  # noqa: PLC0415  not for a help page
        from minibroker.tools.import_07.logs import partition_logs  # noqa: PLC0415  as above
        from minibroker.tools.import_07.table import (  # noqa: PLC0415  as above
            check_place,
            open_table,
        )
        from minibroker.verbs.streams import ending_at_sigterm  # noqa: PLC0415  as above

        plan = self._plan
        check_place(path)
        logs = partition_logs(_directories(plan), plan.topics)
        topics = list(dict.fromkeys(log.topic for log in logs))
        _check_names(plan, topics)
        positions = self.stored_positions(topics)
        _check_brokers(logs, positions)
        client = writer_of(plan.connection, creates_topics=False)
        importing.check_topics(client, topics if plan.new_topic is None else [plan.new_topic])
        progress = self._progress.show
        notes = importing.SkippingNotes(self._note, skips=plan.skips)
        surveyed_logs = importing.survey(logs, notes, progress)
        quiet_notes = importing.SkippingNotes(lambda _: None, skips=plan.skips)
        options = importing.ImportOptions(plan.codec, quiet_notes, progress)
        targets = importing.placed_logs(surveyed_logs, plan.new_topic)
        with ending_at_sigterm():
            offsets = importing.prepare_topics(client, targets)
            partitions = importing.write(client, targets, offsets, path, options)
        records = sum(each.records for each in surveyed_logs)
        self._progress.end(f"{counted(records, 'record')}, positions in {path}")
        for partition in partitions:
            self._say(importing.summary_of(partition))
        with open_table(path) as table:
            self.commit(table, positions)

    def stored_positions(self, topics: Iterable[str]) -> list[StoredPosition]:
        """Return the positions of the chosen groups in these topics. Raises ImportRefusedError,
        OSError.
        """
        from minibroker.tools.import_07.consumers import (  # noqa: PLC0415  not for a help page
            positions_in_file,
        )
        from minibroker.tools.import_07.zookeeper import (  # noqa: PLC0415  as above
            positions_in_zookeeper,
        )

        plan, chosen = self._plan, frozenset(topics)
        positions: Sequence[StoredPosition] = ()
        if plan.offsets is not None:
            file_positions = positions_in_file(Path(plan.offsets))
            positions = [each for each in file_positions if each.topic in chosen]
        elif plan.zookeeper is not None:
            positions = positions_in_zookeeper(plan.zookeeper, chosen)
        missing = set(plan.groups) - {each.group for each in positions}
        if missing:
            raise CommandError(
                f"group {min(missing)} has no position in {', '.join(sorted(chosen))}"
            )
        return [each for each in positions if not plan.groups or each.group in plan.groups]

    def commit(self, table: PositionTable, positions: Sequence[StoredPosition]) -> None:
        """Commit positions as offsets. Raises ImportRefusedError; KafkaError, OSError,
        ProtocolError, ConfigError.
        """
        from minibroker.tools.import_07 import committing  # noqa: PLC0415  not for a help page

        commits = committing.commits_of(table, positions, self._note)
        committing.commit(reader_of(self._plan.connection), commits, self._say)


def _directories(plan: ImportPlan) -> list[BrokerDirectory]:
    from minibroker.tools.import_07.logs import BrokerDirectory  # noqa: PLC0415  not for help

    return [BrokerDirectory(broker or 0, path) for broker, path in plan.directories]


def _check_names(plan: ImportPlan, topics: Sequence[str]) -> None:
    """Raise UsageError if the names of the new topics cannot be."""
    if plan.new_topic is not None and len(topics) > 1:
        raise UsageError(
            f"--to-topic names one topic, and there are {len(topics)} ({', '.join(topics)}): "
            "choose one with --topic"
        )
    for topic in topics:
        try:
            TOPIC.of_words([plan.new_topic or topic])
        except UsageError as error:
            raise UsageError(f"{error}: give it another name with --topic and --to-topic") from None


def _check_brokers(logs: Sequence[Log07], positions: Sequence[StoredPosition]) -> None:
    """Raise UsageError if all positions are of other brokers: a directory has a wrong number."""
    brokers = {log.broker for log in logs}
    stored_brokers = {position.broker for position in positions}
    if positions and not brokers & stored_brokers:
        raise UsageError(
            f"the groups have positions of broker {', '.join(map(str, sorted(stored_brokers)))}, "
            f"and the directories are of broker {', '.join(map(str, sorted(brokers)))}: write the "
            f"right number in front of a directory, {min(stored_brokers)}=DIR"
        )


def _print_places(plan: ImportPlan, table: PositionTable, out: TextIO) -> int:
    """Print the offset of each position; return the exit code, which tells whether all are whole.

    Raises CommandError for a partition that is not in the table.
    """
    code = EXIT_OK
    for query in plan.positions:
        partition = _partition_of(table.partitions, query)
        place = table.place_of(partition, query.position)
        line = _json_of if plan.is_json else _text_of
        out.write(f"{line(partition, query.position, place)}\n")
        if not place.is_exact:
            code = EXIT_FAILED
    return code


def _partition_of(
    partitions: Sequence[ImportedPartition], query: PositionQuery
) -> ImportedPartition:
    """Return the partition of a position. Raises CommandError if none or several are meant."""
    candidates = [
        each
        for each in partitions
        if query.topic in (None, each.topic)
        and query.partition in (None, (each.broker, each.number))
    ]
    if len(candidates) == 1:
        return candidates[0]
    names = ", ".join(each.name for each in candidates or partitions)
    raise CommandError(
        f"position {query.position} may be of several partitions ({names}): write "
        "TOPIC/BROKER-PARTITION:POSITION"
        if candidates
        else f"the table has no such partition: it has {names}"
    )


def _text_of(partition: ImportedPartition, position: int, place: PlaceOfPosition) -> str:
    """Return a line for a person."""
    subject = f"{partition.name}:{position}"
    new_place = f"{partition.new_topic}-{partition.new_number}"
    if place.kind == "message" and place.row is not None:
        count = place.row.records
        suffix = f", a compressed message of {counted(count, 'record')}" if count != 1 else ""
        return f"{subject} is offset {place.offset} of {new_place}{suffix}"
    if place.kind == "end":
        return f"{subject} is offset {place.offset} of {new_place}, the end of the log"
    if place.row is not None:
        next_row = place.next_row
        end = (partition.end, partition.end_offset)
        next_place = end if next_row is None else (next_row.position, next_row.first_offset)
        return (
            f"{subject} is inside of a message: the one around it begins at {place.row.position} "
            f"(offset {place.offset}), the next one at {next_place[0]} (offset {next_place[1]})"
        )
    return (
        f"{subject} is {place.kind} of the log, which has the positions {partition.start} to "
        f"{partition.end} (offsets {partition.first_offset} to {partition.end_offset})"
    )


def _json_of(partition: ImportedPartition, position: int, place: PlaceOfPosition) -> str:
    """Return an object of JSON in a line."""
    return json.dumps(
        {
            "topic": partition.topic,
            "broker": partition.broker,
            "partition": partition.number,
            "position": position,
            "kind": place.kind,
            "new_topic": partition.new_topic,
            "new_partition": partition.new_number,
            "offset": place.offset,
        }
    )


VERB: Final = Verb(
    name="import-07",
    does="bring logs of Kafka 0.7 into topics, and its consumers' positions with them",
    plan=ImportPlan,
    run=run,
    check=check,
    usage="[BROKER=]DIR...",
    group="Logs",
    groups=(RECORDS, CONSUMERS, TABLE),
    notes="""\
Each partition of a broker becomes a partition: those of a topic are counted from 0, in the order of
broker and number. The topics have to be empty, and nobody else may write to them meanwhile; a topic
that is missing is made. The logs are checked before anything is written. The records have no
timestamp, as the messages of Kafka 0.7 have none.

The table says which offset a position in bytes has become. Without a directory --zookeeper and
--offsets commit by a table that is there. --position looks up, and ends with 1 if no message begins
there.
""",
    examples=(
        "import-07 /data/kafka-logs --zookeeper 127.0.0.1:2181",
        "import-07 0=/mnt/a/kafka-logs 1=/mnt/b/kafka-logs --topic orders --to-topic orders-07",
        "import-07 --table import-07.table --position orders/0-1:52428800",
        "import-07 --table import-07.table --offsets offsets.txt --group billing",
    ),
)
