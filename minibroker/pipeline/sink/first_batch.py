"""The first batch of a run, which the driver checks before any task writes.

Tasks find out by themselves that a checkpoint is older than the topic (`marker.is_written`), but
each one only from its own marker. If an older copy of a checkpoint was put back, the next batch has
other ranges than the one that was written under its number. A task without a marker of that batch
would write before another one refuses, or no task would have one. So the driver looks at the
markers of all tasks that the query ever had. Later batches of a run need no look: they follow.

    number and ends of the batch ─► markers of tasks 0 … 15, 16 … 31, … ─► refused, or written
"""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from typing import TYPE_CHECKING, Final

from minibroker.errors import ConfigError, KafkaError, ProtocolError
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.sink import transaction
from minibroker.pipeline.sink.marker import Position, check_not_older
from minibroker.pipeline.sink.options import parse_options
from minibroker.pipeline.sink.wire_settings import producer_settings
from minibroker.pipeline.sink.wire_transaction import newest_of
from minibroker.pipeline.wire.client import WireClient
from minibroker.pipeline.wire.coordinators import CoordinatorClient
from minibroker.pipeline.wire.groups import committed
from minibroker.pipeline.wire.settings import UnservedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.pipeline.offsets import OffsetRange
    from minibroker.pipeline.sink.marker import Marker
    from minibroker.pipeline.sink.options import SinkOptions

TASKS_AT_ONCE: Final = 16
"""Markers of a look. If none of these tasks has one, no later task has."""


class FirstBatchCheck:
    """The check of one run; used by the driver alone."""

    def __init__(self, options: Mapping[str, str], query: str) -> None:
        """Args:
        options: of the sink, as Spark passes them.
        query: name of the job, the same after a restart: the markers are under it.
        """
        self._options = parse_options(options)
        self._query = query
        self._is_checked = False

    def check(self, batch: int, ends: str) -> None:
        """Raise PipelineError if the topic has this batch with another end, or a later one.

        Args:
            batch: number of the batch that is about to be written.
            ends: of `digest_of_ends`.
        """
        if self._is_checked:
            return
        position = Position(self._options.prefix, self._query, "", batch, 0, 0, ends)
        for first in itertools.count(0, TASKS_AT_ONCE):
            tasks = range(first, first + TASKS_AT_ONCE)
            markers = _last_markers(self._options, map(position.name_of, tasks))
            found = [marker for marker in markers if marker is not None]
            for marker in found:
                check_not_older(marker, position)
            if not found:
                break
        self._is_checked = True


def digest_of_ends(ranges: Iterable[OffsetRange]) -> str:
    """Return a digest of the offsets where these ranges end, whatever their order.

    A repeated batch has the same ends. It may begin later if the source has lost records.
    """
    ends = sorted((span.topic, span.partition, span.end) for span in ranges)
    return hashlib.sha256(json.dumps(ends).encode()).hexdigest()[:16]


def _last_markers(options: SinkOptions, groups: Iterable[str]) -> Iterator[Marker | None]:
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
    client = WireClient(settings)
    for group in groups:
        deadline = time.monotonic() + transaction.ANSWER_TIMEOUT_S
        try:
            yield newest_of(committed(CoordinatorClient(client, group), deadline))
        except (KafkaError, OSError, ProtocolError, ConfigError) as error:
            raise PipelineError(
                f"the committed offset of group {group} is not readable at {options.brokers}: "
                f"{error}"
            ) from error
