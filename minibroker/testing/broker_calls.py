"""`BrokerCalls`: what a test asks of one broker, and does to it.

A `Broker` has these calls, and each broker of a `Cluster`. They are synchronous. Every call runs on
the broker's loop and returns the result. A call that waits for clients has an async form for a test
that runs in a loop of its own; in such a loop the sync form raises.
"""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, overload

from minibroker.broker.config.topic_option import parse_topic
from minibroker.kafka.errors import KafkaError
from minibroker.rig.faults import refuse_in_loop
from minibroker.testing.consumer_waits import ConsumerWaits
from minibroker.testing.loop_thread import WAIT_TIMEOUT_S, is_for_test
from minibroker.testing.report import group_lines, record_lines, request_lines
from minibroker.testing.request_calls import RequestCalls
from minibroker.testing.values import setting_text, to_bytes, to_headers, to_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence
    from datetime import datetime

    from minibroker.broker.app import Broker as AppBroker
    from minibroker.rig.group_views import GroupMember
    from minibroker.rig.inspector import Inspector
    from minibroker.rig.node import Node
    from minibroker.rig.request_log import RequestLog
    from minibroker.rig.topic_records import TopicRecord
    from minibroker.testing.broker_faults import Faults
    from minibroker.testing.report import GroupRow
    from minibroker.testing.values import Headers, Value

    Isolation = Literal["read_uncommitted", "read_committed"]

__tracebackhide__ = is_for_test


class BrokerCalls(ConsumerWaits, RequestCalls):
    """One broker, for the thread of the test."""

    faults: Faults
    """Faults to inject: `broker.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")`."""

    @property
    @abstractmethod
    def _running(self) -> Node:
        """Return the broker's node. Raises RuntimeError if it is not started."""

    @abstractmethod
    def _app_brokers(self) -> Sequence[AppBroker]:
        """Return the brokers of the cluster that run, for their loop. Raises RuntimeError."""

    def _until_known(self, topic: str) -> None:
        """Wait until the other brokers of a cluster know a new topic."""

    def await_node(self, call: Callable[[Node], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine of the broker's node on its loop and return its result."""
        return self._await(call(self._running))

    @property
    def _request_log(self) -> RequestLog:
        return self._running.request_log

    @property
    def _look(self) -> Inspector:
        """Return the running broker's inspector. Raises RuntimeError if the broker does not run."""
        if not self._running.is_running:
            raise RuntimeError("this broker was killed: remove the fault that killed it first")
        return self._running.inspector

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT` for a client's bootstrap.servers."""
        host, port = self._running.address
        return f"{host}:{port}"

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        """Make a topic; clients can use it when this returns, at every broker of a cluster that
        runs. Raises KafkaError, ConfigError, TimeoutError.
        """
        settings = {key: setting_text(value) for key, value in (config or {}).items()}
        self._await(self._look.create_topic(name, partitions, settings))
        self._until_known(name)

    def add_topic(self, topic: str) -> None:
        """Make a topic in the notation of the command line: `"orders:3:cleanup.policy=compact"`.

        Raises the errors of `create_topic`.
        """
        new = parse_topic(topic)
        self._await(self._look.add_topic(new))
        self._until_known(new.name)

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records. Raises KafkaError."""
        self._await(self._look.delete_topic(name))

    @property
    def topics(self) -> dict[str, int]:
        """Return name → number of partitions; Kafka's internal topics are left out."""
        topics: dict[str, int] = self.call(self._look.topics)
        return topics

    @overload
    def produce(
        self,
        topic: str,
        value: Value,
        *,
        key: str | bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | datetime | None = None,
    ) -> TopicRecord: ...

    @overload
    def produce(
        self,
        topic: str,
        value: list[Value],
        *,
        key: str | bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | datetime | None = None,
    ) -> list[TopicRecord]: ...

    def produce(
        self,
        topic: str,
        value: Value | list[Value],
        *,
        key: str | bytes | None = None,
        headers: Headers = (),
        partition: int | None = None,
        timestamp: int | datetime | None = None,
    ) -> TopicRecord | list[TopicRecord]:
        """Write a record without a client; return it as a consumer would get it.

        Args:
            topic: the topic; it is made if the broker makes topics by itself.
            value: str (UTF-8), bytes, a dict (written as JSON) or None (a tombstone); a list writes
                as many records, with the same key and headers, and returns a list.
            key: str or bytes.
            headers: a dict, or pairs of name and value where names repeat.
            partition: None: the partition that Java's producer chooses for the key, without a key
                the first one.
            timestamp: a datetime or ms since the epoch, None: now.

        Raises KafkaError; TypeError for a value of another type.
        """
        values = value if isinstance(value, list) else [value]
        answers: list[TopicRecord] = self._await(
            self._look.produce(
                topic,
                key=to_bytes(key),
                values=[to_bytes(item) for item in values],
                headers=to_headers(headers),
                index=partition,
                timestamp=to_timestamp(timestamp),
            )
        )
        return answers if isinstance(value, list) else answers[0]

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_uncommitted",
    ) -> list[TopicRecord]:
        """Return the decoded records of a topic, or of one of its partitions; ordered by partition.

        A broker of a cluster returns what its replica shows, which may be one fetch behind the
        leader's, also when it has just become the leader: `wait_for` waits. Raises
        KafkaError(UNKNOWN_TOPIC_OR_PARTITION).
        """
        records: list[TopicRecord] = self.call(
            lambda: self._look.records(topic, partition, isolation)
        )
        return records

    def wait_for(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait until a topic has `count` records or more; return all of them.

        The topic need not exist yet. Raises TimeoutError; RuntimeError in a running event loop,
        which needs `wait_for_async`.
        """
        refuse_in_loop("wait_for")
        records: list[TopicRecord] = self._await(
            self._record_wait(topic, count, timeout_s), timeout_s
        )
        return records

    async def wait_for_async(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait like `wait_for`, for a test that runs in a loop."""
        records: list[TopicRecord] = await self._awaited(self._record_wait(topic, count, timeout_s))
        return records

    def _record_wait(
        self, topic: str, count: int, timeout_s: float
    ) -> Coroutine[Any, Any, list[TopicRecord]]:
        """Return a wait for records, which goes on where the broker is killed and started again."""
        node = self._running

        def latest() -> Inspector | None:
            return node.inspector if node.is_running else None

        return self._look.wait_for(topic, count, timeout_s, latest)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → committed offset of a group; empty for an unknown group.

        Of the brokers of a cluster the coordinator alone knows a group, here and in the calls
        below; the others raise KafkaError(NOT_COORDINATOR).
        """
        offsets: dict[tuple[str, int], int] = self.call(lambda: self._look.committed(group))
        return offsets

    def lag(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → records that a group has not committed yet.

        It has only partitions with a committed offset. Raises KafkaError for a group that is not
        there.
        """
        lags: dict[tuple[str, int], int] = self.call(
            lambda: self._look.lag(group, self._app_brokers())
        )
        return lags

    def members(self, group: str) -> list[GroupMember]:
        """Return the members of a group, each with its partitions; empty for an unknown group."""
        members: list[GroupMember] = self.call(lambda: self._look.members(group))
        return members

    @property
    def groups(self) -> dict[str, str]:
        """Return group id → state by Kafka's name (`Stable`, `Empty`).

        A broker of a cluster returns the groups that it coordinates.
        """
        groups: dict[str, str] = self.call(self._look.groups)
        return groups

    def report(self, requests: int = 20, records: int = 5) -> str:
        """Return the last requests, the groups and the topics' last records as tables.

        `records`: most records of each partition. For the report of a test that failed.
        """
        lines = request_lines(self.requests[-requests:])
        if not self._running.is_running:
            return "\n".join([*lines, "", "this broker was killed by a fault"])
        look = self._look
        groups = {group: self._group_row(group, state) for group, state in self.groups.items()}
        last: list[TopicRecord] = self.call(
            lambda: [record for topic in look.topics() for record in look.last(topic, records)]
        )
        for part in (group_lines(groups), record_lines(last)):
            if part:
                lines += ["", *part]
        return "\n".join(lines)

    def _group_row(self, group: str, state: str) -> GroupRow:
        """Return a group as the report shows it, without what is not known at this moment."""
        members: list[GroupMember] = []
        lags: dict[tuple[str, int], int] = {}
        with suppress(KafkaError):
            members = self.members(group)
            lags = self.lag(group)
        return state, members, lags
