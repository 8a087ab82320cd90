"""DeleteRecords in runs that are written down: which logs keep a confirmed deletion, and which may
lose it, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.kafka.ids import TopicPartition
from tests.simulation import world as world_module
from tests.simulation.clients import delete_records
from tests.simulation.connections import Connections
from tests.simulation.plan import TOPIC, Plan
from tests.simulation.world import World, run_schedule
from tests.support.memory import directory_in_memory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.simulation.host import Host

NAME = TopicPartition(TOPIC, 0)
PLAN = Plan(
    broker_count=4,
    partition_count=1,
    has_transactions=False,
    deletes_records=False,
    moves_replicas=False,
    has_unclean_topic=False,
    has_brief_topic=False,
    has_stale_requests=False,
    changes_configs=False,
)


@pytest.fixture
def directory(request: pytest.FixtureRequest) -> Iterator[Path]:
    """A directory for the disks of a run."""
    with directory_in_memory(request) as path:
        yield path / "run"


async def delete_first(world: World, offset: int) -> None:
    """Delete the records below `offset`, -1: all, in the logs of brokers 0, 1 and 2."""
    await world.begin()
    await world.until(lambda: world.rules.committed_end > 20, "records are committed")
    connections = Connections(world, "deletions")
    await delete_records(world, connections, NAME, offset)
    assert all(start_at(host) > 0 for host in world.hosts[:3])


def start_at(host: Host) -> int:
    """Return where the log of a broker starts, -1: it has none."""
    replica = host.replica(NAME)
    return -1 if replica is None else replica.log_start_offset


async def move(world: World, target: list[int]) -> None:
    """Move the partition, and wait until it is there and nowhere else."""
    controller = next(host for host in world.hosts if host.broker.cluster.is_controller)
    assert controller.machine is not None
    moving = controller.broker.cluster.reassignments.alter(TOPIC, 0, target)
    await world.loop.create_task(moving, context=controller.machine.context)
    await world.until(
        lambda: (
            world.states[NAME].isr == sorted(target)
            and [host.broker_id for host in world.hosts if start_at(host) >= 0] == sorted(target)
        ),
        f"the partition is at {target}",
    )


async def kill(world: World, hosts: list[Host]) -> None:
    """Kill brokers at once, and wait until they are back. They keep what they wrote."""
    for host in hosts:
        host.kill()
        world.tree.expire(host.session.session_id)
    for host in hosts:
        host.start()
    await world.until(lambda: all(host.is_ready for host in hosts), "the brokers are back")


def test_a_log_that_is_made_anew_starts_where_its_leader_does(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seed 5237: the replica of broker 0 goes and comes back. Meanwhile all others are killed, and
    have records again that were deleted: their starts stand in checkpoints. Broker 0 gets them.
    """

    async def script(world: World) -> None:
        await delete_first(world, 15)
        await move(world, [1, 2, 3])
        await kill(world, world.hosts[1:])
        await move(world, [0, 1, 2])
        assert [start_at(host) for host in world.hosts[:3]] == [0, 0, 0]
        await world.heal()

    monkeypatch.setattr(world_module, "plan_of", lambda _seed: PLAN)
    monkeypatch.setattr(World, "_run", script)
    assert run_schedule(directory, 0).committed_end > 20


def test_a_log_that_forgets_a_deletion_is_seen(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(world: World) -> None:
        await delete_first(world, -1)
        replica = world.hosts[2].replica(NAME)
        assert replica is not None
        replica.log.log_start_offset = 0
        await world.heal()

    monkeypatch.setattr(world_module, "plan_of", lambda _seed: PLAN)
    monkeypatch.setattr(World, "_run", script)
    with pytest.raises(AssertionError, match="are deleted, and the log of broker 2 starts at 0"):
        run_schedule(directory, 0)
