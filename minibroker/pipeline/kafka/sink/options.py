"""The options of the sink, as text from Spark, and the settings of its producers.

| option                    | means                                                              |
|---------------------------|--------------------------------------------------------------------|
| `kafka.bootstrap.servers` | where the brokers are                                              |
| `topic`                   | all rows go there; without it each row's column `topic` says where |
| `transactional.id.prefix` | begins the names of groups and transactional ids; minibroker-sink  |
| `tasks`                   | how many tasks the query has, where whoever starts it knows it     |
| `kafka.*`                 | settings of a producer, see `client_settings`                      |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.settings import BOOTSTRAP
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.client_settings import for_writer

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT_PREFIX: Final = "minibroker-sink"
KAFKA: Final = "kafka."

REFUSED: Final = {
    "transactional.id": "its place has transactional.id.prefix",
    "enable.idempotence": "transactions need it",
    "acks": "transactions need acks from all replicas",
    "key.serializer": "keys are bytes",
    "value.serializer": "values are bytes",
    "group.id": "groups are named by transactional.id.prefix",
}
"""Settings that the sink sets itself → the reason."""

RECORD_BYTES_MAX: Final = 100_000_000
"""Bytes of a record where the user sets no `message.max.bytes`: the topic says whether it takes it.

Brokers close a connection with a request of more than 104,857,600 bytes (socket.request.max.bytes).
"""

DEFAULTS: Final[Mapping[str, Any]] = {
    # As long as brokers allow by default. A task that is killed ends its transaction when it
    # runs again; this bounds how long readers wait for one that never does.
    "transaction.timeout.ms": 900_000,
    # The partition of a key is the one that Java's clients choose.
    "partitioner": "murmur2_random",
}


class SinkOptions(NamedTuple):
    """Options of a writer; they travel to the tasks."""

    settings: Mapping[str, Any]
    """Settings of the producer, with Java's names, without its transactional id."""
    topic: str | None
    prefix: str
    tasks: int

    @property
    def brokers(self) -> str:
        """Return HOST:PORT,… of the brokers."""
        return str(self.settings[BOOTSTRAP])


def parse_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse options as Spark passes them: names are in lower case.

    Raises:
        PipelineError: an option is missing, refused or not a number.
    """
    by_name = {str(key).lower(): str(value) for key, value in options.items()}
    settings = {key.removeprefix(KAFKA): by_name[key] for key in by_name if key.startswith(KAFKA)}
    if not settings.get(BOOTSTRAP):
        raise PipelineError(
            'the sink needs the option "kafka.bootstrap.servers", for example localhost:9092'
        )
    for key, why in REFUSED.items():
        if key in settings:
            raise PipelineError(f'the sink does not take the option "kafka.{key}": {why}')
    settings = for_writer(settings)
    if "acks" in settings:
        raise PipelineError(
            f'the sink does not take the option "kafka.request.required.acks": {REFUSED["acks"]}'
        )
    tasks = by_name.get("tasks", "0")
    if not tasks.isdecimal():
        raise PipelineError(f'the option "tasks" is {tasks!r} and has to be a number, as 4')
    prefix = by_name.get("transactional.id.prefix") or DEFAULT_PREFIX
    return SinkOptions({**DEFAULTS, **settings}, by_name.get("topic") or None, prefix, int(tasks))
