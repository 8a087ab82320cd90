"""Three brokers, clients and faults on simulated time: one run of one seed.

The brokers are `minibroker.app.Broker`, whole and as they are. Time, sockets, threads, the metadata
tree and the disks are simulated. Power cuts are limited, because Kafka's replication without
KIP-966 does not survive all of them either. The power of a broker is cut only while another running
broker is in the ISR and the brokers know the tree as it is. The broker comes back when it has left
the ISR. Until then no other broker is stopped or cut off from the tree.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import random
import shutil
import sys
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import minibroker.server.server
import minibroker.slices
from minibroker.cluster import paths
from minibroker.cluster.codecs import decode_state
from minibroker.errors import MinibrokerError
from minibroker.worker import Worker
from tests.simulation.clients import Clients
from tests.simulation.host import TOPIC, Host
from tests.simulation.loop import CLIENT, SimulatedClock, SimulatedLoop, SimulatedWorker
from tests.simulation.network import Network, SimulatedListener
from tests.simulation.rules import MIN_INSYNC, Rules
from tests.simulation.tree import SimulatedTree
from tests.support.faulty_files import PowerCut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.app import Broker
    from minibroker.cluster.codecs import PartitionState
    from tests.simulation.tree import TreeSession

BROKERS = 3
SESSION_TIMEOUT_S = 1.0
FAULTS_S = 10.0
"""Simulated seconds with faults."""
HISTORY_LINES = 60
"""Lines of the history that a failure shows."""
TURNS_MAX = 60_000
"""Turns of the loop, ten times those of a usual run. More of them are a loop that does nothing."""
CONVERGENCE_S = 60.0
"""Simulated seconds after which brokers without faults have to agree."""
TOPIC_SETTINGS = {
    "min.insync.replicas": str(MIN_INSYNC),
    "segment.bytes": "4000",
    "index.interval.bytes": "200",
}


class World:
    """One run. `run` raises AssertionError where a rule is broken."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.chance = random.Random(seed)
        self.history: list[str] = []
        self.loop = SimulatedLoop()
        self.network = Network(self.loop, seed)
        self.clock = SimulatedClock(self.loop)
        self.tree = SimulatedTree(self.network, self.clock)
        self.graveyard: list[Broker] = []
        """Brokers that were killed; kept so that nothing of them is cleaned up early."""
        self.hosts = [Host(self, broker_id) for broker_id in range(BROKERS)]
        self.rules = Rules(self)
        self.clients = Clients(self)
        self.unsafe: Host | None = None
        """The broker that lost power and has not left the ISR."""
        self._faults = [
            *(self._kill, self._kill, self._cut_power, self._cut_power, self._stop),
            *(self._cut_link, self._cut_link, self._mend_links, self._mend_links, self._reset),
            *(self._slow_link, self._cut_off, self._cut_off, self._elect),
        ]
        """Faults to choose from; one that is named twice happens more often."""
        self.is_failing = False
        self.failure: BaseException | None = None
        """Exception of a task that nobody waits for."""

    def note(self, line: str) -> None:
        """Add a line to the history of this run."""
        self.history.append(f"{self.loop.time():9.4f}  {line}")

    def note_end(self, task: asyncio.Task[None]) -> None:
        """Fail with the exception of a task."""
        if not task.cancelled() and task.exception() is not None:
            self.failure = task.exception()

    def later(self, delay_s: float, call: Any, *arguments: object) -> None:
        """Call in so many simulated seconds; the call belongs to no machine."""
        self.loop.call_later(delay_s, call, *arguments, context=self.network.context)

    def tree_expires_later(self, session: TreeSession) -> None:
        """Let a session run out."""
        self.later(SESSION_TIMEOUT_S, self.tree.expire, session.session_id)

    @property
    def state(self) -> PartitionState | None:
        """Return the state of the partition in the tree."""
        path = paths.partition_state(TOPIC, 0)
        node = self.tree.nodes.get(path)
        return decode_state(path, node.data) if node is not None else None

    # A run.

    def run(self) -> None:
        """Run it all. Raises AssertionError."""
        self.loop.on_turn = self._on_turn
        with _simulated(self.chance):
            main = self.loop.create_task(self._run())
            try:
                self.loop.run_until_complete(main)
            finally:
                self._end()

    def _on_turn(self) -> None:
        if self.is_failing:
            return
        self._find_cuts()
        if self.failure is not None and not isinstance(self.failure, PowerCut):
            self.is_failing = True
            raise self.failure
        try:
            assert self.loop.turns < TURNS_MAX, "the loop turns without end"
            self.rules.check()
        except AssertionError:
            self.is_failing = True
            raise

    def _find_cuts(self) -> None:
        for host in self.hosts:
            if host.files.is_cut and host.is_running:
                is_safe = self._is_safe_without(host)
                what = "the power is cut" if is_safe else "it is killed"
                self.note(f"broker {host.broker_id}: {what} in the middle of a call")
                host.cut_power(self.chance, keeps_all=not is_safe)
                if not is_safe:
                    self.unsafe = None
                    self.later(self.chance.uniform(0.05, 3.0), host.start_if_down)

    def _end(self) -> None:
        self.is_failing = True
        for host in self.hosts:
            if host.is_running:
                host.kill()
            host.files.forget_pins()
        self.loop.abandon()

    async def _run(self) -> None:
        for host in self.hosts:
            host.start()
        await self._until(self._know_each_other, "brokers start")
        first = self.hosts[0]
        assert first.machine is not None
        await self.loop.create_task(
            first.broker.cluster.create_topic(
                TOPIC, assignment={0: [0, 1, 2]}, configs=TOPIC_SETTINGS
            ),
            context=first.machine.context,
        )
        self.clients.begin()
        end_s = self.loop.time() + FAULTS_S
        while self.loop.time() < end_s:
            await self.loop.pass_time(
                self.chance.choice([0.02, 0.1, 0.5, 1.0]) * self.chance.random()
            )
            await self._make_fault()
        await self._heal()

    def _know_each_other(self) -> bool:
        return all(
            host.is_ready and len(host.broker.cluster.image.brokers) == BROKERS
            for host in self.hosts
        )

    async def _heal(self) -> None:
        """Repair everything; the brokers have to agree then."""
        self.note("everything is repaired")
        for host in self.hosts:
            host.files.cut_at = -1
        await self._until(lambda: self.unsafe is None, "a broker without power leaves the ISR")
        for way in list(self.network.cuts):
            self.network.mend(*way)
        self.network.slow.clear()
        for host in self.hosts:
            host.start_if_down()
            host.session.come_back()
        self.clients.stop()
        await self._until(self._is_converged, "the brokers agree")
        self.rules.check_at_end(self.clients)

    def _is_converged(self) -> bool:
        state = self.state
        if state is None or len(state.isr) < BROKERS or not all(h.is_ready for h in self.hosts):
            return False
        found = [host.partition for host in self.hosts]
        ends = {(p.log_end_offset, p.high_watermark) if p is not None else None for p in found}
        return len(ends) == 1 and all(end is not None and end[0] == end[1] for end in ends)

    async def _until(self, holds: Any, what: str) -> None:
        end_s = self.loop.time() + CONVERGENCE_S
        while not holds():
            if self.loop.time() > end_s:
                ends = [
                    (h.broker_id, h.is_ready, str(p), p.role, p.log_end_offset, p.high_watermark)
                    if (p := h.partition) is not None
                    else h.broker_id
                    for h in self.hosts
                ]
                raise AssertionError(f"not within {CONVERGENCE_S} s: {what}; {self.state}; {ends}")
            await self.loop.pass_time(0.05)

    # Faults.

    async def _make_fault(self) -> None:
        chance = self.chance
        host = chance.choice(self.hosts)
        await chance.choice(self._faults)(host)

    def _may_stop(self, host: Host) -> bool:
        return host.is_ready and self.unsafe is None

    async def _kill(self, host: Host) -> None:
        if self._may_stop(host):
            self.note(f"broker {host.broker_id} is killed")
            host.kill()
            self.later(self.chance.uniform(0.05, 3.0), host.start_if_down)

    async def _cut_power(self, host: Host) -> None:
        """Cut the power now, or at one of the next calls of files."""
        state = self.state
        if not self._may_stop(host) or state is None or not self._is_safe_without(host):
            return
        self.unsafe = host
        if self.chance.random() < 0.5:
            self.note(f"broker {host.broker_id} loses power")
            host.cut_power(self.chance)
        else:
            self.note(f"broker {host.broker_id} loses power at one of its next calls")
            host.files.cut_at = host.files.call_count + self.chance.randrange(1, 30)
        self.later(0.05, self._wait_for_departure, host)

    def _is_safe_without(self, host: Host) -> bool:
        """Return whether another running broker is in the ISR, and stays in it."""
        state = self.state
        if state is None or not all(found.is_settled for found in self.hosts if found.is_running):
            return False
        return any(
            other.is_ready and other is not host and other.broker_id in state.isr
            for other in self.hosts
        )

    def _wait_for_departure(self, host: Host) -> None:
        """Have the broker start again once it has left the ISR."""
        state = self.state
        assert state is not None
        if self.unsafe is not host:
            return
        if not host.is_running and host.broker_id not in state.isr:
            self.unsafe = None
            self.later(self.chance.uniform(0.05, 2.0), host.start_if_down)
            return
        if host.is_running and self.is_over_for(host):
            host.files.cut_at = -1
            self.unsafe = None
            return
        self.later(0.05, self._wait_for_departure, host)

    def is_over_for(self, host: Host) -> bool:
        """Return whether the cut that a running broker waits for does not come any more, because
        it would not be safe now.
        """
        return host.files.cut_at < 0 or not self._is_safe_without(host)

    async def _stop(self, host: Host) -> None:
        if self._may_stop(host):
            self.note(f"broker {host.broker_id} stops")
            stopping = self.loop.create_task(host.stop())
            await asyncio.wait([stopping], timeout=15)
            if not stopping.done():
                self.note(f"broker {host.broker_id} does not stop, and is killed")
                host.kill()
            self.later(self.chance.uniform(0.05, 2.0), host.start_if_down)

    async def _cut_link(self, host: Host) -> None:
        other = self.chance.choice([found for found in self.hosts if found is not host])
        ways = [(host.broker_id, other.broker_id), (other.broker_id, host.broker_id)]
        if self.chance.random() < 0.5:
            del ways[1]
        self.note(f"nothing arrives: {ways}")
        self.network.cuts.update(ways)

    async def _mend_links(self, _host: Host) -> None:
        if self.network.cuts:
            self.note("links are mended")
        for way in sorted(self.network.cuts):
            self.network.mend(*way)
        self.network.slow.clear()

    async def _reset(self, host: Host) -> None:
        other = self.chance.choice([CLIENT, *(h.broker_id for h in self.hosts if h is not host)])
        self.note(f"connections between {host.broker_id} and {other} are reset")
        self.network.reset(host.broker_id, other)

    async def _slow_link(self, host: Host) -> None:
        other = self.chance.choice([found for found in self.hosts if found is not host])
        self.note(f"slow: {host.broker_id} to {other.broker_id}")
        self.network.slow.add((host.broker_id, other.broker_id))

    async def _cut_off(self, host: Host) -> None:
        """Cut a broker off from the tree, for so long that its session may expire."""
        if not host.is_ready or host.session.is_away or self.unsafe is not None:
            return
        session = host.session
        away_s = self.chance.choice([0.1, 0.5, 1.5, 3.0]) * self.chance.uniform(0.5, 1.5)
        self.note(f"broker {host.broker_id} is cut off from the tree for {away_s:.2f} s")
        session.cut_off()
        if away_s > SESSION_TIMEOUT_S:
            self.later(SESSION_TIMEOUT_S, session.expire_if_away)
        self.later(away_s, session.come_back)

    async def _elect(self, _host: Host) -> None:
        """Ask the controller for the preferred leader."""
        for host in self.hosts:
            if host.is_ready and host.broker.cluster.is_controller:
                assert host.machine is not None
                self.note(f"preferred election at broker {host.broker_id}")
                self.loop.create_task(_ignoring(host), context=host.machine.context)
                return


async def _ignoring(host: Host) -> None:
    """Elect the preferred leader where that can be done."""
    try:
        await host.broker.cluster.elect_leader(TOPIC, 0, unclean=False)
    except MinibrokerError as error:
        host.world.note(f"no election: {error}")


@contextmanager
def _simulated(chance: random.Random) -> Iterator[None]:
    """Put the simulated parts in the places of sockets, threads and chance."""
    places = [
        (minibroker.server.server, "ListeningSocket", SimulatedListener),
        (Worker, "_submit", SimulatedWorker.submit),
        (Worker, "close", SimulatedWorker.close),
        (minibroker.slices, "perf_counter", lambda: 0.0),
        (os, "urandom", chance.randbytes),
    ]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
    random.seed(chance.random())
    level = logging.getLogger("minibroker").level
    logging.getLogger("minibroker").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    gc.disable()
    for owner, name, stand_in in places:
        setattr(owner, name, stand_in)
    try:
        yield
    finally:
        for owner, name, real in before:
            setattr(owner, name, real)
        gc.enable()
        logging.getLogger("minibroker").setLevel(level)
        logging.getLogger("asyncio").setLevel(logging.NOTSET)


class Outcome(NamedTuple):
    """The result of one run; it keeps nothing of the brokers alive."""

    failure: str | None
    """Seed, error and the last lines of the history, None where no rule was broken."""
    history: list[str]
    turns: int
    committed_end: int
    acknowledged: list[tuple[int, bytes]]


def run_schedule(directory: Path, seed: int) -> Outcome:
    """Run the schedule of a seed. Raises AssertionError with seed and history."""
    hook, sys.unraisablehook = sys.unraisablehook, lambda _unraisable: None
    # Coroutines that stopped with their machine end here, and some gather tasks at their end. If
    # there were no loop, asyncio would make one, and a later test would hear that nobody closed it.
    last_loop = SimulatedLoop()
    asyncio.set_event_loop(last_loop)
    try:
        outcome = _run(directory, seed)
        gc.collect()  # here nobody hears of them
    finally:
        sys.unraisablehook = hook
        asyncio.set_event_loop(None)
        last_loop.close()
    if outcome.failure is not None:
        raise AssertionError(outcome.failure)
    return outcome


def _run(directory: Path, seed: int) -> Outcome:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    world = World(directory, seed)
    failure = None
    try:
        world.run()
    except (Exception, PowerCut) as error:
        lines = "\n".join(world.history[-HISTORY_LINES:])
        trace = "" if isinstance(error, AssertionError) else traceback.format_exc()
        failure = f"seed {seed} after {world.loop.time():.4f} s: {error}\n{lines}\n{trace}"
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Outcome(
        failure,
        world.history,
        world.loop.turns,
        world.rules.committed_end,
        world.clients.acknowledged,
    )
