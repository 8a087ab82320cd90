"""`pytest --kafka=HOST:PORT`: a Kafka that runs already, in the place of the fixture `kafka`.

A test that uses only `kafka.bootstrap`, `kafka_topic`, faults and its own clients runs on both: its
clients reach Kafka through a proxy, which applies the faults and logs the requests. A test that
reads the broker's data or moves its clock needs minibroker: it is skipped, and the reason names the
call. So is one with a fault that happens inside of a broker. Topics that the fixtures make are
deleted at the end of the test. The waits for groups ask at intervals, and see less: no position of
a member.

It asks with `client/`, in versions that every Kafka since 0.11 has.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import pytest

from minibroker.broker.config.topic_option import parse_topic
from minibroker.client import admin
from minibroker.client.admin import offsets_at
from minibroker.client.client import Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.group_details import DEAD, group_details
from minibroker.client.groups import committed_offsets
from minibroker.client.settings import client_settings
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError
from minibroker.kafka.ids import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, TopicPartition
from minibroker.rig.group_views import GroupMember
from minibroker.testing.broker import Broker
from minibroker.testing.broker_faults import Faults
from minibroker.testing.failure_watch import fault_snapshots
from minibroker.testing.loop_thread import WAIT_TIMEOUT_S, is_for_test
from minibroker.testing.values import setting_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from minibroker.rig.names import ApiName
    from minibroker.rig.request_log import SeenRequest
    from minibroker.rig.snapshot import Snapshot
    from minibroker.seeds.load import LoadedSeed
    from minibroker.testing.proxy import Proxy

__tracebackhide__ = is_for_test

TIMEOUT_S: Final = 30.0
_LOOK_AGAIN_S: Final = 0.05
"""Interval between two questions about a topic or a group: Kafka sends no notice."""


def proxy_before(address: str) -> Proxy:
    """Return a proxy before a Kafka, which does not run yet. Raises UsageError."""
    from minibroker.testing.proxy import Proxy  # noqa: PLC0415  only with the option

    host, separator, port = address.rpartition(":")
    if not (separator and host and port.isdecimal()):
        raise pytest.UsageError(f"--kafka={address}: expected HOST:PORT")
    return Proxy(address)


class RealKafka:
    """The part of `testing.Broker` that works with any Kafka. Belongs to the test's thread."""

    def __init__(self, address: str, proxy: Proxy) -> None:
        """Take an `address` HOST:PORT, and the proxy before it, which runs."""
        self._server: Final = address
        self._proxy: Final = proxy
        self.faults: Final = Faults(self._on_proxy)
        """Faults to inject: the proxy applies them."""
        self.client: Final = Client(
            client_settings(
                {
                    "bootstrap.servers": address,
                    "client.id": "minibroker-testing",
                    "request.timeout.ms": str(int(TIMEOUT_S * 1000)),
                }
            )
        )
        self.own_topics: list[str] = []
        """Topics to delete at the end of `with_topics`."""

    def __repr__(self) -> str:
        return f"<Kafka at {self._server}>"

    def __getattr__(self, name: str) -> Any:
        """Skip a test that needs a feature of minibroker only."""
        if not name.startswith("_") and (hasattr(Broker, name) or name == "clock"):
            pytest.skip(f"kafka.{name} needs minibroker; this run is on {self._server}")
        raise AttributeError(name)

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT` for a client's bootstrap.servers: the proxy's."""
        return self._proxy.bootstrap

    def _on_proxy(self, call: Any, broker_ids: Collection[int] | None) -> list[Any]:
        """Do `broker_faults.OnNodes`; skip a test with a fault that needs minibroker."""
        try:
            return self._proxy.on_proxy(call, broker_ids)
        except ConfigError as error:
            pytest.skip(f"{error}; this run is on {self._server}")

    @property
    def requests(self) -> list[SeenRequest]:
        """Return the last requests of the test, oldest first."""
        return self._proxy.requests

    def wait_for_requests(self, api: ApiName, count: int = 1, **choice: Any) -> list[SeenRequest]:
        """Wait like `Broker.wait_for_requests`. Raises TimeoutError, ValueError, RuntimeError."""
        return self._proxy.wait_for_requests(api, count, **choice)

    async def wait_for_requests_async(
        self, api: ApiName, count: int = 1, **choice: Any
    ) -> list[SeenRequest]:
        """Wait like `wait_for_requests`, for a test that runs in a loop."""
        return await self._proxy.wait_for_requests_async(api, count, **choice)

    is_of_fixture = True

    @property
    def title(self) -> str:
        """Return `Kafka`, with its address: clients have the proxy's."""
        return f"Kafka {self._server} behind a proxy"

    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return what Kafka tells, and what the proxy has seen. Raises KafkaError, OSError.

        `since_ms`: requests that came before are left out, by the machine's clock.
        """
        from minibroker.testing.real_snapshot import real_snapshot  # noqa: PLC0415  seldom asked for

        proxied = self._proxy.snapshot(since_ms)
        real = real_snapshot(self.client, self.own_topics)
        return real._replace(
            bootstrap=self.bootstrap,
            faults=fault_snapshots(self.faults),
            exchanges=proxied.exchanges,
            notes=[*real.notes, *proxied.notes[1:]],
        )

    def secrets(self) -> set[str]:
        """Return passwords that no report may show: there are none."""
        return set()

    def report(self) -> str:
        """Return the last requests as a table. For the report of a test that failed."""
        return self._proxy.report()

    @contextmanager
    def with_topics(self, topics: Iterable[str]) -> Iterator[None]:
        """Make topics, written as on the command line; at the end delete all topics made here.

        Raises KafkaError; TOPIC_ALREADY_EXISTS if the topic existed before.
        """
        try:
            self._proxy.reset()
            for topic in topics:
                self.add_topic(topic)
            yield
        finally:
            while self.own_topics:
                self._delete(self.own_topics.pop())

    def add_topic(self, topic: str) -> None:
        """Make a topic in the notation of the command line: `"orders:3"`. Raises KafkaError."""
        wish = parse_topic(topic)
        self.create_topic(wish.name, max(wish.partitions, 1), wish.configs)

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str | int | bool] | None = None,
    ) -> None:
        """Make a topic of one replica; its partitions are served when this returns.

        Raises KafkaError, TimeoutError.
        """
        settings = {key: setting_text(value) for key, value in (config or {}).items()}
        self._wait(
            f"the deletion of topic {name!r}", lambda: self._is_made(name, partitions, settings)
        )
        self.own_topics.append(name)

    def load(self, seed: str | Path) -> LoadedSeed:
        """Load a seed like `Broker.load`, over the wire. Its new topics go with the test's.

        Times such as `-1h` are relative to this machine's clock. Raises SeedError, KafkaError,
        OSError.
        """
        from minibroker.seeds.send import send  # noqa: PLC0415  only who asks pays

        return send(seed, self.client, self.create_topic, timeout_s=TIMEOUT_S)

    async def load_async(self, seed: str | Path) -> LoadedSeed:
        """Load a seed like `load`, for a test that runs in a loop."""
        return await asyncio.to_thread(self.load, seed)

    def delete_topic(self, name: str) -> None:
        """Remove a topic with its records. Raises KafkaError, TimeoutError."""
        self._delete(name)
        if name in self.own_topics:
            self.own_topics.remove(name)

    @property
    def topics(self) -> dict[str, int]:
        """Return name → number of partitions; Kafka's internal topics are left out."""
        topics = admin.describe(self.client).topics
        return {
            name: topic.partition_count for name, topic in topics.items() if not topic.is_internal
        }

    def wait_for_group(
        self, group: str, members: int | None = None, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[GroupMember]:
        """Wait until a group is stable with exactly `members` members (None: one or more).

        Kafka tells no position of a member: one that begins with `auto.offset.reset=latest` may
        still have to look up the end, and miss a record that is written now. Raises TimeoutError,
        KafkaError, OSError.
        """

        coordinator = CoordinatorClient(self.client, group)

        def look(deadline: float) -> tuple[list[GroupMember], str | None]:
            details = group_details(coordinator, deadline)
            count = len(details.members)
            ready = [
                GroupMember(
                    member.member_id, member.client_id, member.instance_id, member.partitions
                )
                for member in details.members
            ]
            if details.is_stable and count == (members or max(count, 1)):
                return ready, None
            if details.state == DEAD:
                return [], "there is no such group"
            having = ", ".join(
                f"{member.client_id!r} has {len(member.partitions)} partitions" for member in ready
            )
            plural = "" if count == 1 else "s"
            return [], f"it is {details.state} with {count} member{plural}; {having or 'no more'}"

        ready_members: list[GroupMember] = _asked_until(
            look, f"group {group!r} is ready", timeout_s
        )
        return ready_members

    async def wait_for_group_async(
        self, group: str, members: int | None = None, *, timeout_s: float = WAIT_TIMEOUT_S
    ) -> list[GroupMember]:
        """Wait like `wait_for_group`, for a test that runs in a loop."""
        return await asyncio.to_thread(self.wait_for_group, group, members, timeout_s=timeout_s)

    def wait_until_read(
        self, group: str, *, fetched: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> dict[tuple[str, int], int]:
        """Wait until a group has committed the end of every partition that it reads.

        A marker of a transaction at the end counts as a record. `fetched` skips the test: Kafka
        does not tell. Raises TimeoutError, KafkaError, OSError.
        """
        if fetched:
            pytest.skip(f"fetched=True needs minibroker; this run is on {self._server}")

        coordinator = CoordinatorClient(self.client, group)

        def look(deadline: float) -> tuple[dict[tuple[str, int], int], str | None]:
            details = group_details(coordinator, deadline)
            committed = {
                TopicPartition(item.topic, item.partition): item.offset
                for item in committed_offsets(coordinator, deadline)
            }
            places = {place for member in details.members for place in member.partitions}
            unread = self._unread(places or committed.keys(), committed)
            if not (places or committed):
                unread = ["no member and no committed offset"]
            return {
                (place.topic, place.partition): offset for place, offset in committed.items()
            }, (f"{', '.join(unread)}; it is {details.state}" if unread else None)

        positions: dict[tuple[str, int], int] = _asked_until(
            look, f"group {group!r} has read everything", timeout_s
        )
        return positions

    def _unread(
        self, places: Iterable[TopicPartition], committed: Mapping[TopicPartition, int]
    ) -> list[str]:
        """Return a text for each partition whose end is not committed. Raises KafkaError."""
        ends = offsets_at(self.client, places, LATEST_TIMESTAMP, is_committed=True)
        starts = offsets_at(self.client, places, EARLIEST_TIMESTAMP, is_committed=False)
        return [
            f"{place} ends at {end}, committed up to {committed.get(place, 'nowhere')}"
            for place, end in sorted(ends.items())
            if committed.get(place, starts[place]) < end
        ]

    async def wait_until_read_async(
        self, group: str, *, fetched: bool = False, timeout_s: float = WAIT_TIMEOUT_S
    ) -> dict[tuple[str, int], int]:
        """Wait like `wait_until_read`, for a test that runs in a loop."""
        return await asyncio.to_thread(
            self.wait_until_read, group, fetched=fetched, timeout_s=timeout_s
        )

    def _is_made(self, name: str, partitions: int, settings: Mapping[str, str]) -> bool:
        """Make the topic; return False while an earlier one of its name is still being deleted."""
        try:
            admin.create_topic(
                self.client, name, partitions, settings, timeout_s=TIMEOUT_S, replicas=1
            )
        except KafkaError as error:
            if error.code != ErrorCode.TOPIC_ALREADY_EXISTS or name in self.topics:
                raise
            return False
        return True

    def _delete(self, name: str) -> None:
        try:
            admin.delete_topic(self.client, name, timeout_s=TIMEOUT_S)
        except KafkaError as error:
            if error.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # the test may have done it
                raise

    def _wait(self, condition: str, is_so: Any) -> None:
        deadline_s = time.monotonic() + TIMEOUT_S
        while not is_so():
            if time.monotonic() > deadline_s:
                raise TimeoutError(f"waited {TIMEOUT_S:g} s for {condition} on {self._server}")
            time.sleep(_LOOK_AGAIN_S)


def _asked_until(
    look: Callable[[float], tuple[Any, str | None]], condition: str, timeout_s: float
) -> Any:
    """Return the first part of what `look` returns, once the second one, the lack, is None.

    Raises TimeoutError with the lack.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        result, lack = look(deadline)
        if lack is None:
            return result
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {timeout_s:g} s until {condition}: {lack}")
        time.sleep(_LOOK_AGAIN_S)
