"""The reading half of Fetch: one pass over the partitions that a request asks for.

`fetch` makes the pass, decides whether to wait and builds the answer; here each partition is read,
within the limits of the request, into the part of the answer that is its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.handlers.reads.preferred_replica import NO_REPLICA, preferred_replica
from minibroker.broker.partitions.cold_reads import ColdError
from minibroker.broker.partitions.partition import LOG_END, READ_COMMITTED
from minibroker.broker.partitions.replicas import FollowerId
from minibroker.broker.security.acls import CLUSTER_NAME, Operation, ResourceType
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, answer_error
from minibroker.kafka.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    PartitionData,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.partitions.fetch_session import (
        FetchContext,
        FetchPartition,
        FetchResult,
    )
    from minibroker.broker.partitions.partition import Partition, ReadBounds
    from minibroker.broker.quotas.replication_quota import ReplicationQuota
    from minibroker.kafka.protocol.messages.fetch import FetchRequest

_BYTES_MAX: Final = 2**31 - 1
_FOLLOWERS_SINCE: Final = 11
"""The first version in which a consumer reads from any replica."""
STEP_PARTITIONS: Final = 16
"""Partitions that one step of a large Fetch reads or answers: some 0.2 ms."""
_NO_RECORDS: Final = memoryview(b"")
# Kafka sorts these out before it reads; they do not end the wait for the other partitions.
_KNOWN_BEFORE_READING: Final = frozenset(
    (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    )
)


class FetchPass:
    """One request on its way: what to read, and what the last pass over the partitions gave."""

    __slots__ = (
        "allowed",
        "bytes_read",
        "cold",
        "context",
        "failed",
        "follower",
        "is_at_end",
        "is_new",
        "isolation_level",
        "limit_bytes",
        "needs_leader",
        "rack",
        "readable_count",
        "request",
        "results",
        "session",
        "throttled_bytes",
    )

    def __init__(
        self, context: RequestContext, request: FetchRequest, session: FetchContext
    ) -> None:
        self.context = context
        self.request = request
        self.session = session
        self.follower = follower_of(request)
        """The broker that fetches, None for a consumer."""
        self.allowed: dict[str, bool] | None = None
        """Topic → whether the client may read it, as it was when the request came; None without an
        authorizer."""
        if context.services.authorizer is not None:
            self.allowed = {}
        self.needs_leader = self.follower is not None or context.version < _FOLLOWERS_SINCE
        config = context.services.config
        self.rack = ""
        """The rack of a consumer that may be sent to a follower there, "" for no such consumer."""
        if not self.needs_leader and config.replica_selector_class:
            self.rack = request.rack_id
        self.is_new = True
        """Until it waits: what a follower has is noted once."""
        self.isolation_level = request.isolation_level if self.follower is None else LOG_END
        limit = request.max_bytes if context.version >= 3 else _BYTES_MAX
        self.limit_bytes = min(limit, config.fetch_max_bytes)
        quotas = context.services.quotas
        if (
            quotas.is_active
            and self.follower is None
            and (window := quotas.fetch_bytes_max(context.quota_client)) is not None
        ):
            # More than a client may have in all its windows would be refused for ever.
            self.limit_bytes = min(self.limit_bytes, window)
        self.results: list[FetchResult] = []
        self.bytes_read = 0
        self.failed = False
        self.is_at_end = True
        """Is each partition asked for from its end on? Then nothing was left to read."""
        self.readable_count = 0
        self.cold: list[ColdError] = []
        """Ranges that the pass met outside memory: nothing was read there."""
        self.throttled_bytes = 0
        """Size of the answer's throttled partitions, for a follower."""

    @property
    def throttle(self) -> ReplicationQuota | None:
        """Return the throttle of what this fetch gets: of a follower, where there is any."""
        if self.follower is None:
            return None
        quota = self.context.services.replication_quotas.leader
        return quota if quota.is_active else None

    def is_held(self, partition: Partition) -> bool:
        """Return whether a follower gets no records now: the partition is throttled, too much was
        sent, and the follower is not in sync. Source: Kafka ReplicaManager.shouldLeaderThrottle.
        """
        quota = self.throttle
        if quota is None or not quota.is_throttled(partition.topic, partition.index):
            return False
        assert self.follower is not None
        replicas = partition.replicas
        is_in_sync = replicas is not None and self.follower.broker_id in replicas.isr
        return not is_in_sync and quota.is_exceeded


def follower_of(request: FetchRequest) -> FollowerId | None:
    """Return the broker that sends this fetch, None for a consumer."""
    state = request.replica_state
    if state is not None:
        return FollowerId(state.replica_id, state.replica_epoch) if state.replica_id >= 0 else None
    return FollowerId(request.replica_id, -1) if request.replica_id >= 0 else None


def read_all(fetch: FetchPass) -> None:
    """Make one pass over the partitions at once (`read_steps`)."""
    for _ in read_steps(fetch, resident_only=False):
        pass


def read_steps(fetch: FetchPass, *, resident_only: bool) -> Iterator[None]:
    """Make one pass over the partitions in steps: fill `results`, `bytes_read` and `failed`.

    With `resident_only` nothing is read that is not in memory; it is noted in `cold`. Partitions
    that do not exist stand behind the others, as in Kafka's answer.
    """
    results: list[FetchResult] = []
    unknown: list[FetchResult] = []
    fetch.bytes_read = 0
    fetch.failed = False
    fetch.is_at_end = True
    fetch.cold = []
    left_bytes = fetch.limit_bytes
    min_one_batch = fetch.context.version >= 3
    image = fetch.context.services.cluster.image
    for count, (key, place) in enumerate(fetch.session, 1):
        if count % STEP_PARTITIONS == 0:
            yield
        place.read_to_end_of = None
        if place.topic is None:
            image_topic = image.topic_by_id.get(place.topic_id)
            place.topic = image_topic.name if image_topic is not None else None
        data = PartitionData(partition_index=place.index, high_watermark=-1, records=_NO_RECORDS)
        try:
            size = _read(fetch, place, data, left_bytes, min_one_batch, resident_only=resident_only)
        except ColdError as cold:
            fetch.cold.append(cold)
            continue
        except Exception as error:
            code = answer_error(error, f"reading {place.topic}-{place.index}").code
            if code in _KNOWN_BEFORE_READING:
                data.error_code = int(code)
                unknown.append((key, place, data))
                continue
            _fail(fetch, data, code)
            size = 0
        if size:
            min_one_batch = False
            fetch.bytes_read += size
        left_bytes = max(0, left_bytes - size)  # also where the request's own limit is negative
        results.append((key, place, data))
    fetch.readable_count = len(results)
    fetch.results = results + unknown


def _read(
    fetch: FetchPass,
    place: FetchPartition,
    data: PartitionData,
    left_bytes: int,
    min_one_batch: bool,
    *,
    resident_only: bool,
) -> int:
    """Read one partition into `data`; returns the bytes read. Raises KafkaError, ColdError."""
    context = fetch.context
    if fetch.allowed is not None:
        _check_permission(fetch, fetch.allowed, place.topic)
    partition = replica_for(fetch, place)
    if resident_only:
        partition.require_producers()  # for the last stable offset, whatever the answer is
    if fetch.rack:
        data.preferred_read_replica = preferred_replica(
            context, partition, fetch.rack, place.fetch_offset
        )
        if data.preferred_read_replica != NO_REPLICA:
            _note_bounds(partition.bounds(), data)
            fetch.failed = True  # like an error, it is told at once
            return 0
    if place.last_fetched_epoch >= 0 and _diverges(partition, place, data):
        fetch.failed = True  # like an error, it is told at once
        return 0
    bounds = partition.bounds()
    _, last_stable_offset, end_offset = bounds
    if fetch.isolation_level == READ_COMMITTED:
        end_offset = last_stable_offset
    elif fetch.isolation_level == LOG_END:
        end_offset = partition.log_end_offset
    log_read = None
    if place.fetch_offset != end_offset:
        fetch.is_at_end = False
        log_read = partition.read_below(
            place.fetch_offset,
            min(place.max_bytes, left_bytes),
            end_offset=end_offset,
            min_one_batch=min_one_batch,
            resident_only=resident_only,
        )
    elif _may_watch(fetch, partition):
        place.read_to_end_of = partition
    if fetch.follower is not None and fetch.is_new:
        context.services.partitions.follower_fetched(
            partition, fetch.follower, place.fetch_offset, place.follower_start_offset
        )
        bounds = partition.bounds()  # the follower's offset may have moved the high watermark
    _note_bounds(bounds, data)
    if fetch.isolation_level == READ_COMMITTED:
        data.aborted_transactions = (
            []
            if log_read is None or place.fetch_offset >= end_offset
            else [
                AbortedTransaction(producer_id=producer_id, first_offset=first_offset)
                for producer_id, first_offset, _, _ in partition.aborted_transactions(
                    place.fetch_offset, log_read
                )
            ]
        )
    if (
        log_read is None
        or (log_read.is_first_batch_cut and context.version >= 3)
        or (fetch.follower is not None and fetch.is_held(partition))
    ):
        return 0
    data.records = log_read.records
    return len(log_read.records)


def _check_permission(fetch: FetchPass, allowed: dict[str, bool], topic: str | None) -> None:
    """Raise KafkaError if the client may not read the topic. A follower may read each or none."""
    if fetch.follower is not None:
        topic = ""
    elif topic is None:
        return
    is_allowed = allowed.get(topic)
    if is_allowed is None:
        context = fetch.context
        if fetch.follower is not None:
            is_allowed = context.authorize(
                Operation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME
            )
        else:
            readable = context.readable
            # The call takes longer than all the rest here, so a known yes goes without it.
            is_allowed = (readable is not None and topic in readable) or context.authorize_once(
                readable, Operation.READ, ResourceType.TOPIC, topic
            )
        allowed[topic] = is_allowed
    if not is_allowed:
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _may_watch(fetch: FetchPass, partition: Partition) -> bool:
    """Return whether a session may leave this partition alone until it changes.

    A consumer that may be sent to a follower is looked at each time, because followers catch up,
    and so is a follower until it is in sync.
    """
    if fetch.follower is None:
        return not fetch.rack
    replicas = partition.replicas
    return replicas is not None and fetch.follower.broker_id in replicas.isr


def _note_bounds(bounds: ReadBounds, data: PartitionData) -> None:
    """Note where the partition begins and ends for readers."""
    data.log_start_offset, data.last_stable_offset, data.high_watermark = bounds
    data.aborted_transactions = None


def replica_for(fetch: FetchPass, place: FetchPartition) -> Partition:
    """Return the partition: led here, or for a consumer that knows followers, any replica. Raises
    KafkaError in Kafka's order.
    """
    if place.topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    partitions = fetch.context.services.partitions
    partition = partitions.hosted(place.topic, place.index)
    if fetch.context.version >= 13 and partition.topic_id != place.topic_id:
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
    if fetch.needs_leader:
        partitions.check_leads(partition, place.current_leader_epoch)
        if fetch.follower is not None:
            partitions.check_has_replica(
                partition, fetch.follower.broker_id, place.current_leader_epoch
            )
    else:
        partition.check_leader_epoch(place.current_leader_epoch)
    return partition


def _diverges(partition: Partition, place: FetchPartition, data: PartitionData) -> bool:
    """KIP-595: the reader's last epoch ended here before the offset that it wants.

    Raises KafkaError OFFSET_OUT_OF_RANGE for an offset before the log's start, whatever the epoch.
    """
    epoch, end_offset = partition.end_offset_for_epoch(place.last_fetched_epoch)
    if end_offset < 0 or place.fetch_offset < partition.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if epoch >= place.last_fetched_epoch and end_offset >= place.fetch_offset:
        return False
    data.diverging_epoch = EpochEndOffset(epoch=epoch, end_offset=end_offset)
    _note_bounds(partition.bounds(), data)
    return True


def _fail(fetch: FetchPass, data: PartitionData, code: ErrorCode) -> None:
    if code == ErrorCode.KAFKA_STORAGE_ERROR and fetch.context.version <= 5:
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER  # clients of that age do not know the other
    data.error_code = int(code)
    data.records = _NO_RECORDS
    data.aborted_transactions = None
    fetch.failed = True
