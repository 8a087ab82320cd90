"""`Broker`: a whole minibroker in the test's process, in a thread with a loop of its own.

Synchronous from outside, so that it serves any test; as `async with` too. Every call here runs on
the broker's loop and comes back with its result. Several brokers run side by side; each has a port
and a directory of its own, and nothing of it is left after `stop`.

    the test's thread ──call──► the broker's loop (app.Broker) ◄──TCP── the client under test
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import shutil
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from minibroker.config.broker import BrokerConfig
from minibroker.config.options import parse_topic
from minibroker.errors import KafkaError
from minibroker.testing.clock import MovableClock, TestClock
from minibroker.testing.faults import Fault
from minibroker.testing.node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence

    from minibroker.records.record import Header
    from minibroker.testing.inspector import Inspector
    from minibroker.testing.request_log import SeenRequest
    from minibroker.testing.topic_records import TopicRecord

START_TIMEOUT_S: Final = 30.0
WAIT_TIMEOUT_S: Final = 10.0

TEST_DEFAULTS: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:0",
    # As many as Kafka's 50 would do nothing for a test but take time when they are made.
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_MEMORY: Final = Path("/dev/shm")


class Broker:
    """One broker between `start` and `stop`, or in a `with` block.

    Args:
        topics: made at every start and reset: `"orders"`, `"orders:3"`,
            `"orders:3:cleanup.policy=compact"`, as on the command line.
        config: Kafka's settings for the broker.
        data_dir: where it keeps its data; None: in memory, gone with it.
    """

    def __init__(
        self,
        *,
        topics: Iterable[str] = (),
        config: Mapping[str, str | int | bool] | None = None,
        data_dir: str | Path | None = None,
    ) -> None:
        self._topics = tuple(parse_topic(topic) for topic in topics)
        self._settings = {name: _text(value) for name, value in (config or {}).items()}
        self._data_dir = None if data_dir is None else str(data_dir)
        self._own_dir: str | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop
        self._node: Node
        self._ending: asyncio.Event
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
        await asyncio.wrap_future(self._begin())
        return self

    async def __aexit__(self, *_: object) -> None:
        ended = self._end()
        if ended is not None:
            await asyncio.wrap_future(ended)
            self._forget_thread()

    def start(self) -> None:
        """Serve; the address is known when this returns. Raises MinibrokerError."""
        self._begin().result(START_TIMEOUT_S)

    def stop(self) -> None:
        """End it and remove what it kept in memory. A second time does nothing."""
        ended = self._end()
        if ended is not None:
            ended.result(START_TIMEOUT_S)
            self._forget_thread()

    def _begin(self) -> concurrent.futures.Future[None]:
        if self._thread is not None:
            raise RuntimeError("this broker is running: stop it before it is started again")
        started: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._ended: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._thread = threading.Thread(
            target=self._main, args=(started,), name="minibroker", daemon=True
        )
        self._thread.start()
        return started

    def _end(self) -> concurrent.futures.Future[None] | None:
        if self._thread is None:
            return None
        if not self._ended.done():
            self._loop.call_soon_threadsafe(self._ending.set)
        return self._ended

    def _forget_thread(self) -> None:
        if self._thread is not None:
            self._thread.join(START_TIMEOUT_S)
            self._thread = None

    def _main(self, started: concurrent.futures.Future[None]) -> None:
        """The thread: a loop, a broker, until `_ending`."""
        import uvloop  # noqa: PLC0415  as late as everything of a start

        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve(started))
        except BaseException as error:
            if started.done():
                self._ended.set_exception(error)
            else:
                self._thread = None
                started.set_exception(error)
        else:
            self._ended.set_result(None)
        finally:
            if self._own_dir is not None:
                shutil.rmtree(self._own_dir, ignore_errors=True)
                self._own_dir = None

    async def _serve(self, started: concurrent.futures.Future[None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        config = BrokerConfig(self._all_settings())
        self._node = Node(config, self._topics, clock=self._clock)
        await self._node.start()
        started.set_result(None)
        await self._ending.wait()
        await self._node.stop()

    def _all_settings(self) -> dict[str, str]:
        directory = self._data_dir
        if directory is None and "log.dirs" not in self._settings:
            memory = _MEMORY if _MEMORY.is_dir() else None
            directory = self._own_dir = tempfile.mkdtemp(prefix="minibroker-", dir=memory)
        named = {} if directory is None else {"log.dirs": directory}
        return {**TEST_DEFAULTS, **named, **self._settings}

    # Calls onto the loop.

    @property
    def _look(self) -> Inspector:
        """Into the running broker. Raises RuntimeError while there is none."""
        if not self._running.is_running:
            raise RuntimeError("this broker was killed: remove the fault that says so first")
        return self._running.inspector

    @property
    def _running(self) -> Node:
        if self._thread is None:
            raise RuntimeError("this broker is not running: use it in a with block, or start it")
        return self._node

    def call(self, function: Callable[[], Any]) -> Any:
        """Run a function on the broker's loop; what it returns."""
        _ = self._running

        async def call() -> Any:
            return function()

        return self._await(call())

    def _await(self, coroutine: Coroutine[Any, Any, Any], timeout_s: float = WAIT_TIMEOUT_S) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(timeout_s + 5)

    def await_node(self, call: Callable[[Node], Coroutine[Any, Any, Any]]) -> Any:
        """Run a coroutine of the broker's node on its loop; what it returns."""
        return self._await(call(self._running))

    # What a test wants to know and do.

    @property
    def bootstrap(self) -> str:
        """`HOST:PORT` for a client's bootstrap.servers."""
        host, port = self._running.address
        return f"{host}:{port}"

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        """Make a topic; it can be used when this returns. Raises KafkaError."""
        named = {key: _text(value) for key, value in (config or {}).items()}
        self._await(self._look.create_topic(name, partitions, named))

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records. Raises KafkaError."""
        self._await(self._look.delete_topic(name))

    @property
    def topics(self) -> dict[str, int]:
        """Name → number of partitions; Kafka's internal topics are left out."""
        found: dict[str, int] = self.call(self._look.topics)
        return found

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        headers: Sequence[Header] = (),
        partition: int | None = None,
        timestamp: int | None = None,
    ) -> TopicRecord:
        """Write one record without a client; what was written.

        `partition` None: by the key as Java's producer chooses it, without a key the first one.
        `timestamp` in ms, None: now. Raises KafkaError.
        """
        written: TopicRecord = self._await(
            self._look.produce(
                topic,
                key=key,
                value=value,
                headers=tuple(headers),
                index=partition,
                timestamp=timestamp,
            )
        )
        return written

    def records(
        self,
        topic: str,
        partition: int | None = None,
        *,
        isolation: str = "read_uncommitted",
    ) -> list[TopicRecord]:
        """Return the decoded records of a topic, or of one partition of it; partition by partition.

        Raises KafkaError(UNKNOWN_TOPIC_OR_PARTITION).
        """
        found: list[TopicRecord] = self.call(
            lambda: self._look.records(topic, partition, isolation)
        )
        return found

    def wait_for(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait until a topic has `count` records or more; return all of them. Raises TimeoutError.

        The topic need not exist yet. In asyncio code use `wait_for_async`: this one blocks.
        """
        found: list[TopicRecord] = self._await(
            self._look.wait_for(topic, count, timeout_s), timeout_s
        )
        return found

    async def wait_for_async(
        self, topic: str, count: int, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[TopicRecord]:
        """Wait like `wait_for`, for a test that runs in a loop."""
        future = asyncio.run_coroutine_threadsafe(
            self._look.wait_for(topic, count, timeout_s), self._loop
        )
        return await asyncio.wrap_future(future)

    def committed(self, group: str) -> dict[tuple[str, int], int]:
        """Return (topic, partition) → committed offset of a group; empty for an unknown group."""
        found: dict[tuple[str, int], int] = self.call(lambda: self._look.committed(group))
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
        api: str,
        count: int = 1,
        *,
        error: str | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[SeenRequest]:
        """Until clients have been answered `count` requests of a kind; all of those.

        `error`: only those answered with it, by Kafka's name. Raises TimeoutError, which says how
        many came.
        """

        def is_wanted(request: SeenRequest) -> bool:
            return (
                request.api == api
                and error in (None, request.error)
                and client_id in (None, request.client_id)
            )

        found: list[SeenRequest] = self._await(
            self._running.seen.wait_for(is_wanted, count, timeout_s), timeout_s
        )
        return found

    def reset(self) -> None:
        """As after the start: no records, groups, offsets, transactions, quotas and changed
        settings; the topics of the start are there, empty. Clients may stay connected.
        """
        self._await(self._running.reset())

    def last_events(self, topics: Iterable[str] = (), count: int = 20) -> list[str]:
        """The last requests as lines, for the report of a test that failed, with what the topics
        hold.
        """
        lines = [str(request) for request in self.requests[-count:]]
        for topic in topics:
            try:
                held = len(self.records(topic))
            except KafkaError as error:
                lines.append(f"topic {topic}: {error.code.name}")
            else:
                lines.append(f"topic {topic}: {held} records")
        return lines


class Faults:
    """The rules of a running broker, for the thread of the test."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def add(self, api: str | None = None, **rule: Any) -> Fault:
        """A rule from now on, until it is removed or its `with` block ends; see `Fault` for what it
        can say. Raises ValueError; ConfigError for what cannot happen to this broker.
        """
        fault = Fault(api, **rule)
        fault.on_removed = self._remove
        self._broker.await_node(lambda node: node.add(fault))
        return fault

    def clear(self) -> None:
        """Without faults again."""
        self._broker.await_node(lambda node: node.clear())

    def __iter__(self) -> Iterator[Fault]:
        return iter(self._broker.await_node(_rules_of))

    def _remove(self, fault: Fault) -> None:
        self._broker.await_node(lambda node: node.remove(fault))


async def _rules_of(node: Node) -> list[Fault]:
    return list(node.faults)


def _text(value: str | int | bool) -> str:
    """A setting as Kafka writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
