"""The faults of a run, and other things that happen to brokers, at random.

Power cuts are limited, because Kafka's replication without KIP-966 does not survive all of them
either. The power of a broker is cut only while another running broker is in the ISR of each of its
partitions and the brokers know the tree as it is. The broker comes back when it has left all ISRs.
Until then no other broker is stopped or cut off from the tree.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from minibroker.broker.cluster.paths import DEFAULT_ENTITY
from minibroker.kafka.errors import MinibrokerError
from tests.simulation.loop import CLIENT
from tests.simulation.plan import BRIEF_PARTITIONS, BRIEF_TOPIC, REPLICAS, TOPIC
from tests.simulation.stale_controller import StaleController

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine

    from tests.simulation.host import Host
    from tests.simulation.loop import Machine
    from tests.simulation.world import World

SESSION_TIMEOUT_S = 1.0


class Faults:
    """The faults of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.chance = world.chance
        self.unsafe: Host | None = None
        """The broker that lost power and has not left all ISRs."""
        self._tasks: dict[asyncio.Task[None], Machine] = {}
        """Requests of an administrator that are on their way, and the process that does them."""
        self._choices: list[Callable[[Host], Awaitable[None]]] = [
            *(self._kill, self._kill, self._cut_power, self._cut_power, self._stop, self._bounce),
            *(self._cut_link, self._cut_link, self._mend_links, self._mend_links, self._reset),
            *(self._slow_link, self._cut_off, self._cut_off, self._elect, self._move_controller),
        ]
        """Faults to choose from; one that is named twice happens more often."""
        plan = world.plan
        if plan.moves_replicas:
            self._choices += [self._move_replicas, self._move_replicas, self._cancel_moves]
        if plan.has_brief_topic:
            self._choices += [self._create_or_delete] * 3
        if plan.changes_configs:
            self._choices += [self._change_config] * 3
        if plan.has_stale_requests:
            stale = StaleController(world)
            self._choices += [stale.look, stale.look, stale.send, stale.send]

    @property
    def is_busy(self) -> bool:
        """Return whether an administrator waits for something."""
        return any(
            not task.done() and not machine.is_stopped for task, machine in self._tasks.items()
        )

    async def make_one(self) -> None:
        """Do one of them to one broker."""
        host = self.chance.choice(self._world.hosts)
        await self.chance.choice(self._choices)(host)

    def find_cuts(self) -> None:
        """Stop the machines whose power went in the middle of a call."""
        world = self._world
        for host in world.hosts:
            if host.files.is_cut and host.is_running:
                is_safe = self._is_safe_without(host)
                event = "the power is cut" if is_safe else "it is killed"
                world.note(f"broker {host.broker_id}: {event} in the middle of a call")
                host.cut_power(self.chance, keeps_all=not is_safe)
                if not is_safe:
                    self.unsafe = None
                    world.later(self.chance.uniform(0.05, 3.0), host.start_if_down)

    # Brokers.

    def _may_stop(self, host: Host) -> bool:
        return host.is_ready and self.unsafe is None

    async def _kill(self, host: Host) -> None:
        if self._may_stop(host):
            self._world.note(f"broker {host.broker_id} is killed")
            host.kill()
            self._world.later(self.chance.uniform(0.05, 3.0), host.start_if_down)

    async def _bounce(self, host: Host) -> None:
        """Kill a broker and start it at once, before the others hear that it was gone."""
        if self._may_stop(host):
            self._world.note(f"broker {host.broker_id} is killed and starts at once")
            session = host.session
            host.kill()
            self._world.tree.expire(session.session_id)
            host.start()

    async def _cut_power(self, host: Host) -> None:
        """Cut the power now, or at one of the next calls of files."""
        if not self._may_stop(host) or not self._is_safe_without(host):
            return
        self.unsafe = host
        if self.chance.random() < 0.5:
            self._world.note(f"broker {host.broker_id} loses power")
            host.cut_power(self.chance)
        else:
            self._world.note(f"broker {host.broker_id} loses power at one of its next calls")
            host.files.cut_at = host.files.call_count + self.chance.randrange(1, 30)
        self._world.later(0.05, self._wait_for_departure, host)

    def _is_safe_without(self, host: Host) -> bool:
        """Return whether another running broker is in each ISR that this one is in, and stays in
        it.
        """
        world = self._world
        if not all(other_host.is_settled for other_host in world.hosts if other_host.is_running):
            return False
        others = {
            other_host.broker_id
            for other_host in world.hosts
            if other_host.is_ready and other_host is not host
        }
        return all(
            host.broker_id not in state.isr or not others.isdisjoint(state.isr)
            for state in world.states.values()
        )

    def _wait_for_departure(self, host: Host) -> None:
        """Have the broker start again once it has left all ISRs.

        A topic that is being deleted waits for the broker itself.
        """
        if self.unsafe is not host:
            return
        is_out = all(
            host.broker_id not in state.isr
            for name, state in self._world.states.items()
            if name.topic != BRIEF_TOPIC
        )
        if not host.is_running and is_out:
            self.unsafe = None
            self._world.later(self.chance.uniform(0.05, 2.0), host.start_if_down)
            return
        if host.is_running and self._is_over_for(host):
            host.files.cut_at = -1
            self.unsafe = None
            return
        self._world.later(0.05, self._wait_for_departure, host)

    def _is_over_for(self, host: Host) -> bool:
        """Return whether the cut that a running broker waits for does not come any more, because
        it would not be safe now.
        """
        return host.files.cut_at < 0 or not self._is_safe_without(host)

    async def _stop(self, host: Host) -> None:
        if self._may_stop(host):
            self._world.note(f"broker {host.broker_id} stops")
            stopping = self._world.loop.create_task(host.stop())
            await asyncio.wait([stopping], timeout=15)
            if not stopping.done():
                self._world.note(f"broker {host.broker_id} does not stop, and is killed")
                host.kill()
            self._world.later(self.chance.uniform(0.05, 2.0), host.start_if_down)

    async def _cut_link(self, host: Host) -> None:
        other = self.chance.choice(
            [candidate for candidate in self._world.hosts if candidate is not host]
        )
        ways = [(host.broker_id, other.broker_id), (other.broker_id, host.broker_id)]
        if self.chance.random() < 0.5:
            del ways[1]
        self._world.note(f"nothing arrives: {ways}")
        self._world.network.cuts.update(ways)

    async def _mend_links(self, _host: Host) -> None:
        if self._world.network.cuts:
            self._world.note("links are mended")
        for way in sorted(self._world.network.cuts):
            self._world.network.mend(*way)
        self._world.network.slow.clear()

    async def _reset(self, host: Host) -> None:
        other = self.chance.choice(
            [CLIENT, *(h.broker_id for h in self._world.hosts if h is not host)]
        )
        self._world.note(f"connections between {host.broker_id} and {other} are reset")
        self._world.network.reset(host.broker_id, other)

    async def _slow_link(self, host: Host) -> None:
        other = self.chance.choice(
            [candidate for candidate in self._world.hosts if candidate is not host]
        )
        self._world.note(f"slow: {host.broker_id} to {other.broker_id}")
        self._world.network.slow.add((host.broker_id, other.broker_id))

    async def _cut_off(self, host: Host) -> None:
        """Cut a broker off from the tree, for so long that its session may expire."""
        if not host.is_ready or host.session.is_away or self.unsafe is not None:
            return
        session = host.session
        away_s = self.chance.choice([0.1, 0.5, 1.5, 3.0]) * self.chance.uniform(0.5, 1.5)
        self._world.note(f"broker {host.broker_id} is cut off from the tree for {away_s:.2f} s")
        session.cut_off()
        if away_s > SESSION_TIMEOUT_S:
            self._world.later(SESSION_TIMEOUT_S, session.expire_if_away)
        self._world.later(away_s, session.come_back)

    # An administrator.

    def _ask(self, host: Host, asking: Coroutine[Any, Any, object], event: str) -> None:
        """Have a broker do something, as a request that nobody waits for."""
        assert host.machine is not None
        world = self._world
        world.note(f"{event} at broker {host.broker_id}")

        async def ask() -> None:
            try:
                await asking
            except MinibrokerError as error:
                world.note(f"not done: {event}: {error}")

        task = world.loop.create_task(ask(), context=host.machine.context)
        self._tasks[task] = host.machine
        task.add_done_callback(world.note_end, context=world.network.context)

    @property
    def _controller(self) -> Host | None:
        """Return a broker that believes that it is the controller."""
        controllers = [
            host
            for host in self._world.hosts
            if host.is_ready and host.broker.cluster.is_controller
        ]
        return self.chance.choice(controllers) if controllers else None

    async def _elect(self, _host: Host) -> None:
        """Ask the controller for a preferred leader."""
        host = self._controller
        if host is not None and self._world.states:
            name = self.chance.choice(list(self._world.states))
            election = host.broker.cluster.leadership.elect(*name, unclean=False)
            self._ask(host, election, f"preferred election of {name}")

    async def _move_controller(self, host: Host) -> None:
        """Make another broker the controller, while the one before does not know it."""
        if host.is_ready:
            self._ask(host, host.broker.cluster.become_controller(), "controller")

    async def _move_replicas(self, _host: Host) -> None:
        """Ask the controller for other replicas of a partition, or for another order of them."""
        host = self._controller
        if host is not None:
            index = self.chance.randrange(self._world.plan.partition_count)
            target = self.chance.sample(range(len(self._world.hosts)), REPLICAS)
            self._ask(
                host,
                host.broker.cluster.reassignments.alter(TOPIC, index, target),
                f"move of {TOPIC}-{index} to {target}",
            )

    async def _cancel_moves(self, _host: Host) -> None:
        host = self._controller
        if host is not None:
            index = self.chance.randrange(self._world.plan.partition_count)
            cancelling = host.broker.cluster.reassignments.alter(TOPIC, index, None)
            self._ask(host, cancelling, f"end of the move of {TOPIC}-{index}")

    async def _change_config(self, host: Host) -> None:
        """Give the topic, or all brokers, another limit of a batch's size; none is ever reached."""
        if host.is_ready:
            entity = self.chance.choice([("topics", TOPIC), ("brokers", DEFAULT_ENTITY)])
            key = {"topics": "max.message.bytes", "brokers": "message.max.bytes"}[entity[0]]
            size = str(self.chance.randrange(1_000_000, 2_000_000))
            changing = host.broker.cluster.alter_config(*entity, {key: size})
            self._ask(host, changing, f"{key}={size} for {entity[0]}")

    async def _create_or_delete(self, host: Host) -> None:
        """Create the topic that does not stay, or delete it."""
        if not host.is_ready:
            return
        if BRIEF_TOPIC in self._world.topic_ids:
            self._ask(host, host.broker.cluster.delete_topic(BRIEF_TOPIC), "deletion of a topic")
        else:
            creating = self._world.create_topic(host, BRIEF_TOPIC, BRIEF_PARTITIONS)
            self._ask(host, creating, "creation of a topic")
