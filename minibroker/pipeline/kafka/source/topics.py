"""The driver's questions to the brokers: the partitions, their first and last offsets.

The requests are DescribeTopics (or the list of all topics, for a pattern) and ListOffsets at the
isolation level of the readers, so that a committed reader ends at the last stable offset.

    SourceOptions ──► TopicOffsets ──Offsets──► batch, stream
"""

from __future__ import annotations

import re
import threading
from typing import TYPE_CHECKING, Any, Final

import confluent_kafka
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import OffsetSpec

from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.source.consumer import admin_client
from minibroker.pipeline.offsets import EARLIEST, INTERNAL_TOPICS, LATEST, Offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.pipeline.kafka.options import Bound, SourceOptions

ANSWER_TIMEOUT_S: Final = 30.0
"""Time-out without `kafka.default.api.timeout.ms`: enough for a broker that is started again."""

_NO_SUCH_TOPIC: Final = frozenset(
    {
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._UNKNOWN_PARTITION,
    }
)
_UNREACHABLE: Final = frozenset(
    {
        KafkaError._TRANSPORT,
        KafkaError._ALL_BROKERS_DOWN,
        KafkaError._TIMED_OUT,
        KafkaError._RESOLVE,
    }
)
_NO_ID: Final = "A" * 22
"""The id of sixteen zero bytes in base64."""
_NONE_SO_LATE: Final = -1
"""The offset in the answer if no record has the requested timestamp or a later one."""


class TopicOffsets:
    """The driver's client and the topics that it reads."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._last_error: KafkaError | None = None
        self._pause = threading.Event()
        timeout_ms = options.client.get("default.api.timeout.ms")
        self._timeout_s = int(timeout_ms) / 1000 if timeout_ms else ANSWER_TIMEOUT_S
        self._committed = (
            IsolationLevel.READ_COMMITTED
            if options.isolation_level == "read_committed"
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._client = admin_client(options, self._note_error)
        self.ids: dict[str, str] = {}
        """Topic → id at the last call of `partitions`; empty for clusters that have no ids."""

    def _note_error(self, error: KafkaError) -> None:
        self._last_error = error

    # Partitions.

    def partitions(
        self, *, missing_allowed: bool = False, patient: bool = False
    ) -> list[TopicPartition]:
        """Return the partitions that the options name, as they are now, sorted.

        Args:
            missing_allowed: a partition that does not exist is left out.
            patient: ask again for a missing one, `fetchOffset.numRetries` times.

        Raises:
            PipelineError: a topic or partition does not exist, unless `missing_allowed`; no
                broker answers; a broker refuses.
        """
        options = self._options
        if options.pattern is not None:
            return self._matching(options.pattern)
        names = options.topics or tuple(
            dict.fromkeys(partition.topic for partition in options.assigned)
        )
        for left in range(options.offset_retries if patient else 0, -1, -1):
            found = self.describe(names, missing_allowed=missing_allowed or left > 0)
            if left == 0 or {partition.topic for partition in found}.issuperset(names):
                break
            self._wait()
        if not options.assigned:
            return sorted(found)
        for partition in options.assigned:
            if partition not in found and not missing_allowed:
                raise PipelineError(
                    f"option assign names {partition}, which {self._brokers} does not have; "
                    f"it has {_listed(sorted(found))}"
                )
        return [partition for partition in options.assigned if partition in found]

    def _matching(self, pattern: str) -> list[TopicPartition]:
        wanted = re.compile(pattern)
        try:
            topics = self._client.list_topics(timeout=self._timeout_s).topics
        except KafkaException as error:
            raise self._failed("list the topics", error) from error
        names = [name for name in topics if name not in INTERNAL_TOPICS and wanted.fullmatch(name)]
        return sorted(self.describe(names, missing_allowed=True)) if names else []

    def describe(self, names: Iterable[str], *, missing_allowed: bool) -> set[TopicPartition]:
        """Return the partitions of topics, and keep the topics' ids. Raises as `partitions`."""
        found = set()
        self.ids = {}
        answers = self._client.describe_topics(
            TopicCollection(list(names)), request_timeout=self._timeout_s
        )
        for name, answer in answers.items():
            try:
                described = answer.result()
            except KafkaException as error:
                if error.args[0].code() not in _NO_SUCH_TOPIC:
                    raise self._failed(f"describe topic {name!r}", error) from error
                if missing_allowed:
                    continue
                raise PipelineError(
                    f"topic {name!r} does not exist on {self._brokers}: create it, or correct "
                    "the name"
                ) from error
            found |= {TopicPartition(name, partition.id) for partition in described.partitions}
            if text := id_text(described.topic_id):
                self.ids[name] = text
        return found

    # Offsets.

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the log start offset of each partition. Raises PipelineError."""
        return self._asked(dict.fromkeys(partitions, OffsetSpec.earliest()))

    def latest(
        self, partitions: Iterable[TopicPartition], *, known: Mapping[TopicPartition, int]
    ) -> Offsets:
        """Return the end of each partition; for a committed reader the last stable offset.

        A new leader may report a smaller end than was known before (KAFKA-7703). Such a partition
        is asked again, `fetchOffset.numRetries` times, before the answer is believed.

        Raises:
            PipelineError: a partition is gone; no answer.
        """
        wanted = list(partitions)
        for left in range(self._options.offset_retries, -1, -1):
            found = self._asked(dict.fromkeys(wanted, OffsetSpec.latest()))
            if left == 0 or all(
                found[partition] >= known.get(partition, 0) for partition in wanted
            ):
                break
            self._wait()
        return found

    def at(
        self, bound: Bound, partitions: list[TopicPartition], *, side: str, where_none: int
    ) -> Offsets:
        """Return the offsets of `bound` in each of `partitions`.

        Args:
            bound: of the options.
            partitions: all partitions to read.
            side: `starting` or `ending`, for messages.
            where_none: LATEST, or 0 to refuse, if a partition has no record so late as a timestamp.

        Raises:
            PipelineError: the bound does not name the partitions that there are; no record so late.
        """
        if bound.timestamp_ms is not None:
            stamps = dict.fromkeys(partitions, bound.timestamp_ms)
            return self._at_timestamps(stamps, f"{side}Timestamp", where_none)
        if bound.timestamps_ms is not None:
            name = f"{side}OffsetsByTimestamp"
            self._check_named(bound.timestamps_ms, partitions, name)
            return self._at_timestamps(bound.timestamps_ms, name, where_none)
        if bound.offsets is not None:
            self._check_named(bound.offsets, partitions, f"{side}Offsets")
            return self._resolved(bound.offsets)
        return self._resolved(dict.fromkeys(partitions, bound.everywhere))

    def _resolved(self, offsets: Mapping[TopicPartition, int]) -> Offsets:
        """Return the offsets with -2 and -1 replaced by the offsets that they mean now."""
        special = {EARLIEST: OffsetSpec.earliest(), LATEST: OffsetSpec.latest()}
        asked = {
            partition: special[offset] for partition, offset in offsets.items() if offset in special
        }
        return dict(offsets) | (self._asked(asked) if asked else {})

    def _at_timestamps(
        self, stamps_ms: Mapping[TopicPartition, int], name: str, where_none: int
    ) -> Offsets:
        # Asked first: a record that comes between the two questions is not skipped.
        ends = self._asked(dict.fromkeys(stamps_ms, OffsetSpec.latest())) if where_none else {}
        found = self._asked(
            {partition: OffsetSpec.for_timestamp(stamp) for partition, stamp in stamps_ms.items()}
        )
        missing = [partition for partition, offset in found.items() if offset == _NONE_SO_LATE]
        if not missing:
            return found
        if not ends:
            partition = missing[0]
            raise PipelineError(
                f"option {name} is {stamps_ms[partition]}, and {partition} has no record at that"
                " time or later; set startingOffsetsByTimestampStrategy=latest to start at its end"
            )
        return found | {partition: ends[partition] for partition in missing}

    def _check_named(
        self, named: Mapping[TopicPartition, int], partitions: list[TopicPartition], name: str
    ) -> None:
        if set(named) == set(partitions):
            return
        raise PipelineError(
            f"option {name} names {_listed(sorted(named))}, but what is read has "
            f"{_listed(partitions)}: name each of them (-2 is the earliest, -1 the latest)"
        )

    def _asked(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> Offsets:
        """Return the answers of ListOffsets; a partition that a new leader refuses is retried."""
        found: Offsets = {}
        for left in range(self._options.offset_retries, -1, -1):
            rest = {partition: spec for partition, spec in wanted.items() if partition not in found}
            if not rest:
                break
            failed = self._ask(rest, found)
            if failed is None:
                break
            partition, error = failed
            code = error.args[0]
            if left == 0 or not (code.retriable() or code.code() in _PASSING):
                raise self._failed(f"find the offsets of {partition}", error) from error
            self._wait()
        return found

    def _ask(
        self, wanted: Mapping[TopicPartition, OffsetSpec], found: Offsets
    ) -> tuple[TopicPartition, KafkaException] | None:
        """Send one round of requests; add answers to `found`, return a partition that failed."""
        answers = self._client.list_offsets(
            {
                confluent_kafka.TopicPartition(*partition): spec
                for partition, spec in wanted.items()
            },
            isolation_level=self._committed,
            request_timeout=self._timeout_s,
        )
        failed = None
        for asked, answer in answers.items():
            partition = TopicPartition(asked.topic, asked.partition)
            try:
                found[partition] = answer.result().offset
            except KafkaException as error:
                failed = (partition, error)
        return failed

    def _wait(self) -> None:
        self._pause.wait(self._options.offset_retry_interval_ms / 1000)

    @property
    def _brokers(self) -> str:
        return self._options.client["bootstrap.servers"]

    def _failed(self, what: str, error: KafkaException) -> PipelineError:
        code: Any = error.args[0]
        if code.code() in _UNREACHABLE:
            last = f" ({self._last_error.str()})" if self._last_error else ""
            return PipelineError(
                f"no broker answers at {self._brokers}{last}: start it, or correct "
                "kafka.bootstrap.servers"
            )
        if code.code() in _NO_SUCH_TOPIC:
            return PipelineError(
                f"cannot {what} on {self._brokers}: the topic or partition is gone; create it "
                "anew, or set failOnDataLoss=false to go on without it"
            )
        return PipelineError(f"cannot {what} on {self._brokers}: {code.str()}")


def made_anew(options: SourceOptions, topics: Iterable[str]) -> list[str]:
    """Return the topics that have another id now than the one that they must have.

    A topic that is gone is left out. Raises PipelineError: the brokers do not answer.
    """
    wanted = {topic: options.topic_ids[topic] for topic in topics if options.topic_ids.get(topic)}
    if not wanted:
        return []
    offsets = TopicOffsets(options)
    offsets.describe(wanted, missing_allowed=True)
    return sorted(topic for topic in offsets.ids if offsets.ids[topic] != wanted[topic])


def id_text(topic_id: object) -> str:
    """Return a topic's id as text, empty where the cluster has no ids (before Kafka 2.8)."""
    text = str(topic_id or "")
    return "" if text == _NO_ID else text


_PASSING: Final = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
    }
)


def _listed(partitions: list[TopicPartition]) -> str:
    """Return names for a message, cut to as many as a person reads."""
    shown = ", ".join(str(partition) for partition in partitions[:8])
    return f"{shown} and {len(partitions) - 8} more" if len(partitions) > 8 else shown or "none"
