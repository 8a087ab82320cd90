"""The markers of tasks that others ask for: the driver, and a task of another number of tasks.

    settings ─► own client ─► offsets of a task's group ─► its newest marker
        └─ a login or setting that is librdkafka's alone ─► sink.transaction

A task's own marker is asked for in its transaction (`wire_transaction`, `transaction`).
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.groups import committed, settled
from minibroker.client.settings import UnservedError
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink import transaction
from minibroker.pipeline.kafka.sink.transaction import ANSWER_TIMEOUT_S, CARRIER_PARTITION
from minibroker.pipeline.kafka.sink.wire_settings import producer_settings
from minibroker.pipeline.kafka.sink.wire_transaction import newest_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.pipeline.kafka.sink.marker import Marker
    from minibroker.pipeline.kafka.sink.options import SinkOptions


def read_marker(options: SinkOptions, group: str, topic: str) -> Marker | None:
    """Return the newest marker of a task's group; wait for one that is committed and still pending.

    Arguments and errors as of `transaction.read_marker`.
    """
    try:
        settings = producer_settings(options.settings).connection
    except UnservedError:
        return transaction.read_marker(options, group, topic)
    carrier = TopicPartition(topic, CARRIER_PARTITION)
    with _told(options, group):
        return newest_of(settled(CoordinatorClient(Client(settings), group), carrier, _deadline()))


def last_markers(options: SinkOptions, groups: Iterable[str]) -> Iterator[Marker | None]:
    """Yield the newest marker of each group.

    Those of transactions that are open are not waited for. Such a task is killed and has not
    written, and its next attempt ends its transaction.

    Raises PipelineError if a group is not readable.
    """
    try:
        settings = producer_settings(options.settings).connection
    except UnservedError:
        yield from transaction.last_markers(options, groups)
        return
    client = Client(settings)
    for group in groups:
        with _told(options, group):
            yield newest_of(committed(CoordinatorClient(client, group), _deadline()))


@contextmanager
def _told(options: SinkOptions, group: str) -> Iterator[None]:
    """Raise PipelineError for the errors of the client."""
    try:
        yield
    except CLIENT_ERRORS as error:
        raise PipelineError(
            f"the committed offset of group {group} is not readable at {options.brokers}: {error}"
        ) from error


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S
