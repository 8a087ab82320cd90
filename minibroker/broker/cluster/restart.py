"""The start of a broker in a cluster that may not have noticed that it was away.

A broker that was killed may be back before its session ends, or in the moment in which it ends: it
may even be the controller still. Then the states in the tree have an old word: this broker leads,
or is in sync. By that word followers would cut their logs to the length of its log, which may have
lost its end in a power cut. So, before it registers, the nodes of its last run go (those of its own
session at once, others when their session ends), and the controller has treated it as gone: others
lead what it led, and it is in no ISR with them. It comes back like any follower.

Kafka comes to the same: it never takes up a session, and leads nothing before the controller, which
treats a broker with a new epoch as gone first (KIP-380), tells it to.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_controller, decode_state
from minibroker.broker.cluster.tree import Delete, NoNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.cluster.context import ClusterContext
    from minibroker.broker.cluster.tree import Operation

IDLE_S: Final = 5.0
"""A controller needs milliseconds. One that does nothing for so long stands still itself."""
POLL_S: Final = 0.02


async def leave_last_run(context: ClusterContext) -> None:
    """Remove the nodes of this broker's last run, if this session owns them."""
    tree = context.tree
    operations: list[Operation] = []
    for path in (paths.CONTROLLER, paths.broker(context.broker_id)):
        try:
            data, stat = await tree.get(path)
        except NoNode:
            continue
        is_own = stat.ephemeral_owner == tree.session_id
        if path == paths.CONTROLLER:
            is_own = is_own and decode_controller(path, data) == context.broker_id
        if is_own:
            operations.append(Delete(path))
    if operations:
        await tree.multi(operations)


async def let_others_lead(context: ClusterContext, idle_s: float = IDLE_S) -> None:
    """Return when this broker, which is not registered, is in no ISR with one that is.

    Where no state changes for `idle_s`, it returns all the same.
    """
    states = await _known_states(context)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(idle_s) as limit:
            while states:
                old_count = len(states)
                states = await _shared_with_others(context, states)
                if len(states) < old_count:
                    limit.reschedule(loop.time() + idle_s)
                if states:
                    await asyncio.sleep(POLL_S)
    except TimeoutError:
        context.log.warning(
            "no controller has taken this broker out of the ISR of %d partitions", len(states)
        )


async def _known_states(context: ClusterContext) -> list[str]:
    """Return the paths of all partition states."""
    states: list[str] = []
    for name in await context.tree.children(paths.TOPICS):
        try:
            indexes = await context.tree.children(paths.partitions(name))
        except NoNode:
            continue  # it has no partition yet, or is being deleted
        states += [paths.partition_state(name, int(index)) for index in indexes]
    return states


async def _shared_with_others(context: ClusterContext, states: Sequence[str]) -> list[str]:
    """Return those of these states whose ISR has this broker and one that is registered."""
    names = await context.tree.children(paths.BROKER_IDS)
    other_ids = {int(name) for name in names if name.isdigit()} - {context.broker_id}
    shared_partitions = []
    for path, value in zip(states, await context.tree.get_many(states), strict=True):
        isr = decode_state(path, value[0]).isr if value is not None else []
        if context.broker_id in isr and not other_ids.isdisjoint(isr):
            shared_partitions.append(path)
    return shared_partitions
