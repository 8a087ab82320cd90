"""Topics that clients name and that do not exist yet: they are created after the answer.

A broker that is not the controller only writes a topic; its leaders come from the controller, when
that hears of it. Nobody waits for this. The client hears at once that there is no leader, and
asks again. Kafka does the same: its broker sends CreateTopics to the controller meanwhile.

Source: Kafka AutoTopicCreationManager.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.updates import metric_name
from minibroker.broker.event_loop import cancel_all
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.internal_topics import NewTopic
    from minibroker.broker.cluster.topics import Topics
    from minibroker.kafka.errors import MinibrokerError

PENDING_MAX: Final = 10_000
"""The most topics under way. A client that names one more has to ask again."""
CREATED_AT_ONCE: Final = 50
"""Topics that are written together, under the cluster's lock; then others may have it."""


class AutoCreation:
    """Creates topics in the order of their requests; belongs to the loop's thread."""

    def __init__(self, context: ClusterContext, topics: Topics) -> None:
        self._context = context
        self._topics = topics
        self._pending: dict[str, NewTopic] = {}
        """Topics that are under way; a name that is here is not begun again."""
        self._task: asyncio.Task[None] | None = None

    def begin(self, new_topics: Mapping[str, NewTopic]) -> None:
        """Have these topics created, and return at once. The image has those that are created."""
        for name, topic in new_topics.items():
            if len(self._pending) < PENDING_MAX:
                self._pending.setdefault(name, topic)
        if self._pending and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._create())

    async def close(self) -> None:
        """Create nothing more; a write that is under way may happen or not."""
        self._pending.clear()
        await cancel_all(self._task)

    async def _create(self) -> None:
        while self._pending:
            batch = self._next_batch()
            try:
                errors = await self._topics.create_many(batch)
                for name, error in errors.items():
                    if not _exists(error):
                        self._context.log.warning("topic %s was not created: %s", name, error)
            except Exception as error:  # clients ask for these topics again
                self._context.log.exception("topics were not created: %s", error)
            finally:
                for name in batch:
                    self._pending.pop(name, None)

    def _next_batch(self) -> dict[str, NewTopic]:
        """Return some that can be written together: no two of them have the same metrics' name."""
        batch: dict[str, NewTopic] = {}
        metric_names: set[str] = set()
        for name, topic in self._pending.items():
            if len(batch) == CREATED_AT_ONCE:
                break
            if metric_name(name) not in metric_names:
                metric_names.add(metric_name(name))
                batch[name] = topic
        return batch


def _exists(error: MinibrokerError) -> bool:
    """Return whether the topic exists: another request was faster."""
    return isinstance(error, KafkaError) and error.code == ErrorCode.TOPIC_ALREADY_EXISTS
