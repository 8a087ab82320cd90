"""The options of the source: names, defaults and rules are those of Spark's Kafka connector.

Parsed in the driver before anything is asked of a broker. Names are case-insensitive, as Spark's.

| option | values |
|---|---|
| subscribe, subscribePattern, assign | exactly one: `a,b`; a regular expression; `{"a": [0, 1]}` |
| startingOffsets, endingOffsets | earliest, latest, `{"a": {"0": 17, "1": -2}}` |
| starting/endingOffsetsByTimestamp | `{"a": {"0": 1700000000000}}`, milliseconds |
| startingTimestamp, endingTimestamp | milliseconds, for all partitions; win over the others |
| startingOffsetsByTimestampStrategy | error (default), latest: no record that late |
| maxOffsetsPerTrigger, minOffsetsPerTrigger, maxTriggerDelay | streams: offsets of a batch; 15m |
| batchPause | ours, streams: time without a batch once one reached the end, as 1m; 0s |
| minPartitions, maxRecordsPerPartition | about how many tasks at least; offsets of a task at most |
| minRecordsPerPartition | ours: no task is made with fewer offsets; 1 |
| maxPartitions | ours: tasks at most; one reads several partitions then, in their order |
| joinPartitions | ours, batches: small partitions share tasks, if so many tasks are left |
| maxBytesPerTrigger | ours, streams: bytes of keys, values and headers of a batch, about |
| maxBytesPerSecond | ours: bytes that all tasks read in a second, about; needs maxPartitions |
| includeHeaders, failOnDataLoss | false, true |
| topicIds | streams: `{"a": "id"}`, the ids that the topics must have |
| fetchWith | ours: auto, wire: without effect; there is one client |
| pushFilters | batches, ours: true: filters on topic, partition and offset decide what is read |
| emit | streams, ours: records (default), ranges: a row for each range of offsets, unread |
| groupIdPrefix, kafka.group.id | of the consumers in the tasks |
| kafkaConsumer.pollTimeoutMs | 120000: a task fails when nothing comes for so long |
| fetchOffset.numRetries, fetchOffset.retryIntervalMs | 3, 1000: questions of the driver |
| kafka.* | for the client, see `client_settings` |

Endings are for batches, the limits of a trigger for streams.
"""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.quantities import milliseconds
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline import offsets
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import for_reader
from minibroker.pipeline.offsets import EARLIEST, LATEST, Offsets

if TYPE_CHECKING:
    from collections.abc import Mapping

KAFKA_PREFIX: Final = "kafka."

_NAMES: Final = (
    "subscribe",
    "subscribePattern",
    "assign",
    "startingOffsets",
    "endingOffsets",
    "startingOffsetsByTimestamp",
    "endingOffsetsByTimestamp",
    "startingTimestamp",
    "endingTimestamp",
    "startingOffsetsByTimestampStrategy",
    "maxOffsetsPerTrigger",
    "minOffsetsPerTrigger",
    "maxTriggerDelay",
    "batchPause",
    "minPartitions",
    "maxRecordsPerPartition",
    "minRecordsPerPartition",
    "maxPartitions",
    "joinPartitions",
    "maxBytesPerTrigger",
    "maxBytesPerSecond",
    "includeHeaders",
    "failOnDataLoss",
    "topicIds",
    "emit",
    "fetchWith",
    "pushFilters",
    "groupIdPrefix",
    "kafkaConsumer.pollTimeoutMs",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
)
TASK_OPTIONS: Final = (
    "minPartitions",
    "maxPartitions",
    "minRecordsPerPartition",
    "maxRecordsPerPartition",
    "joinPartitions",
)
"""Options about the number of tasks."""
_IN_LOWER_CASE: Final = {name.lower(): name for name in _NAMES}

_REFUSED: Final = {
    "kafka.auto.offset.reset": "say startingOffsets instead",
    "kafka.enable.auto.commit": "the position is kept in the checkpoint",
    "kafka.key.deserializer": "keys are bytes; cast the column",
    "kafka.value.deserializer": "values are bytes; cast the column",
    "kafka.interceptor.classes": "interceptors are not safe here",
}


class Bound(NamedTuple):
    """One end of the range to read: the first field that is set decides."""

    timestamp_ms: int | None = None
    timestamps_ms: Offsets | None = None
    offsets: Offsets | None = None
    everywhere: int = EARLIEST


class SourceOptions(NamedTuple):
    """The options of a source, checked."""

    topics: tuple[str, ...]
    pattern: str | None
    assigned: tuple[TopicPartition, ...]
    start: Bound
    end: Bound
    latest_when_no_timestamp: bool
    """Timestamp at whose first record a stream's batches end, None to read on."""
    max_offsets_per_trigger: int
    min_offsets_per_trigger: int
    max_trigger_delay_ms: int
    batch_pause_ms: int
    """Time without a batch from the start of one that reached the end on."""
    min_partitions: int
    max_records_per_partition: int
    min_records_per_partition: int
    max_partitions: int
    """Tasks of a batch at most, 0: one for each partition that is read."""
    join_partitions: int
    """Tasks that are left at least where whole partitions share tasks, 0: none share."""
    max_bytes_per_trigger: int
    max_bytes_per_second: int
    """Bytes of a second in all tasks together, 0: no limit."""
    include_headers: bool
    fail_on_data_loss: bool
    topic_ids: dict[str, str]
    """Topic → id that it must have."""
    emits_ranges: bool
    """True: a batch has the ranges of offsets, and not the records in them."""
    poll_timeout_ms: int
    offset_retries: int
    offset_retry_interval_ms: int
    client: dict[str, str]
    """Settings of the client as they were given, without the prefix `kafka.`."""
    settings: dict[str, str]
    """The same with Java's names: `client_settings.for_reader`."""

    @property
    def topics_text(self) -> str:
        """Return the topics as the user named them, for messages."""
        if self.pattern is not None:
            return f"pattern {self.pattern!r}"
        names = self.topics or tuple(sorted({span.topic for span in self.assigned}))
        return f"topic {names[0]!r}" if len(names) == 1 else "topics " + ", ".join(names)

    @property
    def task_bytes_per_second(self) -> float:
        """Return the share of one task in `maxBytesPerSecond`, 0 for no limit.

        It depends on no plan, so that no task needs to know how many others run now.
        """
        return self.max_bytes_per_second / max(1, self.max_partitions)

    @property
    def isolation_level(self) -> str:
        """Return read_uncommitted, the default of Kafka and of the connector, or read_committed."""
        return self.client.get("isolation.level", "read_uncommitted")


def parse(settings: Mapping[str, str], *, streaming: bool) -> SourceOptions:
    """Check the options of a batch read or of a stream.

    Raises:
        PipelineError: an option is unknown or missing, contradicts another or has an invalid value;
            the text names the option.
    """
    options = {key.lower(): str(value) for key, value in settings.items()}
    _check_names(options, streaming=streaming)
    topics, pattern, assigned = _what_to_read(options)
    start = _start(options, streaming=streaming)
    end = _bound(options, "ending", LATEST)
    client = {
        key.removeprefix(KAFKA_PREFIX): value
        for key, value in options.items()
        if key.startswith(KAFKA_PREFIX)
    }
    if not streaming:
        _check_bounds_of_a_batch(start, end)
    return SourceOptions(
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        start=start,
        end=end,
        latest_when_no_timestamp=_one_of(
            options, "startingOffsetsByTimestampStrategy", ("error", "latest")
        )
        == "latest",
        max_offsets_per_trigger=_number(options, "maxOffsetsPerTrigger", 0, least=1),
        min_offsets_per_trigger=_min_offsets(options),
        max_trigger_delay_ms=_delay_ms(options, "maxTriggerDelay", "15m"),
        batch_pause_ms=_delay_ms(options, "batchPause", "0s"),
        min_partitions=_number(options, "minPartitions", 0, least=1),
        max_records_per_partition=_number(options, "maxRecordsPerPartition", 0, least=1),
        min_records_per_partition=_number(options, "minRecordsPerPartition", 1, least=1),
        max_partitions=_number(options, "maxPartitions", 0, least=1),
        join_partitions=_joined(options, streaming=streaming),
        max_bytes_per_trigger=_number(options, "maxBytesPerTrigger", 0, least=1),
        max_bytes_per_second=_rate(options),
        include_headers=_one_of(options, "includeHeaders", ("false", "true")) == "true",
        fail_on_data_loss=_one_of(options, "failOnDataLoss", ("true", "false")) == "true",
        topic_ids=_topic_ids(options),
        emits_ranges=emits_ranges(options),
        poll_timeout_ms=_number(options, "kafkaConsumer.pollTimeoutMs", 120_000, least=1),
        offset_retries=_number(options, "fetchOffset.numRetries", 3, least=0),
        offset_retry_interval_ms=_number(options, "fetchOffset.retryIntervalMs", 1000, least=0),
        client=client,
        settings=for_reader(client),
    )


def includes_headers(settings: Mapping[str, str]) -> bool:
    """Return the value of `includeHeaders` alone: Spark asks for the columns before the options."""
    options = {key.lower(): str(value) for key, value in settings.items()}
    return _one_of(options, "includeHeaders", ("false", "true")) == "true"


def emits_ranges(settings: Mapping[str, str]) -> bool:
    """Return whether `emit` is `ranges`; see `includes_headers`. Raises PipelineError."""
    options = {key.lower(): str(value) for key, value in settings.items()}
    return _one_of(options, "emit", ("records", "ranges")) == "ranges"


def pushes_filters(settings: Mapping[str, str]) -> bool:
    """Return the value of `pushFilters`; see `includes_headers`. Raises PipelineError."""
    options = {key.lower(): str(value) for key, value in settings.items()}
    return _one_of(options, "pushFilters", ("false", "true")) == "true"


def _check_names(options: Mapping[str, str], *, streaming: bool) -> None:
    for name in options:
        if name in _REFUSED:
            raise PipelineError(f"option {name} cannot be set: {_REFUSED[name]}")
        if name.startswith(KAFKA_PREFIX) or name in _IN_LOWER_CASE:
            continue
        near = difflib.get_close_matches(name, _IN_LOWER_CASE, n=1)
        hint = f"; {_IN_LOWER_CASE[near[0]]} is one" if near else ""
        raise PipelineError(
            f"there is no option {name!r}{hint}; names are those of Spark's Kafka source, and "
            "settings of the client begin with kafka."
        )
    if not options.get("kafka.bootstrap.servers", "").strip():
        raise PipelineError(
            "option kafka.bootstrap.servers is missing: name the brokers, as localhost:9092"
        )
    level = options.get("kafka.isolation.level", "read_uncommitted")
    if level not in ("read_uncommitted", "read_committed"):
        raise PipelineError(
            f"option kafka.isolation.level is {level!r}, expected read_uncommitted or "
            "read_committed"
        )
    if options.get("fetchwith", "").lower() == "librdkafka":
        raise PipelineError("option fetchWith=librdkafka: it does not read any more; leave it out")
    _one_of(options, "fetchWith", ("auto", "wire"))
    if not streaming and emits_ranges(options):
        raise PipelineError("option emit=ranges is for streams: a batch read has records")
    if pushes_filters(options) and streaming:
        raise PipelineError("option pushFilters is for batches: Spark pushes none to a stream")
    for name in ("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"):
        if streaming and name.lower() in options:
            raise PipelineError(f"option {name} is for batches: a stream has no end")


def _what_to_read(
    options: Mapping[str, str],
) -> tuple[tuple[str, ...], str | None, tuple[TopicPartition, ...]]:
    ways = [name for name in ("subscribe", "subscribePattern", "assign") if name.lower() in options]
    if len(ways) != 1:
        ways_text = " and ".join(ways) + " are" if ways else "none is"
        raise PipelineError(
            f"exactly one of the options subscribe, subscribePattern and assign says what is "
            f"read, and {ways_text} given"
        )
    text = options[ways[0].lower()]
    if ways[0] == "assign":
        return (), None, _assigned(text)
    if ways[0] == "subscribePattern":
        _check_pattern(text)
        return (), text, ()
    topics = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    if not topics:
        raise PipelineError(f"option subscribe is {text!r}: name a topic, or several as a,b")
    return topics, None, ()


def _check_pattern(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        raise PipelineError(
            f"option subscribePattern is {text!r}, which is no regular expression: {error}"
        ) from error
    if not text.strip():
        raise PipelineError("option subscribePattern is empty: give a regular expression")


def _assigned(text: str) -> tuple[TopicPartition, ...]:
    refusal = PipelineError(
        f'option assign is {text!r}, expected topics and their partitions as {{"orders": [0, 1]}}'
    )
    try:
        plain = json.loads(text)
    except json.JSONDecodeError as error:
        raise refusal from error
    if not isinstance(plain, dict) or not plain:
        raise refusal
    assigned = set()
    for topic, partitions in plain.items():
        if not isinstance(partitions, list):
            raise refusal
        for partition in partitions:
            if not isinstance(partition, int) or isinstance(partition, bool) or partition < 0:
                raise refusal
            assigned.add(TopicPartition(topic, partition))
    if not assigned:
        raise refusal
    return tuple(sorted(assigned))


def _topic_ids(options: Mapping[str, str]) -> dict[str, str]:
    text = options.get("topicids", "{}")
    try:
        plain = json.loads(text)
    except json.JSONDecodeError:
        plain = None
    if not isinstance(plain, dict):
        raise PipelineError(
            f'option topicIds is {text!r}, expected topics and their ids as {{"orders": "…"}}'
        )
    return {str(topic): str(plain[topic]) for topic in plain}


def _start(options: Mapping[str, str], *, streaming: bool) -> Bound:
    return _bound(options, "starting", LATEST if streaming else EARLIEST)


def _bound(options: Mapping[str, str], side: str, default: int) -> Bound:
    """Return one bound: a timestamp for all wins over one for each partition, that over offsets."""
    if f"{side}timestamp" in options:
        return Bound(timestamp_ms=_number(options, f"{side}Timestamp", 0, least=0))
    name = f"{side}OffsetsByTimestamp"
    if name.lower() in options:
        timestamps = offsets.from_json(options[name.lower()], origin=f"option {name}")
        if any(timestamp < 0 for timestamp in timestamps.values()):
            raise PipelineError(f"option {name} has a negative timestamp; they are milliseconds")
        return Bound(timestamps_ms=timestamps)
    name = f"{side}Offsets"
    text = options.get(name.lower(), "").strip()
    if not text:
        return Bound(everywhere=default)
    if text.lower() in ("earliest", "latest"):
        return Bound(everywhere=EARLIEST if text.lower() == "earliest" else LATEST)
    if not text.startswith("{"):
        raise PipelineError(
            f"option {name} is {text!r}, expected earliest, latest or offsets as "
            '{"orders": {"0": 17, "1": -2}}'
        )
    specific = offsets.from_json(text, origin=f"option {name}")
    for partition, offset in specific.items():
        if offset < EARLIEST:
            raise PipelineError(
                f"option {name} has {offset} for {partition}, expected an offset,"
                " -2 for the earliest or -1 for the latest"
            )
    return Bound(offsets=specific)


def _check_bounds_of_a_batch(start: Bound, end: Bound) -> None:
    """Raise PipelineError for a batch from the latest or to the earliest offset: it is empty."""
    starts = (start.offsets or {}).values()
    if start == Bound(everywhere=LATEST) or LATEST in starts:
        raise PipelineError(
            "option startingOffsets is latest (-1), which a batch cannot start at: there is "
            "nothing behind it; say earliest or offsets"
        )
    ends = (end.offsets or {}).values()
    if end == Bound(everywhere=EARLIEST) or EARLIEST in ends:
        raise PipelineError(
            "option endingOffsets is earliest (-2), which a batch cannot end at: there is "
            "nothing before it; say latest or offsets"
        )


def _min_offsets(options: Mapping[str, str]) -> int:
    least = _number(options, "minOffsetsPerTrigger", 0, least=1)
    most = _number(options, "maxOffsetsPerTrigger", 0, least=1)
    if most and least > most:
        raise PipelineError(
            f"option minOffsetsPerTrigger is {least}, more than maxOffsetsPerTrigger, {most}"
        )
    return least


def _joined(options: Mapping[str, str], *, streaming: bool) -> int:
    """Return `joinPartitions`. Raises PipelineError beside another option for the tasks."""
    least = _number(options, "joinPartitions", 0, least=1)
    if least and streaming:
        raise PipelineError("option joinPartitions is for batches: a stream has maxPartitions")
    for name in TASK_OPTIONS:
        if least and name != "joinPartitions" and name.lower() in options:
            raise PipelineError(
                f"option joinPartitions is {least} and {name} is given: each decides about the "
                "tasks, so give one of them"
            )
    return least


def _rate(options: Mapping[str, str]) -> int:
    """Return `maxBytesPerSecond`. Raises PipelineError."""
    rate = _number(options, "maxBytesPerSecond", 0, least=1)
    if rate and "maxpartitions" not in options:
        raise PipelineError(
            f"option maxBytesPerSecond is {rate} and maxPartitions is not given: the tasks share "
            "the bytes, so say how many run at once"
        )
    return rate


def _number(options: Mapping[str, str], name: str, default: int, *, least: int) -> int:
    text = options.get(name.lower())
    if text is None:
        return default
    if not text.strip().isdecimal() or int(text) < least:
        raise PipelineError(
            f"option {name} is {text!r}, expected a whole number, {least} or larger"
        )
    return int(text)


def _one_of(options: Mapping[str, str], name: str, values: tuple[str, ...]) -> str:
    """Return the value of an option in lower case; the first of `values` is the default."""
    text = options.get(name.lower(), values[0]).strip().lower()
    if text not in values:
        raise PipelineError(f"option {name} is {text!r}, expected {' or '.join(values)}")
    return text


def _delay_ms(options: Mapping[str, str], name: str, default: str) -> int:
    text = options.get(name.lower(), default).strip().lower()
    delay_ms = milliseconds(text, without_unit=True)
    if delay_ms is None:
        raise PipelineError(f"option {name} is {text!r}, expected a time as 90s, 15m or 1h")
    return delay_ms
