"""Replicas in log directories that failed, as far as this broker knows. Part of `updates`.

A broker tells of its failed directory, and so does a controller. A replica counts as failed until
its broker is started again, or is gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from minibroker.kafka.ids import TopicPartition


class FailedReplicas:
    """Topic → partition → brokers whose log directory with it failed since they were started.

    Changed under the cluster's lock.
    """

    __slots__ = ("_by_topic",)

    def __init__(self) -> None:
        self._by_topic: dict[str, dict[int, set[int]]] = {}

    def of(self, topic: str, index: int) -> Collection[int]:
        """Return the brokers whose replica of this partition failed."""
        return self._by_topic.get(topic, {}).get(index, ())

    def has_broker(self, broker_id: int) -> bool:
        """Return whether a replica of this broker failed."""
        return any(
            broker_id in failed
            for of_topic in self._by_topic.values()
            for failed in of_topic.values()
        )

    def add(self, broker_id: int, partitions: Iterable[TopicPartition]) -> None:
        """Note that the replicas of this broker failed."""
        for name in partitions:
            of_topic = self._by_topic.setdefault(name.topic, {})
            of_topic.setdefault(name.partition, set()).add(broker_id)

    def replace(self, topic: str, index: int, failed: set[int]) -> None:
        """Note that the replicas of these brokers failed, and no others of this partition."""
        if failed:
            self._by_topic.setdefault(topic, {})[index] = failed
        else:
            self._by_topic.get(topic, {}).pop(index, None)

    def forget_brokers(self, broker_ids: Collection[int]) -> list[str]:
        """Take all replicas of these brokers for good; return the topics with failed replicas."""
        if not broker_ids:
            return []
        for of_topic in self._by_topic.values():
            for failed in of_topic.values():
                failed.difference_update(broker_ids)
        return list(self._by_topic)

    def forget_topic(self, name: str) -> None:
        """Forget the replicas of a topic that is gone."""
        self._by_topic.pop(name, None)
