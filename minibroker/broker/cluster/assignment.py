"""The assignment of replicas to brokers: Kafka's round robin, with and without racks; pure.

Without racks: partition p starts at broker (start + p) of the list sorted by id; its followers come
at a shift that grows by one each time the list is walked once. With racks: the same over a list
in which racks alternate, and a broker is skipped while a rack without a replica is left.

Source: KIP-36; Kafka's AdminUtils.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _pick(count: int) -> int:
    """Return a random number below `count`. Broker counts are tiny beside 2**32, so the bias is
    too.
    """
    return int.from_bytes(os.urandom(4), "big") % count if count > 1 else 0


def assign_replicas(
    racks: Mapping[int, str | None],
    partition_count: int,
    replication_factor: int,
    *,
    start_index: int | None = None,
    first_partition: int = 0,
    pick: Callable[[int], int] = _pick,
) -> list[list[int]]:
    """Return the replicas of each new partition, preferred leader first.

    Args:
        racks: broker id → rack (or None) of every broker that may hold a replica.
        start_index: place in the broker list where partition 0 starts; None: `pick` one.
        first_partition: index of the first new partition (partitions added to a topic).

    Raises KafkaError: INVALID_PARTITIONS, INVALID_REPLICATION_FACTOR.
    """
    if partition_count <= 0:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS, "Number of partitions must be larger than 0."
        )
    if replication_factor <= 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR, "Replication factor must be larger than 0."
        )
    if replication_factor > len(racks):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Replication factor: {replication_factor} larger than available brokers: "
            f"{len(racks)}.",
        )
    if len(racks) == 1:
        return [list(racks)] * partition_count
    has_racks = any(rack is not None for rack in racks.values())
    if has_racks and any(rack is None for rack in racks.values()):
        raise KafkaError(
            ErrorCode.UNKNOWN_SERVER_ERROR,
            "Not all brokers have rack information for replica rack aware assignment.",
        )
    brokers = _alternate_racks(racks) if has_racks else sorted(racks)
    rack_count = len(set(racks.values())) if has_racks else 1
    start = pick(len(brokers)) if start_index is None else start_index
    shift = pick(len(brokers)) if start_index is None else start_index
    assignment = []
    for partition in range(first_partition, first_partition + partition_count):
        if partition > 0 and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        if has_racks:
            replicas = _spread(brokers, racks, first, shift * rack_count, replication_factor)
        else:
            replicas = [brokers[first]]
            for follower in range(replication_factor - 1):
                replicas.append(brokers[_place(first, shift, follower, len(brokers))])
        assignment.append(replicas)
    return assignment


def _place(first: int, shift: int, follower: int, broker_count: int) -> int:
    """Return the place of follower number `follower` in the broker list; never the leader's own."""
    return (first + 1 + (shift + follower) % (broker_count - 1)) % broker_count


def _alternate_racks(racks: Mapping[int, str | None]) -> list[int]:
    """Return the broker ids, one of each rack in turn: racks in order of name, ids in order within
    a rack.
    """
    by_rack: dict[str, list[int]] = {}
    for broker_id in sorted(racks):
        by_rack.setdefault(racks[broker_id] or "", []).append(broker_id)
    order: list[int] = []
    for turn in range(max(len(ids) for ids in by_rack.values())):
        order.extend(by_rack[rack][turn] for rack in sorted(by_rack) if turn < len(by_rack[rack]))
    return order


def _spread(
    brokers: list[int],
    racks: Mapping[int, str | None],
    first: int,
    shift: int,
    replication_factor: int,
) -> list[int]:
    replicas = [brokers[first]]
    used_racks = {racks[brokers[first]]}
    rack_count = len(set(racks.values()))
    step = 0
    while len(replicas) < replication_factor:
        broker_id = brokers[_place(first, shift, step, len(brokers))]
        step += 1
        rack = racks[broker_id]
        rack_is_fresh = rack not in used_racks or len(used_racks) == rack_count
        if rack_is_fresh and broker_id not in replicas:
            replicas.append(broker_id)
            used_racks.add(rack)
    return replicas
