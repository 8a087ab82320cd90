"""The markers of tasks that others ask for: the driver, and a task of another number of tasks.

    settings ─► client ─► offsets of a task's group ─► its newest marker

A task asks for its own marker in its transaction.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.groups import committed_offsets, stable_offsets
from minibroker.kafka.ids import TopicPartition
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.sink.producer_settings import producer_settings
from minibroker.pipeline.kafka.sink.transaction import (
    ANSWER_TIMEOUT_S,
    CARRIER_PARTITION,
    newest_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from minibroker.pipeline.kafka.sink.marker import Marker
    from minibroker.pipeline.kafka.sink.options import SinkOptions


def read_marker(options: SinkOptions, group: str, topic: str) -> Marker | None:
    """Return the newest marker of a task's group; wait for one that is committed and still pending.

    Args:
        options: of the sink.
        group: `Position.name_of` the task.
        topic: the topic of the first marker: a group without offsets does not show a pending one by
            itself.

    Raises:
        PipelineError: no broker answers, or the group may not be read.
    """
    settings = producer_settings(options.settings).connection
    carrier = TopicPartition(topic, CARRIER_PARTITION)
    with _errors_of_client(options, group):
        return newest_of(
            stable_offsets(CoordinatorClient(Client(settings), group), carrier, _deadline())
        )


def last_markers(options: SinkOptions, groups: Iterable[str]) -> Iterator[Marker | None]:
    """Yield the newest marker of each group.

    Those of transactions that are open are not waited for. Such a task is killed and has not
    written, and its next attempt ends its transaction.

    Raises PipelineError if a group is not readable.
    """
    client = Client(producer_settings(options.settings).connection)
    for group in groups:
        with _errors_of_client(options, group):
            yield newest_of(committed_offsets(CoordinatorClient(client, group), _deadline()))


@contextmanager
def _errors_of_client(options: SinkOptions, group: str) -> Iterator[None]:
    """Raise PipelineError for the errors of the client."""
    try:
        yield
    except CLIENT_ERRORS as error:
        raise PipelineError(
            f"the committed offset of group {group} is not readable at {options.brokers}: {error}"
        ) from error


def _deadline() -> float:
    return time.monotonic() + ANSWER_TIMEOUT_S
