"""A recording: committed records of topics, chosen and masked, into an output.

    topics ─► declared ─► partition after partition: read ─► encoded ─► written in order

Where records only go from one file to another, batches are kept as they are. Other work is decoding
and encoding, which is shared among processes (`SharedEncoder`) if there is much of it. A partition
is read from its start to the end that it had when the recording began.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.topic import validate_topic_config
from minibroker.client import admin, configs
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import clear_producer
from minibroker.seeds.encoding import EncodedPart, Encoder, PartOfPartition
from minibroker.seeds.errors import SeedError
from minibroker.verbs.places import TIME, Bounds, OffsetPlace, bounds_of, offsets_at
from minibroker.verbs.reading import Lost, read_between
from minibroker.verbs.record.shared_encoder import SharedEncoder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from concurrent.futures import Future

    from minibroker.client.client import Client
    from minibroker.client.consume import Fetched
    from minibroker.kafka.records.stored_batch import StoredBatch
    from minibroker.seeds.operations import RecordOperations
    from minibroker.seeds.outputs import SeedOutput

_UNLIMITED: Final = {"retention.ms": "-1", "retention.bytes": "-1"}
"""Written for each topic: its records are older with each day, and a load is not to delete them."""
_OF_A_PLACE: Final = frozenset(
    {"leader.replication.throttled.replicas", "follower.replication.throttled.replicas"}
)
"""Settings that name brokers of the cluster."""
_NAMES_MAX: Final = 10_000


class RecordedTopic(NamedTuple):
    """A topic to record."""

    name: str
    partitions: int
    configs: dict[str, str]
    left_out: tuple[str, ...]
    """Settings of its own that minibroker does not know."""


class Range(NamedTuple):
    """The offsets of a partition to read."""

    place: TopicPartition
    start: int
    end: int


class RecordingTally:
    """The result of a recording, and its progress. Changed by one thread."""

    def __init__(self) -> None:
        self.topics: list[RecordedTopic] = []
        self.offsets = 0
        """Offsets of all ranges; gaps count."""
        self.read_offsets = 0
        self.records = 0
        """Records that are written."""
        self.chosen_records = 0
        self.unmaskable_records = 0
        self.written_bytes = 0
        self.mask_places = 0
        self.names: set[str] = set()

    def add(self, part: EncodedPart) -> None:
        """Count a part."""
        self.records += part.records
        self.chosen_records += part.chosen
        self.unmaskable_records += part.unmaskable
        self.mask_places |= part.mask_places
        if len(self.names) < _NAMES_MAX:
            self.names |= part.names


def record(
    client: Client,
    topics: Sequence[str],
    output: SeedOutput,
    operations: RecordOperations,
    *,
    last: int | None = None,
    on_progress: Callable[[RecordingTally], None] = lambda _: None,
) -> RecordingTally:
    """Write the committed records that topics have now; the output is finished when this returns.

    Args:
        output: takes the result; the caller abandons it after an error.
        operations: choose and mask records.
        last: only so many offsets before the end of each partition; None: from the start.
        on_progress: called often with what was done so far.

    Raises:
        SeedError: a topic is not there, a record cannot be masked, or no record has the place of a
            mask, or records were removed before they were read.
        KafkaError, OSError, ProtocolError, CorruptionError, ConfigError: of the client.
    """
    tally = RecordingTally()
    ranges = []
    for name in dict.fromkeys(topics):
        topic = described(client, name)
        tally.topics.append(topic)
        output.declare(name, topic.partitions, {**topic.configs, **_UNLIMITED})
        ranges += ranges_of(client, topic, operations, last)
    tally.offsets = sum(span.end - span.start for span in ranges)
    recording = _Recording(client, output, operations, tally, on_progress)
    words = operations.words
    if output.has_lines or words.chooses or words.changes:
        recording.encode(ranges)
    else:
        recording.copy(ranges)
    if tally.chosen_records:
        operations.check_places(tally.mask_places, tally.names)
    output.finish()
    return tally


def described(client: Client, name: str) -> RecordedTopic:
    """Return a topic with the settings of its own. Raises SeedError, and as `admin.describe`."""
    topic = admin.describe(client, [name]).topics[name]
    if topic.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        raise SeedError(f"there is no topic {name}")
    if topic.error:
        raise SeedError(f"topic {name} cannot be read: {topic.error.name}")
    try:
        settings = configs.topic_settings(client, name)
    except KafkaError:  # they may be hidden from this user, or unknown to an old broker
        settings = []
    own = {
        setting.name: setting.value
        for setting in settings
        if setting.source == configs.OF_TOPIC and setting.value is not None
    }
    kept_configs, left_out = {}, []
    plain = BrokerConfig({})
    for key, value in own.items():
        if key in _OF_A_PLACE or key in _UNLIMITED:
            continue
        try:
            validate_topic_config({key: value}, plain)
        except ConfigError:
            left_out.append(key)
        else:
            kept_configs[key] = value
    return RecordedTopic(name, topic.partition_count, kept_configs, tuple(left_out))


def ranges_of(
    client: Client, topic: RecordedTopic, operations: RecordOperations, last: int | None
) -> list[Range]:
    """Return the offsets to read of each partition. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
    bounds: Mapping[TopicPartition, Bounds] = bounds_of(client, places, is_committed=True)
    starts = {place: bound.beginning for place, bound in bounds.items()}
    if (since := operations.words.since) is not None:
        at = OffsetPlace(TIME, since.ms, since.text)
        starts = offsets_at(client, at, bounds, is_committed=True)
    ranges = []
    for place, bound in bounds.items():
        start = starts[place]
        if last is not None:
            start = max(start, bound.end - last)
        ranges.append(Range(place, start, bound.end))
    return ranges


class _Recording:
    """The way of the records. Used by one thread."""

    def __init__(
        self,
        client: Client,
        output: SeedOutput,
        operations: RecordOperations,
        tally: RecordingTally,
        on_progress: Callable[[RecordingTally], None],
    ) -> None:
        self._client = client
        self._output = output
        self._encoder = Encoder(operations, makes_lines=output.has_lines)
        self._tally = tally
        self._on_progress = on_progress

    def copy(self, ranges: Sequence[Range]) -> None:
        """Write batches as they are, but for their producers, and cut at the ends of a range."""
        for span in ranges:
            for fetched in self._fetched(span):
                for batch in fetched.batches:
                    header = batch.header
                    is_inside = header.base_offset >= span.start and header.last_offset < span.end
                    if header.magic == 2 and is_inside:
                        self._tally.records += header.count
                        self._put(span.place, header.base_offset, _without_producer(batch))
                    else:
                        part = PartOfPartition(*span, (bytes(batch.content),))
                        self._write(self._encoder.encode(part))

    def encode(self, ranges: Sequence[Range]) -> None:
        """Write records that are decoded, chosen, masked and encoded anew."""
        waiting: deque[Future[EncodedPart]] = deque()
        with SharedEncoder(self._encoder, self._tally.offsets) as shared:
            for span in ranges:
                for fetched in self._fetched(span):
                    batches = tuple(bytes(batch.content) for batch in fetched.batches)
                    waiting.append(shared.begin(PartOfPartition(*span, batches)))
                    if len(waiting) > shared.parts_max:
                        self._write(waiting.popleft().result())
            while waiting:
                self._write(waiting.popleft().result())

    def _fetched(self, span: Range) -> Iterator[Fetched]:
        """Yield the answers about a range; count its offsets. Raises SeedError for records that
        are gone.
        """

        def fail(lost: Lost) -> None:
            raise SeedError(
                f"records of {lost.place} from offset {lost.first} to {lost.next_offset - 1} were "
                "removed before they were read: record again, or begin later with --since or "
                "--last"
            )

        tally, old_offsets = self._tally, self._tally.read_offsets
        starts, ends = {span.place: span.start}, {span.place: span.end}
        for fetched in read_between(self._client, starts, ends, is_committed=True, on_lost=fail):
            yield fetched
            tally.read_offsets = old_offsets + min(fetched.next_offset, span.end) - span.start
            self._on_progress(tally)
        tally.read_offsets = old_offsets + span.end - span.start

    def _write(self, part: EncodedPart) -> None:
        self._tally.add(part)
        for offset, piece in part.pieces:
            self._put(part.place, offset, piece)

    def _put(
        self, place: TopicPartition, offset: int, piece: bytes | bytearray | memoryview
    ) -> None:
        self._output.write(place, offset, piece)
        self._tally.written_bytes += len(piece)


def _without_producer(batch: StoredBatch) -> memoryview | bytearray:
    """Return the bytes of a v2 batch as one that no producer and no transaction wrote."""
    header = batch.header
    if not (header.has_producer_id or header.is_transactional):
        return batch.content
    content = bytearray(batch.content)
    clear_producer(content, 0, header.attributes)
    return content
