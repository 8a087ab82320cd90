"""A few brokers, clients and faults on simulated time: one run of one seed.

The brokers are `minibroker.broker.app.Broker`, whole and as they are. Time, sockets, threads, the
metadata tree and the disks are simulated. `plan` says what happens in a run, `faults` does it.
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

import minibroker.broker.server.server
import minibroker.broker.slices
from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_state, decode_topic
from minibroker.broker.worker import Worker
from minibroker.kafka.ids import TopicPartition
from tests.simulation.clients import Clients
from tests.simulation.faults import Faults
from tests.simulation.host import Host
from tests.simulation.loop import SimulatedClock, SimulatedLoop, SimulatedWorker
from tests.simulation.network import Network, SimulatedListener
from tests.simulation.plan import SETTINGS, TOPIC, UNCLEAN_TOPIC, plan_of
from tests.simulation.rules import Rules
from tests.simulation.tree import SimulatedTree
from tests.support.faulty_files import PowerCut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.codecs import PartitionState, TopicAssignment
    from tests.simulation.plan import Plan
    from tests.simulation.tree import TreeSession

SESSION_TIMEOUT_S = 1.0
FAULTS_S = 10.0
"""Simulated seconds with faults."""
TOPICS = paths.TOPICS + "/"
HISTORY_LINES = 60
"""Lines of the history that a failure shows."""
TURNS_MAX = 60_000
"""Turns of the loop, ten times those of a usual run. More of them are a loop that does nothing."""
CONVERGENCE_S = 60.0
"""Simulated seconds after which brokers without faults have to agree."""


class World:
    """One run. `run` raises AssertionError where a rule is broken."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.directory = directory
        self.plan: Plan = plan_of(seed)
        self.chance = random.Random(seed)
        self.history: list[str] = []
        self.loop = SimulatedLoop()
        self.network = Network(self.loop, seed)
        self.clock = SimulatedClock(self.loop)
        self.tree = SimulatedTree(self.network, self.clock)
        self.graveyard: list[Broker] = []
        """Brokers that were killed; kept so that nothing of them is cleaned up early."""
        self.hosts = [Host(self, broker_id) for broker_id in range(self.plan.broker_count)]
        self.rules = Rules(self)
        self.clients = Clients(self)
        self.faults = Faults(self)
        self.states: dict[TopicPartition, PartitionState] = {}
        """The states of all partitions, as the tree has them."""
        self.topic_ids: dict[str, bytes] = {}
        """Topic → id, as the tree has it."""
        self._assignments: dict[str, TopicAssignment] = {}
        self._zxid = -1
        """The last transaction of the tree that is in the states."""
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

    def _read_tree(self) -> None:
        """Take the states of partitions from the tree, where it changed."""
        tree = self.tree
        if tree.zxid == self._zxid:
            return
        self._zxid = tree.zxid
        states, assignments = {}, {}
        for path, node in tree.nodes.items():
            if not path.startswith(TOPICS) or not node.data:
                continue
            parts = path.split("/")
            if len(parts) == 4:
                assignments[parts[3]] = decode_topic(path, node.data)
            elif parts[-1] == "state":
                states[TopicPartition(parts[3], int(parts[5]))] = decode_state(path, node.data)
        self.states, self._assignments = states, assignments
        self.topic_ids = {name: topic.topic_id or b"" for name, topic in assignments.items()}

    def replicas_of(self, name: TopicPartition) -> list[int]:
        """Return the replicas of a partition, as the tree has them."""
        return self._assignments[name.topic].replicas[name.partition]

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
        self._read_tree()
        self.faults.find_cuts()
        if self.failure is not None and not isinstance(self.failure, PowerCut):
            self.is_failing = True
            raise self.failure
        try:
            assert self.loop.turns < TURNS_MAX, "the loop turns without end"
            self.rules.check()
        except AssertionError:
            self.is_failing = True
            raise

    def _end(self) -> None:
        self.is_failing = True
        for host in self.hosts:
            if host.is_running:
                host.kill()
            host.files.forget_pins()
        self.loop.abandon()

    async def _run(self) -> None:
        await self.begin()
        end_s = self.loop.time() + FAULTS_S
        while self.loop.time() < end_s:
            await self.loop.pass_time(
                self.chance.choice([0.02, 0.1, 0.5, 1.0]) * self.chance.random()
            )
            await self.faults.make_one()
        await self.heal()

    async def begin(self) -> None:
        """Start the brokers and, with topics, the clients."""
        for host in self.hosts:
            host.start()
        await self.until(self._know_each_other, "brokers start")
        await self._create_topics()
        self.clients.begin()

    async def _create_topics(self) -> None:
        plan = self.plan
        await self.create_topic(self.hosts[0], TOPIC, plan.partition_count)
        if plan.has_unclean_topic:
            await self.create_topic(
                self.hosts[0], UNCLEAN_TOPIC, 1, **{"unclean.leader.election.enable": "true"}
            )

    async def create_topic(self, host: Host, name: str, count: int, **configs: str) -> None:
        """Create a topic at a broker. Raises MinibrokerError."""
        assert host.machine is not None
        await self.loop.create_task(
            host.broker.cluster.create_topic(
                name, assignment=self.plan.assignment_of(count), configs={**SETTINGS, **configs}
            ),
            context=host.machine.context,
        )

    def _know_each_other(self) -> bool:
        return all(
            host.is_ready and len(host.broker.cluster.image.brokers) == len(self.hosts)
            for host in self.hosts
        )

    async def heal(self) -> None:
        """Repair everything; the brokers have to agree then."""
        self.note("everything is repaired")
        for host in self.hosts:
            host.files.cut_at = -1
        await self.until(
            lambda: self.faults.unsafe is None, "a broker without power leaves the ISR"
        )
        for way in list(self.network.cuts):
            self.network.mend(*way)
        self.network.slow.clear()
        for host in self.hosts:
            host.start_if_down()
            host.session.come_back()
        self.clients.stop()
        await self.until(self._is_converged, "the brokers agree")
        self.rules.check_at_end(self.clients)

    def _is_converged(self) -> bool:
        if not all(host.is_ready and host.is_settled for host in self.hosts):
            return False
        if any(
            host.broker.cluster.image.topics.keys() != self.topic_ids.keys() for host in self.hosts
        ):
            return False
        if self.faults.is_busy or not all(host.has_read_news for host in self.hosts):
            return False
        return all(map(self._agree, self.states))

    def _agree(self, name: TopicPartition) -> bool:
        """Return whether all replicas of a partition are in sync, and no other has a log."""
        state = self.states[name]
        moves = self._assignments[name.topic]
        if moves.adding or moves.removing or set(state.isr) != set(self.replicas_of(name)):
            return False
        ends = set()
        for host in self.hosts:
            partition = host.replica(name)
            if (partition is not None) != (host.broker_id in state.isr):
                return False
            if partition is not None:
                ends.add((partition.log_end_offset, partition.high_watermark))
                if partition.topic_id != self.topic_ids[name.topic]:
                    return False
                if partition.last_stable_offset != partition.log_end_offset:
                    return False
        return len(ends) == 1 and all(end == high_watermark for end, high_watermark in ends)

    async def until(self, holds: Any, event: str) -> None:
        """Return when `holds()` is true. Raises AssertionError after a minute, with `event`."""
        end_s = self.loop.time() + CONVERGENCE_S
        while not holds():
            if self.loop.time() > end_s:
                raise AssertionError(f"not within {CONVERGENCE_S} s: {event}; {self._describe()}")
            await self.loop.pass_time(0.05)

    def _describe(self) -> str:
        """Return the states, and each replica that is not as the others."""
        lines = []
        for name, state in self.states.items():
            if all(host.is_ready for host in self.hosts) and self._agree(name):
                continue
            lines.append(f"{name} {state}")
            lines += [
                f"{host.broker_id}: {p.role} {p.log_start_offset} … {p.log_end_offset}"
                f" {p.high_watermark} {p.last_stable_offset}"
                for host in self.hosts
                if (p := host.replica(name)) is not None
            ]
        down = [host.broker_id for host in self.hosts if not (host.is_ready and host.is_settled)]
        return "; ".join([*lines, f"not settled {down}", f"topics {sorted(self.topic_ids)}"])


@contextmanager
def _simulated(chance: random.Random) -> Iterator[None]:
    """Put the simulated parts in the places of sockets, threads and chance."""
    places = [
        (minibroker.broker.server.server, "ListeningSocket", SimulatedListener),
        (Worker, "_submit", SimulatedWorker.submit),
        (Worker, "close", SimulatedWorker.close),
        (minibroker.broker.slices, "perf_counter", lambda: 0.0),
        (os, "urandom", chance.randbytes),
    ]
    originals = [(owner, name, getattr(owner, name)) for owner, name, _ in places]
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
        for owner, name, real in originals:
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
    acknowledged: dict[TopicPartition, list[tuple[int, bytes]]]


def run_schedule(directory: Path, seed: int) -> Outcome:
    """Run the schedule of a seed. Raises AssertionError with seed and history."""
    gc.freeze()  # what is there before the run needs no looking at behind it
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
        gc.unfreeze()
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
        failure = (
            f"seed {seed} ({world.plan}) after {world.loop.time():.4f} s: {error}\n{lines}\n{trace}"
        )
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    return Outcome(
        failure,
        world.history,
        world.loop.turns,
        world.rules.committed_end,
        dict(world.clients.acknowledged),
    )
