"""`Broker`: a whole minibroker in the test's process, in a thread with a loop of its own.

Its calls are synchronous, so that any test can use it; `async with` works too. Every call runs on
the broker's loop and returns the result. A call that waits for clients has an async form for a test
that runs in a loop of its own; in such a loop the sync form raises. Several brokers run side by
side; each has a port and a directory of its own. `stop` removes everything.

    the test's thread ──call──► the broker's loop (app.Broker) ◄──TCP── the client under test
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self, overload

from minibroker.config.broker import BrokerConfig
from minibroker.config.options import parse_topic
from minibroker.testing.clock import MovableClock, TestClock
from minibroker.testing.faults import Fault, api_named, error_named, refuse_in_loop
from minibroker.testing.loop_thread import LoopThread
from minibroker.testing.node import Node
from minibroker.testing.report import group_lines, record_lines, request_lines
from minibroker.testing.values import to_bytes, to_headers, to_timestamp

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
    from datetime import datetime

    from minibroker.error_codes import ErrorCode
    from minibroker.testing.group_views import GroupMember
    from minibroker.testing.inspector import Inspector
    from minibroker.testing.names import ApiName, ErrorName
    from minibroker.testing.request_log import SeenRequest
    from minibroker.testing.topic_records import TopicRecord
    from minibroker.testing.values import Headers, Value

    BrokerFault = Literal["disk_full", "slow_sync", "paused", "killed", "zookeeper_session_lost"]
    Isolation = Literal["read_uncommitted", "read_committed"]

START_TIMEOUT_S: Final = 30.0
WAIT_TIMEOUT_S: Final = 10.0

TEST_DEFAULTS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # As many as Kafka's 50 would do nothing for a test but take time when they are made.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
MEMORY: Final = Path("/dev/shm")


class Broker:
    """One broker between `start` and `stop`, or in a `with` block.

    Args:
        topics: topics to make at every start and reset: `"orders"`, `"orders:3"`,
            `"orders:3:cleanup.policy=compact"`, as on the command line.
        config: Kafka's settings for the broker.
        data_dir: directory of its data; None: in memory, until the broker stops.
    """

    def __init__(
        self,
        *,
        topics: Iterable[str] = (),
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        self._topics = tuple(parse_topic(topic) for topic in topics)
        self._settings = {name: setting_text(value) for name, value in (config or {}).items()}
        self._data_dir = None if data_dir is None else str(data_dir)
        self._own_dir: str | None = None
        self._node: Node
        self._thread = LoopThread(self._serving, on_end=self._remove_data)
        self._clock = MovableClock()
        self.clock = TestClock(self._clock, self.call)
        """The broker's time: `broker.clock.advance(minutes=10)`."""
        self.faults = Faults(self)
        """Faults to inject: `broker.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")`."""

    # Life.

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.wrap_future(self._thread.begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        ended = self._thread.end()
        if ended is not None:
            await asyncio.wrap_future(ended)
            self._thread.join()

    def start(self) -> None:
        """Start the broker; its address is known when this returns. Raises MinibrokerError."""
        self._thread.begin().result(START_TIMEOUT_S)

    def stop(self) -> None:
        """Stop the broker and remove its data in memory; do nothing if it is stopped."""
        ended = self._thread.end()
        if ended is not None:
            ended.result(START_TIMEOUT_S)
            self._thread.join()

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        self._node = Node(BrokerConfig(self._all_settings()), self._topics, clock=self._clock)
        await self._node.start()
        yield
        await self._node.stop()

    def _remove_data(self) -> None:
        if self._own_dir is not None:
            shutil.rmtree(self._own_dir, ignore_errors=True)
            self._own_dir = None

    def _all_settings(self) -> dict[str, str]:
        directory = self._data_dir
        if directory is None and "log.dirs" not in self._settings:
            memory = MEMORY if MEMORY.is_dir() else None
            directory = self._own_dir = tempfile.mkdtemp(prefix="minibroker-", dir=memory)
        named = {} if directory is None else {"log.dirs": directory}
        return {**TEST_DEFAULTS, **named, **self._settings}

    # Calls onto the loop.

    @property
    def _look(self) -> Inspector:
        """Return the running broker's inspector. Raises RuntimeError if the broker does not run."""
        if not self._running.is_running:
            raise RuntimeError("this broker was killed: remove the fault that killed it first")
        return self._running.inspector

    @property
    def _running(self) -> Node:
        if not self._thread.is_running:
            raise RuntimeError("this broker is not running: use it in a with block, or start it")
        return self._node

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the broker's loop and return its result."""
        _ = self._running

        async def call() -> Any:
            return function()

        return self._await(call())

    async def _awaited(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine on the broker's loop, and await it in the caller's loop."""
        return await asyncio.wrap_future(self._thread.submit(coroutine))

    def _await(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = WAIT_TIMEOUT_S) -> Any:
        return self._thread.submit(coroutine).result(timeout_s + 5)

    def await_node(self, call: Callable[[Node], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine of the broker's node on its loop and return its result."""
        return self._await(call(self._running))

    # What a test wants to know and do.

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
        """Make a topic; clients can use it when this returns. Raises KafkaError."""
        named = {key: setting_text(value) for key, value in (config or {}).items()}
        self._await(self._look.create_topic(name, partitions, named))

    def add_topic(self, topic: str) -> None:
        """Make a topic in the notation of the command line: `"orders:3:cleanup.policy=compact"`.

        Raises KafkaError, ConfigError.
        """
        self._await(self._look.add_topic(parse_topic(topic)))

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records. Raises KafkaError."""
        self._await(self._look.delete_topic(name))

    @property
    def topics(self) -> dict[str, int]:
        """Return name → number of partitions; Kafka's internal topics are left out."""
        found: dict[str, int] = self.call(self._look.topics)
        return found

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
        written: list[TopicRecord] = self._await(
            self._look.produce(
                topic,
                key=to_bytes(key),
                values=[to_bytes(item) for item in values],
                headers=to_headers(headers),
                index=partition,
                timestamp=to_timestamp(timestamp),
            )
        )
        return written if isinstance(value, list) else written[0]

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        isolation: Isolation = "read_uncommitted",
    ) -> list[TopicRecord]:
        """Return the decoded records of a topic, or of one of its partitions; ordered by partition.

        Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION).
        """
        found: list[TopicRecord] = self.call(
            lambda: self._look.records(topic, partition, isolation)
        )
        return found

    def wait_for(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait until a topic has `count` records or more; return all of them.

        The topic need not exist yet. Raises TimeoutError; RuntimeError in a running event loop,
        which needs `wait_for_async`.
        """
        refuse_in_loop("wait_for")
        found: list[TopicRecord] = self._await(
            self._look.wait_for(topic, count, timeout_s), timeout_s
        )
        return found

    async def wait_for_async(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait like `wait_for`, for a test that runs in a loop."""
        found: list[TopicRecord] = await self._awaited(self._look.wait_for(topic, count, timeout_s))
        return found

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → committed offset of a group; empty for an unknown group."""
        found: dict[tuple[str, int], int] = self.call(lambda: self._look.committed(group))
        return found

    def lag(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → records that a group has not committed yet.

        It has only partitions with a committed offset.
        """
        found: dict[tuple[str, int], int] = self.call(lambda: self._look.lag(group))
        return found

    def members(self, group: str) -> list[GroupMember]:
        """Return the members of a group, each with its partitions; empty for an unknown group."""
        found: list[GroupMember] = self.call(lambda: self._look.members(group))
        return found

    @property
    def groups(self) -> dict[str, str]:
        """Return group id → state by Kafka's name (`Stable`, `Empty`)."""
        found: dict[str, str] = self.call(self._look.groups)
        return found

    @property
    def requests(self) -> list[SeenRequest]:
        """Return the last 10,000 requests since the start or reset, oldest first."""
        found: list[SeenRequest] = self.call(lambda: list(self._node.seen))
        return found

    def wait_for_requests(
        self,
        api: ApiName,
        count: int = 1,
        *,
        error: ErrorName | ErrorCode | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[SeenRequest]:
        """Wait until clients have been answered `count` requests of a kind; return all of those.

        `error`: only those answered with it. Raises ValueError for a name that Kafka does not have;
        TimeoutError, which says how many came; RuntimeError in a running event loop, which needs
        `wait_for_requests_async`.
        """
        refuse_in_loop("wait_for_requests")
        is_wanted = _request_filter(api, error, client_id)
        found: list[SeenRequest] = self._await(
            self._running.seen.wait_for(is_wanted, count, timeout_s), timeout_s
        )
        return found

    async def wait_for_requests_async(
        self,
        api: ApiName,
        count: int = 1,
        *,
        error: ErrorName | ErrorCode | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[SeenRequest]:
        """Wait like `wait_for_requests`, for a test that runs in a loop."""
        is_wanted = _request_filter(api, error, client_id)
        found: list[SeenRequest] = await self._awaited(
            self._running.seen.wait_for(is_wanted, count, timeout_s)
        )
        return found

    def reset(self) -> None:
        """Make the broker as it was after the start; clients may stay connected.

        It removes records, groups, offsets, transactions, quotas, faults and changed settings. The
        topics of the start exist and are empty; the clock shows the machine's time.
        """
        self._await(self._running.reset())
        self.faults.forget()

    def report(self, requests: int = 20, records: int = 5) -> str:
        """Return the last requests, the groups and the topics' last records as tables.

        `records`: most records of each partition. For the report of a test that failed.
        """
        lines = request_lines(self.requests[-requests:])
        if not self._running.is_running:
            return "\n".join([*lines, "", "this broker was killed by a fault"])
        look = self._look
        groups = {
            group: (state, self.members(group), self.lag(group))
            for group, state in self.groups.items()
        }
        last: list[TopicRecord] = self.call(
            lambda: [record for topic in look.topics() for record in look.last(topic, records)]
        )
        for part in (group_lines(groups), record_lines(last)):
            if part:
                lines += ["", *part]
        return "\n".join(lines)


def _request_filter(
    api: str, error: str | ErrorCode | None, client_id: str | None
) -> Callable[[SeenRequest], bool]:
    """Return a function that tells whether a request is wanted.

    Raises ValueError for a wrong name.
    """
    name = api_named(api).name
    code = None if error is None else error_named(error).name

    def is_wanted(request: SeenRequest) -> bool:
        return (
            request.api == name
            and code in (None, request.error)
            and client_id in (None, request.client_id)
        )

    return is_wanted


class Faults:
    """The rules of a running broker, for the thread of the test."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._required: list[Fault] = []
        """Rules of this test that have to meet a request."""

    def add(
        self,
        api: ApiName | None = None,
        *,
        error: ErrorName | ErrorCode | None = None,
        delay_ms: float = 0,
        drop: Literal["before", "after"] | None = None,
        twice: bool = False,
        truncate_bytes: int | None = None,
        hold: bool = False,
        applied: bool | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        client_id: str | None = None,
        version: int | None = None,
        skip: int = 0,
        times: int | None = None,
        probability: float = 1.0,
        seed: int = 0,
        broker: BrokerFault | None = None,
        may_miss: bool = False,
    ) -> Fault:
        """Add a rule, from now on until it is removed or its `with` block ends; see `Fault`.

        A test with the pytest fixtures fails if the rule never met a request, unless `may_miss` is
        set. Raises ValueError; ConfigError for a fault that cannot happen to this broker.
        """
        fault = Fault(
            api,
            error=error,
            delay_ms=delay_ms,
            drop=drop,
            twice=twice,
            truncate_bytes=truncate_bytes,
            hold=hold,
            applied=applied,
            topic=topic,
            partition=partition,
            group=group,
            client_id=client_id,
            version=version,
            skip=skip,
            times=times,
            probability=probability,
            seed=seed,
            broker=broker,
        )
        fault.on_removed = self._remove
        self._broker.await_node(lambda node: node.add(fault))
        if broker is None and not may_miss:
            self._required.append(fault)
        return fault

    @property
    def missed(self) -> list[Fault]:
        """Return the required rules (without `may_miss`) that met no request since the start or
        reset.
        """
        return [fault for fault in self._required if not fault.hits]

    def forget(self) -> None:
        """Expect no more hits of the rules so far."""
        self._required.clear()

    def clear(self) -> None:
        """Remove every fault."""
        self._broker.await_node(lambda node: node.clear())

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._broker.await_node(_rules_of))

    def _remove(self, fault: Fault) -> None:
        self._broker.await_node(lambda node: node.remove(fault))


async def _rules_of(node: Node) -> list[Fault]:
    return list(node.faults)


def setting_text(value: str | int | bool) -> str:
    """Return a setting as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
