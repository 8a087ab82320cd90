"""confluent-kafka's clients of the source: the user's settings and our own.

    SourceOptions.settings ──► AdminClient (the driver's questions), Consumer (a task's range)

`client_settings` has made them of the options `kafka.*`. A setting that librdkafka does not know is
refused, never dropped.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import with_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import KafkaError

    from minibroker.pipeline.kafka.options import SourceOptions
    from minibroker.pipeline.offsets import OffsetRange

# The queue between librdkafka's thread and the task: enough to keep both busy, bounded in bytes.
QUEUED_MESSAGES_MAX: Final = 100_000
QUEUED_KILOBYTES: Final = 32_768
QUEUE_RETRY_MS: Final = 5
"""Time between librdkafka's looks at a full queue, during which it fetches nothing.

The default of 1000 ms is ten times as long as a task needs to empty the queue.
"""
FETCH_WAIT_MS: Final = 20
"""Longest wait of a fetch at the end of a partition, where the task waits for the answer."""

_TASK_SETTINGS: Final = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "allow.auto.create.topics": "false",
}
_TASK_DEFAULTS: Final = {
    "queued.max.messages.kbytes": str(QUEUED_KILOBYTES),
    "fetch.queue.backoff.ms": str(QUEUE_RETRY_MS),
    "fetch.wait.max.ms": str(FETCH_WAIT_MS),
    "fetch.error.backoff.ms": "100",
    "reconnect.backoff.max.ms": "1000",
}


_SAMPLE_SETTINGS: Final = {
    "max.partition.fetch.bytes": str(64 << 10),
    "queued.min.messages": "1",
    "queued.max.messages.kbytes": "1024",
}


def admin_client(options: SourceOptions, on_error: Callable[[KafkaError], None]) -> AdminClient:
    """Return the driver's client: for topics, partitions and offsets, never data.

    Raises PipelineError.
    """
    settings = with_token(options.settings)
    settings["error_cb"] = on_error
    try:
        return AdminClient(settings)
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error) from error


def range_consumer(
    options: SourceOptions, span: OffsetRange, on_error: Callable[[KafkaError], None]
) -> Consumer:
    """Return a consumer that reads one partition from `span.start`, without joining a group.

    The consumer reports the end of the partition (`_PARTITION_EOF`). If its offset is out of range,
    it reports that too and does not move elsewhere. Raises PipelineError.
    """
    settings = _TASK_DEFAULTS | with_token(options.settings) | _TASK_SETTINGS
    settings.setdefault("group.id", f"{options.group_id_prefix}-{uuid.uuid4()}")
    settings.setdefault("isolation.level", "read_uncommitted")  # librdkafka's is read_committed
    settings.setdefault("queued.min.messages", str(min(max(span.size, 1), QUEUED_MESSAGES_MAX)))
    settings["error_cb"] = on_error
    try:
        consumer = Consumer(settings)
        consumer.assign([TopicPartition(span.topic, span.partition, span.start)])
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error) from error
    return consumer


def sampling_consumer(options: SourceOptions, on_error: Callable[[KafkaError], None]) -> Consumer:
    """Return a consumer for a few records of some partitions: it fetches little ahead.

    Raises PipelineError.
    """
    settings = _TASK_DEFAULTS | with_token(options.settings) | _TASK_SETTINGS | _SAMPLE_SETTINGS
    settings.setdefault("group.id", f"{options.group_id_prefix}-{uuid.uuid4()}")
    settings.setdefault("isolation.level", "read_uncommitted")
    settings["error_cb"] = on_error
    try:
        return Consumer(settings)
    except (KafkaException, ValueError, TypeError) as error:
        raise _refused(error) from error


def _refused(error: Exception) -> PipelineError:
    said = error.args[0].str() if isinstance(error, KafkaException) else str(error)
    return PipelineError(
        f"an option that begins with kafka. is refused by librdkafka, the client of the source "
        f"minibroker: {said}"
    )
