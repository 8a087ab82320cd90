"""The calls that a broker's clock makes next, in words: what happens when a test moves the clock.

The words of a call are those of the function that its timer calls. A function without a row here
has its name.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.broker.groups.steps import Deadlines, TimerKind
from minibroker.broker.transactions.state import ONGOING
from minibroker.kafka.errors import KafkaError
from minibroker.rig.fault_interceptor import FaultInterceptor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.app import Broker
    from minibroker.broker.timers import Timer

TEXTS: Final = {
    "partitions.coordinator_runtime._Outcome._time_out": "a write of a coordinator times out",
    "partitions.housekeeping.CompactionCheck._look": "compaction: logs that are dirty",
    "partitions.housekeeping.FlushSchedule._begin": "logs are synced (flush.ms)",
    "partitions.housekeeping.Housekeeping._checkpoint": "checkpoints of the logs are written",
    "partitions.housekeeping.Housekeeping._remove_expired_producers": (
        "idle producers are forgotten"
    ),
    "partitions.housekeeping.RetentionCheck._begin": "retention: old segments are deleted",
    "partitions.housekeeping.SyncSchedule._begin": "logs are synced (flush.ms)",
    "server.listener.ListeningSocket._close_refused": "a connection beyond the rate is closed",
    "server.server.Server._abort_those_of": "connections of a closed listener end",
    "server.tls_transport.TlsTransport._handshake_timed_out": "a TLS handshake times out",
    "server.transport.ClientTransport._end_refused": "a refused login is answered",
    "server.transport.ClientTransport._end_throttle": "the delay of a client over its quota ends",
    "storage.compaction.cleaner.LogCleaner._timer_fired": "compaction: the next pass",
    "transactions.coordinator.TransactionCoordinator._abort_overdue": (
        "transactions that are open for too long are aborted"
    ),
    "transactions.coordinator.TransactionCoordinator._forget_expired": (
        "transactional ids that are not used are forgotten"
    ),
    "groups.coordinator.GroupCoordinator._expire": "offsets of groups that nobody uses expire",
    "cluster.leader_balance.LeaderBalancer._look": "leaders are balanced",
    "replication.isr.IsrKeeper._look": "replicas that lag leave the ISR",
    "worker.Worker.run_later": "old files of a log are deleted",
    "security.token_store.TokenStore._sweep_due": "expired delegation tokens are deleted",
    "security.sasl.key_set.KeySet._refresh": "keys of an identity provider are read again",
}
"""Module and name of a function, without `minibroker.broker.` → its words."""
_OF_MEMBERS: Final = {
    TimerKind.SESSION: "the session ends",
    TimerKind.REBALANCE: "the time to give up partitions ends",
    TimerKind.JOIN: "the time to join again ends",
    TimerKind.SYNC: "the time to ask for a share ends",
}
_PREFIX: Final = "minibroker.broker."
OPEN_MAX: Final = 1000
"""Open transactions that one look reads."""


class UpcomingCall(NamedTuple):
    """A call of a broker's clock."""

    in_ms: float
    """Time until it, by the broker's clock; less than 0: it is held."""
    text: str


def upcoming_calls(broker: Broker, limit: int) -> list[UpcomingCall]:
    """Return the calls that come next, soonest first, at most `limit`."""
    now_s = broker.clock.monotonic_s()
    calls = [
        UpcomingCall(1000 * (_due_s(timer) - now_s), text_of(timer.callback))
        for timer in broker.timers.upcoming(limit)
    ]
    calls += _transactions(broker)
    return sorted(calls)[:limit]


def _due_s(timer: Timer) -> float:
    deadlines, key = _deadline_of(timer.callback)
    return timer.deadline_s if deadlines is None else deadlines.due_s(key)


def _deadline_of(callback: Any) -> tuple[Deadlines | None, Any]:
    """Return the deadlines of a group and the key in them, if the callback is of one."""
    if isinstance(callback, partial):
        owner = getattr(callback.func, "__self__", None)
        if isinstance(owner, Deadlines):
            return owner, callback.args[0]
    return None, None


def text_of(callback: Any) -> str:
    """Return the words of a timer's function."""
    deadlines, key = _deadline_of(callback)
    if deadlines is not None:
        group_id, kind, member_id = key
        member = f", member {member_id}" if member_id else ""
        return f"group {group_id}{member}: {_OF_MEMBERS[kind]}"
    function = callback.func if isinstance(callback, partial) else callback
    owner = getattr(function, "__self__", None)
    if isinstance(owner, asyncio.Event):
        return "a wait ends"
    module = function.__module__ or type(owner).__module__  # a compiled method has none
    name = f"{module}.{function.__qualname__}".removeprefix(_PREFIX)
    if name.startswith(f"{FaultInterceptor.__module__}."):
        return "a fault's delay ends"
    return TEXTS.get(name, name.partition(".<locals>")[0].replace("._", ".").replace("_", " "))


def _transactions(broker: Broker) -> Iterator[UpcomingCall]:
    """Yield the time-outs of open transactions; a check that comes later acts on them."""
    if TRANSACTIONS_TOPIC not in broker.cluster.image.topics:
        return
    now_ms = broker.clock.now_ms()
    try:
        for number, metadata in enumerate(broker.services.transactions.all()):
            if number >= OPEN_MAX:
                return
            if metadata.state == ONGOING:
                yield UpcomingCall(
                    metadata.start_ms + metadata.timeout_ms - now_ms,
                    f"transaction {metadata.transactional_id} times out",
                )
    except KafkaError:  # it is loading: there is none yet that could end
        return
