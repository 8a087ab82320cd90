"""The figures behind the small plots of the console: totals now, and rates between two moments.

brokers of this process ─► measure (the loop, in slices) ─► Totals ─► row: rates and levels
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.cluster.internal_topics import TRANSACTIONS_TOPIC
from minibroker.broker.slices import TimeSlice
from minibroker.control.views import lag_parts, shards_of
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.app import Broker
    from minibroker.rig.node import Node

UNITS: Final = {
    "requests": "1/s",
    "produce_requests": "1/s",
    "fetch_requests": "1/s",
    "request_ms": "ms",
    "produce_ms": "ms",
    "bytes_in": "B/s",
    "bytes_out": "B/s",
    "records": "1/s",
    "log_bytes": "B",
    "connections": "",
    "groups": "",
    "open_transactions": "",
    "lag": "",
    "cpu": "%",
    "memory_bytes": "B",
    "loop_delay_ms": "ms",
}
"""Figure → its unit, in the order of a row."""
GROUPS_MAX: Final = 100
"""Groups whose lag is followed, by name."""
PARTITIONS_MAX: Final = 50_000
"""Offsets of groups that one sample reads."""
_STATM: Final = Path("/proc/self/statm")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


class Totals(NamedTuple):
    """The counts and levels of a moment."""

    at_s: float
    """On the machine's monotonic clock."""
    requests: dict[str, tuple[int, float]]
    """API → requests, and their times together in ms."""
    bytes_in: int
    bytes_out: int
    end_offsets: int
    log_bytes: int
    connections: int
    groups: int
    open_transactions: int
    cpu_s: float
    memory_bytes: int
    loop_delay_ms: float
    lag: dict[str, int]
    """Group → its lag, where it is known."""
    members: dict[str, int]


async def measure(nodes: Sequence[Node], loop_delay_ms: float) -> Totals:
    """Return the totals of the brokers that run, made in slices."""
    turn = TimeSlice()
    requests: dict[str, tuple[int, float]] = {}
    end_offsets = log_bytes = 0
    for node in nodes:
        broker = node.app
        for metrics in list(broker.services.metrics.requests.values()):
            times = metrics.by_name()["TotalTimeMs"]
            count, total_ms = requests.get(metrics.api_name, (0, 0.0))
            requests[metrics.api_name] = (count + times.count, total_ms + times.total_us / 1000)
            if turn.is_over:
                await turn.pause()
        for log in list(broker.logs.logs.values()):
            end_offsets += log.log_end_offset
            log_bytes += log.size_bytes
            if turn.is_over:
                await turn.pause()
    lag, members, groups = await _groups([node.app for node in nodes], turn)
    return Totals(
        at_s=time.monotonic(),
        requests=requests,
        bytes_in=sum(node.interceptor.connection_uses.request_bytes for node in nodes),
        bytes_out=sum(node.interceptor.connection_uses.answer_bytes for node in nodes),
        end_offsets=end_offsets,
        log_bytes=log_bytes,
        connections=sum(len(node.app.connections) for node in nodes),
        groups=groups,
        open_transactions=await _open_transactions([node.app for node in nodes], turn),
        cpu_s=time.process_time(),
        memory_bytes=_memory_bytes(),
        loop_delay_ms=loop_delay_ms,
        lag=lag,
        members=members,
    )


async def _groups(
    brokers: Sequence[Broker], turn: TimeSlice
) -> tuple[dict[str, int], dict[str, int], int]:
    """Return the lag and the members of the first groups by name, and the number of all."""
    shards = shards_of(brokers)
    lag: dict[str, int] = {}
    members: dict[str, int] = {}
    offsets_left = PARTITIONS_MAX
    for group_id in sorted(shards)[:GROUPS_MAX]:
        _, shard = shards[group_id]
        total = 0
        for part in lag_parts(brokers, shard, group_id):
            total += part
            offsets_left -= 1
            if turn.is_over:
                await turn.pause()
        if total >= 0:
            lag[group_id] = total
        group = shard.groups.get(group_id)
        members[group_id] = group.member_count if group is not None else 0
        if offsets_left <= 0:
            break
    return lag, members, len(shards)


async def _open_transactions(brokers: Sequence[Broker], turn: TimeSlice) -> int:
    count = 0
    for broker in brokers:
        if TRANSACTIONS_TOPIC not in broker.cluster.image.topics:
            continue
        try:
            for metadata in list(broker.services.transactions.all()):
                count += metadata.state.title == "Ongoing"
                if turn.is_over:
                    await turn.pause()
        except KafkaError:  # it is loading: the next sample knows
            continue
    return count


def _memory_bytes() -> int:
    """Return the memory of this process, 0 where the system does not say."""
    try:
        return int(_STATM.read_bytes().split()[1]) * _PAGE_BYTES
    except OSError:
        return 0


def row_of(earlier: Totals, now: Totals) -> list[float]:
    """Return the figures of `UNITS` between two moments: rates a second, means, and levels."""
    seconds = max(0.001, now.at_s - earlier.at_s)
    count, mean_ms = _requests(earlier, now, None)
    produce_count, produce_ms = _requests(earlier, now, "Produce")
    fetch_count, _ = _requests(earlier, now, "Fetch")
    figures = (
        count / seconds,
        produce_count / seconds,
        fetch_count / seconds,
        mean_ms,
        produce_ms,
        (now.bytes_in - earlier.bytes_in) / seconds,
        (now.bytes_out - earlier.bytes_out) / seconds,
        max(0, now.end_offsets - earlier.end_offsets) / seconds,
        now.log_bytes,
        now.connections,
        now.groups,
        now.open_transactions,
        sum(now.lag.values()),
        100 * (now.cpu_s - earlier.cpu_s) / seconds,
        now.memory_bytes,
        now.loop_delay_ms,
    )
    return [round(max(0.0, float(figure)), 3) for figure in figures]


def _requests(earlier: Totals, now: Totals, api: str | None) -> tuple[int, float]:
    """Return the number of requests of an API, or of all but long polls, and their mean in ms."""
    names = now.requests.keys() if api is None else {api} & now.requests.keys()
    count = 0
    total_ms = 0.0
    timed = 0
    for name in names:
        earlier_count, earlier_ms = earlier.requests.get(name, (0, 0.0))
        new = max(0, now.requests[name][0] - earlier_count)
        count += new
        if api is not None or name not in _WAITING:
            timed += new
            total_ms += max(0.0, now.requests[name][1] - earlier_ms)
    return count, total_ms / timed if timed else 0.0


_WAITING: Final = ("Fetch", "JoinGroup", "SyncGroup")
"""APIs whose requests wait for records or members: their times say nothing of the broker."""
