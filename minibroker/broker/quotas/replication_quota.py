"""The throttle of replication: how many bytes a second followers of some partitions may get.

A broker has two: what it sends as a leader, and what it fetches as a follower. The rates come from
the broker's dynamic configuration, the partitions from the topics'. A limit holds nothing back that
is in sync (its users see to that), so acks=all goes on while a new replica is filled slowly.

Source: KIP-73; Kafka ReplicationQuotaManager, TopicConfigHandler, SimpleRate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.quotas.rate import Rate

if TYPE_CHECKING:
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.dynamic import DynamicConfig
    from minibroker.clock import Clock

ALL: Final = "*"


class ReplicationQuota:
    """One direction. Owned by the loop."""

    __slots__ = ("_clock", "_count", "_partitions", "_rate", "_window_ms", "bytes_per_s_max")

    def __init__(self, clock: Clock, *, window_count: int, window_ms: int) -> None:
        """Take `replication.quota.window.num` and the length of a window."""
        # Constant after construction.
        self._clock = clock
        self._count = window_count
        self._window_ms = window_ms
        self._rate = Rate()
        self._partitions: dict[str, frozenset[int] | None] = {}
        """Topic → its throttled partitions, None for all."""
        self.bytes_per_s_max: float = 2**63 - 1

    @property
    def is_active(self) -> bool:
        """Return whether any partition is throttled."""
        return bool(self._partitions)

    def mark(self, topic: str, replicas: str, broker_id: int) -> None:
        """Throttle the partitions of a topic that `replicas` names for this broker.

        `replicas`: `*`, or `partition:broker,…`; anything before is replaced, and "" ends it.
        """
        text = replicas.strip()
        if not text:
            self._partitions.pop(topic, None)
        elif text == ALL:
            self._partitions[topic] = None
        else:
            pairs = [pair.strip().partition(":") for pair in text.split(",")]
            self._partitions[topic] = frozenset(
                int(partition) for partition, _, broker in pairs if broker == str(broker_id)
            )

    def is_throttled(self, topic: str, partition: int) -> bool:
        """Return whether this partition is among the throttled ones."""
        if topic not in self._partitions:
            return False
        partitions = self._partitions[topic]
        return partitions is None or partition in partitions

    def record(self, size_bytes: int) -> None:
        """Count bytes of throttled partitions, also over the limit."""
        self._rate.record(size_bytes, self._clock.now_ms(), self._window_ms, self._count)

    @property
    def is_exceeded(self) -> bool:
        """Return whether more than the limit was counted in the last windows."""
        rate = self._rate.measure_simply(self._clock.now_ms(), self._window_ms, self._count)
        return rate > self.bytes_per_s_max


class ReplicationQuotas:
    """Both throttles of a broker. Follows the dynamic configuration (`ConfigListener`)."""

    __slots__ = ("_broker_id", "_dynamic", "follower", "leader")

    def __init__(self, config: BrokerConfig, dynamic: DynamicConfig, clock: Clock) -> None:
        # Constant after construction.
        self._broker_id = config.broker_id
        self._dynamic = dynamic
        count = config.integer("replication.quota.window.num")
        window_ms = config.integer("replication.quota.window.size.seconds") * 1000
        self.leader = ReplicationQuota(clock, window_count=count, window_ms=window_ms)
        """For the bytes that this broker sends to followers."""
        self.follower = ReplicationQuota(clock, window_count=count, window_ms=window_ms)
        """For the bytes that it fetches as a follower."""

    def on_broker_config(self, config: BrokerConfig, changed: frozenset[str]) -> None:
        """Take the rates: `leader.` and `follower.replication.throttled.rate`."""
        self.leader.bytes_per_s_max = config.integer("leader.replication.throttled.rate")
        self.follower.bytes_per_s_max = config.integer("follower.replication.throttled.rate")

    def on_topic_config(self, topic: str | None) -> None:
        """Take the throttled replicas of a topic; what the broker sets for all has none."""
        if topic is None:
            return
        own = self._dynamic.topic_overrides(topic)
        for quota, key in (
            (self.leader, "leader.replication.throttled.replicas"),
            (self.follower, "follower.replication.throttled.replicas"),
        ):
            quota.mark(topic, own.get(key, ""), self._broker_id)
