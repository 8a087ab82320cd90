"""The driver's questions to the brokers: the partitions, their first and last offsets.

The requests are DescribeTopics (or the list of all topics, for a pattern) and ListOffsets at the
isolation level of the readers, so that a committed reader ends at the last stable offset.

    SourceOptions ──► TopicOffsets ──Offsets──► batch, stream
"""

from __future__ import annotations

import base64
import re
import threading
import time
from typing import TYPE_CHECKING, Final

from minibroker.client import admin
from minibroker.client.client import CLIENT_ERRORS, Client, is_lasting
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import connection_settings
from minibroker.pipeline.offsets import EARLIEST, INTERNAL_TOPICS, LATEST, Offsets

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.client.admin import DescribedCluster
    from minibroker.pipeline.kafka.options import Bound, SourceOptions

ANSWER_TIMEOUT_S: Final = 30.0
"""Time-out without `kafka.default.api.timeout.ms`: enough for a broker that is started again."""
PAUSE_S: Final = 0.1
"""Time between two questions to brokers that do not answer."""

_NO_SUCH_TOPIC: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_NONE_SO_LATE: Final = -1
"""The offset in the answer if no record has the requested timestamp or a later one."""


class TopicOffsets:
    """The driver's client and the topics that it reads."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._pause = threading.Event()
        self._interval_s = options.offset_retry_interval_ms / 1000
        timeout_ms = options.client.get("default.api.timeout.ms")
        self._timeout_s = int(timeout_ms) / 1000 if timeout_ms else ANSWER_TIMEOUT_S
        settings = connection_settings(options.settings)
        patience_s = min(settings.timeout_s, self._timeout_s)
        self._client = Client(settings._replace(timeout_s=patience_s))
        self.ids: dict[str, str] = {}
        """Topic → id at the last call of `partitions`; empty for clusters that have no ids."""

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
        for attempts_left in range(options.offset_retries if patient else 0, -1, -1):
            existing = self.describe(names, missing_allowed=missing_allowed or attempts_left > 0)
            if attempts_left == 0 or {partition.topic for partition in existing}.issuperset(names):
                break
            self._pause.wait(self._interval_s)
        if not options.assigned:
            return sorted(existing)
        for partition in options.assigned:
            if partition not in existing and not missing_allowed:
                raise PipelineError(
                    f"option assign names {partition}, which {self._brokers} does not have; "
                    f"it has {_names_text(sorted(existing))}"
                )
        return [partition for partition in options.assigned if partition in existing]

    def _matching(self, pattern: str) -> list[TopicPartition]:
        regex = re.compile(pattern)
        names = [
            name
            for name in self._described(None).topics
            if name not in INTERNAL_TOPICS and regex.fullmatch(name)
        ]
        return sorted(self.describe(names, missing_allowed=True)) if names else []

    def describe(self, names: Iterable[str], *, missing_allowed: bool) -> set[TopicPartition]:
        """Return the partitions of topics, and keep the topics' ids. Raises PipelineError."""
        partitions = set()
        self.ids = {}
        for name, topic in self._described(names).topics.items():
            if topic.error == _NO_SUCH_TOPIC:
                if missing_allowed:
                    continue
                raise PipelineError(
                    f"topic {name!r} does not exist on {self._brokers}: create it, or correct "
                    "the name"
                )
            if topic.error:
                raise self._failed(f"describe topic {name!r}", KafkaError(topic.error))
            partitions |= {TopicPartition(name, number) for number in range(topic.partition_count)}
            if text := id_text(topic.topic_id):
                self.ids[name] = text
        return partitions

    def _described(self, names: Iterable[str] | None) -> DescribedCluster:
        """Return topics, all without `names`, from the first broker that answers in time.

        Raises PipelineError: none does.
        """
        topic_names = None if names is None else list(names)
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                return admin.describe(self._client, topic_names)
            except CLIENT_ERRORS as error:
                if is_lasting(error) or time.monotonic() >= deadline:
                    raise self._failed("describe the topics", error) from error
            self._pause.wait(PAUSE_S)

    # Offsets.

    def earliest(self, partitions: Iterable[TopicPartition]) -> Offsets:
        """Return the log start offset of each partition. Raises PipelineError."""
        return self._list_offsets(dict.fromkeys(partitions, EARLIEST))

    def latest(
        self, partitions: Iterable[TopicPartition], *, last_ends: Mapping[TopicPartition, int]
    ) -> Offsets:
        """Return the end of each partition; for a committed reader the last stable offset.

        A new leader may report a smaller end than was known before (KAFKA-7703). Such a partition
        is asked again, `fetchOffset.numRetries` times, before the answer is believed.

        Raises:
            PipelineError: a partition is gone; no answer.
        """
        names = list(partitions)
        for attempts_left in range(self._options.offset_retries, -1, -1):
            ends = self._list_offsets(dict.fromkeys(names, LATEST))
            if attempts_left == 0 or all(
                ends[partition] >= last_ends.get(partition, 0) for partition in names
            ):
                break
            self._pause.wait(self._interval_s)
        return ends

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
        symbols = {
            partition: offset
            for partition, offset in offsets.items()
            if offset in (EARLIEST, LATEST)
        }
        return dict(offsets) | (self._list_offsets(symbols) if symbols else {})

    def _at_timestamps(
        self, stamps_ms: Mapping[TopicPartition, int], name: str, where_none: int
    ) -> Offsets:
        # Asked first: a record that comes between the two questions is not skipped.
        ends = self._list_offsets(dict.fromkeys(stamps_ms, LATEST)) if where_none else {}
        offsets = self._list_offsets(stamps_ms)
        missing = [partition for partition, offset in offsets.items() if offset == _NONE_SO_LATE]
        if not missing:
            return offsets
        if not ends:
            partition = missing[0]
            raise PipelineError(
                f"option {name} is {stamps_ms[partition]}, and {partition} has no record at that"
                " time or later; set startingOffsetsByTimestampStrategy=latest to start at its end"
            )
        return offsets | {partition: ends[partition] for partition in missing}

    def _check_named(
        self, offsets: Mapping[TopicPartition, int], partitions: list[TopicPartition], name: str
    ) -> None:
        if set(offsets) == set(partitions):
            return
        raise PipelineError(
            f"option {name} names {_names_text(sorted(offsets))}, but what is read has "
            f"{_names_text(partitions)}: name each of them (-2 is the earliest, -1 the latest)"
        )

    def _list_offsets(self, times: Mapping[TopicPartition, int]) -> Offsets:
        """Return the answers of ListOffsets at times; a partition that a new leader refuses is
        asked again, and so is a broker that does not answer, until the time is over.
        """
        offsets: Offsets = {}
        retries = self._options.offset_retries
        deadline = time.monotonic() + self._timeout_s
        is_committed = self._options.isolation_level == "read_committed"
        while open_times := {place: at for place, at in times.items() if place not in offsets}:
            try:
                answers = admin.list_offsets(self._client, open_times, is_committed=is_committed)
            except CLIENT_ERRORS as error:
                answers = admin.ListedOffsets({}, dict.fromkeys(open_times, error))
            offsets |= answers.offsets
            if not answers.failed:
                break
            place, failure = next(iter(answers.failed.items()))
            code = failure.code if isinstance(failure, KafkaError) else None
            if code is None or code == ErrorCode.LEADER_NOT_AVAILABLE:
                is_over, pause_s = is_lasting(failure) or time.monotonic() >= deadline, PAUSE_S
            else:
                is_over, pause_s = retries <= 0 or not code.retriable, self._interval_s
                retries -= 1
            if is_over:
                raise self._failed(f"find the offsets of {place}", failure) from failure
            self._pause.wait(pause_s)
        return offsets

    @property
    def _brokers(self) -> str:
        return self._options.client["bootstrap.servers"]

    def _failed(self, action: str, error: Exception) -> PipelineError:
        if not isinstance(error, KafkaError):
            return PipelineError(
                f"no broker answers at {self._brokers} ({error}): start it, or correct "
                "kafka.bootstrap.servers"
            )
        if error.code == _NO_SUCH_TOPIC:
            return PipelineError(
                f"cannot {action} on {self._brokers}: the topic or partition is gone; create it "
                "anew, or set failOnDataLoss=false to go on without it"
            )
        return PipelineError(f"cannot {action} on {self._brokers}: {error}")


def id_text(topic_id: bytes) -> str:
    """Return a topic's id as text, empty where the cluster has no ids (before Kafka 2.8).

    It is in the usual base64, without padding, as jobs of earlier versions keep it.
    """
    return base64.b64encode(topic_id).decode("ascii").rstrip("=") if any(topic_id) else ""


def _names_text(partitions: list[TopicPartition]) -> str:
    """Return names for a message, cut to as many as a person reads."""
    text = ", ".join(str(partition) for partition in partitions[:8])
    return f"{text} and {len(partitions) - 8} more" if len(partitions) > 8 else text or "none"
