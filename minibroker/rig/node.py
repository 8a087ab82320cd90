"""`Node`: a broker and the controls of its faults, clock and restarts, on its loop.

It holds everything that outlives a kill and a restart of the broker: clock, disk, address, rules.
`testing.Broker` has a node in a thread. `minibroker serve --control` has one and controls it over
HTTP.

    Fault("Produce", error=…) ─► FaultInterceptor      what happens to requests
    Fault(broker="cut_off")   ─► PeerFaults           what happens to its requests to other brokers
    Fault(login="tls_cut")    ─► LoginFaults          what happens to logins
    Fault(broker="disk_full") ─► Node                 what happens to the broker
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING

from minibroker.broker.app import Broker as AppBroker
from minibroker.broker.cluster.shared import TreeSession
from minibroker.kafka.errors import ConfigError
from minibroker.rig.clock import MovableClock
from minibroker.rig.fault_interceptor import FaultInterceptor
from minibroker.rig.faults import Fault, FaultSet
from minibroker.rig.faulty_disk import FaultyDisk
from minibroker.rig.fetching import Fetching
from minibroker.rig.inspector import Inspector, TopicProgress
from minibroker.rig.login_faults import LoginFaults
from minibroker.rig.peer_faults import PeerFaults
from minibroker.rig.request_log import RequestLog
from minibroker.rig.waits import Waits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.topic_option import TopicToCreate


class Node:
    """A broker between `start` and `stop`; meanwhile it may be killed.

    Belongs to the loop's thread.
    """

    def __init__(
        self,
        config: BrokerConfig,
        topics: Sequence[TopicToCreate] = (),
        *,
        clock: MovableClock | None = None,
        new_tree: Callable[[], TreeSession] | None = None,
    ) -> None:
        """Take `topics`, which are made at the start and at every reset."""
        self._config = config
        self._topics = topics
        self._new_tree = new_tree
        self.clock = clock or MovableClock()
        self.disk = FaultyDisk()
        self.faults = FaultSet()
        """Every rule, also those for the whole broker."""
        self.request_log = RequestLog()
        """The last requests."""
        self.fetching = Fetching()
        """The places from which clients read; the nodes of a cluster have one together."""
        self._topic_progress = TopicProgress()
        self.waits = Waits(lambda: [self] if self.is_running else [])
        self.failure: asyncio.Future[str]
        """Done when the broker fails; see `app.Broker.failure`."""
        self.app: AppBroker
        self.interceptor: FaultInterceptor
        self.login_faults: LoginFaults
        self.peer_faults: PeerFaults
        self.inspector: Inspector
        self.is_running = False
        """True after the start, unless the broker is killed."""
        self.on_start: Callable[[Node], None] = lambda _: None
        """Called before each start of the broker, when `app` is made."""
        self._changing = asyncio.Lock()

    @property
    def broker_id(self) -> int:
        """Return `broker.id`."""
        return self._config.broker_id

    @property
    def address(self) -> tuple[str, int]:
        """Return host and port for clients."""
        return self.app.address

    @property
    def running_app(self) -> AppBroker | None:
        """Return the broker, None while a fault has it killed or paused."""
        return self.app if self.is_running and not self.is_paused else None

    async def start(self, topics: Sequence[TopicToCreate] = ()) -> None:
        """Start the broker, with more `topics` for the start and every reset. Raises
        MinibrokerError.
        """
        self._topics = (*self._topics, *topics)
        self.failure = asyncio.get_running_loop().create_future()
        await self._start(self._topics)

    async def _start(self, topics: Sequence[TopicToCreate]) -> None:
        tree = self._new_tree() if self._new_tree is not None else None
        self.app = AppBroker(self._config, clock=self.clock, files=self.disk, tree=tree)
        self.peer_faults = PeerFaults(self._config.broker_id, self.faults, self.app.timers)
        self.app.cluster.peer_interceptor = self.peer_faults
        self._follow_pause()
        self.on_start(self)
        self.inspector = Inspector(self.app, self._topic_progress)
        await self.app.start(topics)
        self.interceptor = FaultInterceptor(
            self.app.services,
            faults=self.faults,
            request_log=self.request_log,
            fetching=self.fetching,
        )
        self.app.intercept(self.interceptor)
        self.login_faults = LoginFaults(self.faults, self.app.timers)
        self.app.intercept_logins(self.login_faults)
        self.app.failure.add_done_callback(self._failed)
        self.is_running = True
        self._topic_progress.event.set()  # its topics may have been there before

    def _failed(self, failure: asyncio.Future[str]) -> None:
        if not failure.cancelled() and not self.failure.done():
            self.failure.set_result(failure.result())

    async def stop(self, *, hands_over: bool = True) -> None:
        """Do `app.Broker.stop`; a killed broker stays killed. Raises MinibrokerError."""
        async with self._changing:
            if self.is_running:
                self.is_running = False
                for fault in self.faults:  # what is held would keep the stop waiting
                    self.interceptor.release(fault)
                    self.login_faults.release(fault)
                self._follow()
                self._follow_pause()
                await self.app.stop(hands_over=hands_over)

    # Faults.

    async def add(self, fault: Fault) -> None:
        """Apply a rule until `remove`.

        Raises ConfigError for a fault that cannot happen to this broker.
        """
        if fault.bytes_per_s is not None:
            raise ConfigError(
                "bytes_per_s: a broker cannot slow its bytes down: put a proxy before it "
                "(minibroker proxy, testing.Proxy)"
            )
        if fault.login is not None:
            self._check_listeners(fault.login)
        if fault.broker == "killed":
            await self._kill()
        elif fault.broker == "zookeeper_session_lost":
            await self.lose_session()
            fault.is_removed = True
            return
        self.faults.add(fault)
        if self.is_running:
            self.interceptor.note(fault)
            self.peer_faults.note(fault)
        self._follow()

    def _check_listeners(self, login: str) -> None:
        """Raise ConfigError where no client of this broker could meet a fault of logins."""
        protocols = [listener.security_protocol for listener in self._config.listeners]
        if login.startswith("tls_"):
            needed, has_one = "TLS", any(protocol.uses_tls for protocol in protocols)
        else:
            needed, has_one = "SASL", any(protocol.uses_sasl for protocol in protocols)
        if not has_one:
            raise ConfigError(
                f"login={login}: no listener of this broker has {needed}, so no client could meet "
                f"it; its listeners: {', '.join(protocols)}"
            )

    async def remove(self, fault: Fault) -> None:
        """End a rule: held requests go on, a faulty disk or a killed broker recovers."""
        self.faults.discard(fault)
        # Other brokers may have it still: it ends there with `Fault.remove`.
        fault.is_removed = fault.is_removed or not fault.holders
        if self.is_running:
            self.interceptor.release(fault)
            self.login_faults.release(fault)
        if fault.broker == "killed" and not any(rule.broker == "killed" for rule in self.faults):
            await self._start_again()
        self._follow()

    async def clear(self) -> None:
        """Remove every fault."""
        for fault in self.faults:
            await self.remove(fault)

    def _follow(self) -> None:
        """Bring the disk and the timers in line with the rules."""
        kinds = {rule.broker for rule in self.faults}
        self.disk.is_full = "disk_full" in kinds
        self.disk.sync_delay_ms = sum(
            rule.delay_ms for rule in self.faults if rule.broker == "slow_sync"
        )
        if self.is_running:
            self._follow_pause()

    def _follow_pause(self) -> None:
        """Stop what the broker does by itself, or let it go on: timers, fetches, its metadata.

        A start and a stop are never paused: they would wait for the tree.
        """
        is_paused = self.is_running and self.is_paused
        self.app.timers.hold(is_held=is_paused)
        self.peer_faults.hold(is_held=is_paused)
        tree = self.app.cluster.tree
        if isinstance(tree, TreeSession):
            tree.pause(is_paused=is_paused)

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
        """Keep the ports for the next start: clients find the broker at the same address."""
        ports = self.app.ports
        listeners = [
            str(listener._replace(port=ports[listener.name])) for listener in self._config.listeners
        ]
        self._config = self._config.with_overrides({"listeners": ",".join(listeners)})

    async def _start_again(self) -> None:
        async with self._changing:
            if not self.is_running:
                await self._start(())

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """Keep the broker from news of a tree that it shares in this process."""
        tree = self.app.cluster.tree
        if isinstance(tree, TreeSession):
            tree.hold(is_held=True)
        try:
            yield
        finally:
            self._follow_pause()

    async def lose_session(self) -> None:
        """End the session with the tree. Raises ConfigError where there is no such session."""
        from minibroker.broker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  seldom asked for

        tree = self.app.cluster.tree
        if not isinstance(tree, ZooKeeperTree | TreeSession):
            raise ConfigError(
                "broker=zookeeper_session_lost: this broker has no ZooKeeper (zookeeper.connect), "
                "and is not one of several"
            )
        await tree.lose_session()

    async def reset(self) -> None:
        """Return to the state after the start: no faults, the machine's time; clients stay
        connected.
        """
        await self.clear()
        self.clock.put_back()
        await self.inspector.reset(self._topics)
        self.request_log.clear()
