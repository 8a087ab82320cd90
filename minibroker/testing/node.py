"""`Node`: a broker with everything that is done to it from outside, on its loop.

Holds what outlives a broker that is killed and started again: its clock, its disk, its address, the
rules. `testing.Broker` has one in a thread; `minibroker serve --control` has one and does to it
what comes over HTTP.

    Fault("Produce", error=…) ─► FaultDispatcher      what happens to requests
    Fault(broker="disk_full") ─► Node                 what happens to the broker
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from minibroker.app import Broker as AppBroker
from minibroker.errors import ConfigError
from minibroker.testing.clock import MovableClock
from minibroker.testing.fault_dispatcher import FaultDispatcher
from minibroker.testing.faults import Fault, FaultSet
from minibroker.testing.faulty_disk import FaultyDisk
from minibroker.testing.inspector import Inspector
from minibroker.testing.request_log import RequestLog

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.config.broker import BrokerConfig
    from minibroker.config.options import TopicToCreate


class Node:
    """Belongs to the loop's thread. `start`, then `stop`; in between it may be killed."""

    def __init__(
        self,
        config: BrokerConfig,
        topics: Sequence[TopicToCreate] = (),
        *,
        clock: MovableClock | None = None,
    ) -> None:
        """`topics` are made at the start and at every reset."""
        self._config = config
        self._topics = topics
        self.clock = clock or MovableClock()
        self.disk = FaultyDisk()
        self.faults = FaultSet()
        """Every rule, those for the broker too."""
        self.seen = RequestLog()
        """The last requests."""
        self.failure: asyncio.Future[str]
        """Done when the broker fails; see `app.Broker.failure`."""
        self.app: AppBroker
        self.dispatcher: FaultDispatcher
        self.inspector: Inspector
        self.is_running = False
        """Started, and not killed."""
        self._changing = asyncio.Lock()

    @property
    def address(self) -> tuple[str, int]:
        """Host and port that clients are told."""
        return self.app.address

    async def start(self) -> None:
        """Serve. Raises MinibrokerError."""
        self.failure = asyncio.get_running_loop().create_future()
        await self._start(self._topics)

    async def _start(self, topics: Sequence[TopicToCreate]) -> None:
        self.clock.forget_listeners()
        self.app = AppBroker(self._config, clock=self.clock, files=self.disk)
        self.inspector = Inspector(self.app)
        await self.app.start(topics)
        self.dispatcher = FaultDispatcher(self.app.services, faults=self.faults, seen=self.seen)
        self.app.use_dispatcher(self.dispatcher)
        self.app.failure.add_done_callback(self._failed)
        self.is_running = True

    def _failed(self, failure: asyncio.Future[str]) -> None:
        if not failure.cancelled() and not self.failure.done():
            self.failure.set_result(failure.result())

    async def stop(self) -> None:
        """Stop cleanly; a broker that is killed stays as it is. Raises MinibrokerError."""
        async with self._changing:
            if self.is_running:
                self.is_running = False
                for fault in self.faults:  # what is held would keep the stop waiting
                    self.dispatcher.release(fault)
                self._follow()
                self.app.timers.hold(is_held=False)
                await self.app.stop()

    # Faults.

    async def add(self, fault: Fault) -> None:
        """From now on, until `remove`. Raises ConfigError for what cannot happen to this broker."""
        if fault.broker == "killed":
            await self._kill()
        elif fault.broker == "zookeeper_session_lost":
            await self._lose_session()
            fault.is_removed = True
            return
        self.faults.add(fault)
        self._follow()

    async def remove(self, fault: Fault) -> None:
        """A rule is gone: what it holds goes on, what it broke is whole again."""
        fault.is_removed = True
        self.faults.discard(fault)
        if self.is_running:
            self.dispatcher.release(fault)
        if fault.broker == "killed" and not any(rule.broker == "killed" for rule in self.faults):
            await self._start_again()
        self._follow()

    async def clear(self) -> None:
        """Without faults again."""
        for fault in self.faults:
            await self.remove(fault)

    def _follow(self) -> None:
        """The disk and the timers are as the rules say."""
        kinds = {rule.broker for rule in self.faults}
        self.disk.is_full = "disk_full" in kinds
        self.disk.sync_delay_ms = sum(
            rule.delay_ms for rule in self.faults if rule.broker == "slow_sync"
        )
        if self.is_running:
            self.app.timers.hold(is_held="paused" in kinds)

    @property
    def is_paused(self) -> bool:
        """Return whether a rule keeps the broker paused."""
        return any(rule.broker == "paused" for rule in self.faults)

    async def _kill(self) -> None:
        async with self._changing:
            if self.is_running:
                self.is_running = False
                self._keep_ports()
                await self.app.abandon()

    def _keep_ports(self) -> None:
        """Clients know where the broker was, whoever chose that: so will the next one be there."""
        ports = self.app.ports
        listeners = [
            str(listener._replace(port=ports[listener.name])) for listener in self._config.listeners
        ]
        self._config = self._config.with_overrides({"listeners": ",".join(listeners)})

    async def _start_again(self) -> None:
        async with self._changing:
            if not self.is_running:
                await self._start(())

    async def _lose_session(self) -> None:
        from minibroker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  seldom asked for

        tree = self.app.cluster.tree
        if not isinstance(tree, ZooKeeperTree):
            raise ConfigError(
                "broker=zookeeper_session_lost: this broker has no ZooKeeper (zookeeper.connect)"
            )
        await tree.lose_session()

    async def reset(self) -> None:
        """As after the start, without faults; clients may stay connected."""
        await self.clear()
        await self.inspector.reset(self._topics)
        self.seen.clear()
