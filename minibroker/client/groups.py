"""Groups, as their coordinators list them, and their committed offsets.

A broker lists the groups that it coordinates. So their offsets are asked for there, many groups
one behind the other on one connection. A group that has moved since is looked for.

    brokers ─► groups of each ─► offsets of AT_ONCE groups, and of the next ones
    coordinator of a group ─► its offsets ─► commit

A deadline is a time of the monotonic clock, in seconds. Every call raises

    KafkaError     the coordinator refuses, or could not be asked before the deadline
    OSError        no broker answered before the deadline, or it takes no login
    ProtocolError  an answer is malformed, or leaves out a part that was asked for
    ConfigError    the settings of TLS

Source: Kafka AdminClient, ListConsumerGroupOffsetsHandler, AlterConsumerGroupOffsetsHandler;
KIP-396, KIP-447, KIP-518.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.coordinators import PAUSE_S, CoordinatorClient
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.messages.list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from minibroker.kafka.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from minibroker.client.client import Client
    from minibroker.kafka.ids import TopicPartition

LIST_VERSIONS: Final = (0, 5)
FETCH_VERSIONS: Final = (2, 7)
"""Versions of OffsetFetch that ask for all offsets of one group."""
NAMED_VERSION: Final = 1
"""The first version of OffsetFetch with the offsets that brokers keep, of named partitions."""
STABLE_VERSIONS: Final = (7, 7)
"""The one of these that waits for open transactions."""
COMMIT_VERSIONS: Final = (1, 9)
"""Versions of OffsetCommit that brokers keep themselves, and that name topics."""

AT_ONCE: Final = 50
"""Questions that are under way together."""
_OF_CONSUMERS: Final = ("consumer", "")
"""Types of groups that have members with subscriptions, and that have committed offsets alone."""
_UNREADY: Final = frozenset(
    {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)
"""Errors of a partition that are about the coordinator: the commit is asked for again."""


class GroupListing(NamedTuple):
    """A group of consumers, as its coordinator lists it."""

    name: str
    state: str
    """One of Kafka's names, as `PreparingRebalance`; empty if the broker is older than 2.6."""
    coordinator: tuple[str, int]


class GroupOffset(NamedTuple):
    """A committed offset of a group."""

    topic: str
    partition: int
    offset: int
    metadata: str


def list_groups(client: Client, deadline: float) -> list[GroupListing]:
    """Return the groups of all brokers, without those that connectors or share consumers have.

    `deadline`: for a coordinator that starts. Raises KafkaError, OSError, ProtocolError,
    ConfigError.
    """
    return [
        GroupListing(group.group_id, group.group_state, broker)
        for broker in client.brokers()
        for group in _groups_at(client, broker, deadline)
        if group.protocol_type in _OF_CONSUMERS
    ]


def _groups_at(client: Client, broker: tuple[str, int], deadline: float) -> list[ListedGroup]:
    while True:
        answer = client.ask(broker, ListGroupsRequest(), ListGroupsResponse, LIST_VERSIONS)
        code = ErrorCode(answer.error_code)
        if not code:
            groups: list[ListedGroup] = answer.groups
            return groups
        if not code.retriable or time.monotonic() >= deadline:
            raise KafkaError(code, "ListGroupsRequest")
        threading.Event().wait(PAUSE_S)


def committed_offsets_of(
    client: Client, groups: Iterable[GroupListing], deadline: float
) -> Iterator[tuple[str, list[GroupOffset]]]:
    """Yield each group with its committed offsets; one that is gone by now is left out.

    Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    of_brokers: dict[tuple[str, int], list[str]] = {}
    for group in groups:
        of_brokers.setdefault(group.coordinator, []).append(group.name)
    for broker, names in of_brokers.items():
        for start in range(0, len(names), AT_ONCE):
            batch = names[start : start + AT_ONCE]
            requests = [OffsetFetchRequest(group_id=name, topics=None) for name in batch]
            answers = client.ask_together(broker, requests, OffsetFetchResponse, FETCH_VERSIONS)
            for name, answer in zip(batch, answers, strict=True):
                try:
                    yield name, _offsets_or_moved(client, name, answer, deadline)
                except KafkaError as error:
                    if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
                        raise


def _offsets_or_moved(
    client: Client, name: str, answer: OffsetFetchResponse, deadline: float
) -> list[GroupOffset]:
    """Return the offsets of an answer; a group that has moved is asked for at its coordinator."""
    code = ErrorCode(answer.error_code)
    if not code:
        return _offsets(answer)
    if code.retriable:
        return committed_offsets(CoordinatorClient(client, name), deadline)
    raise KafkaError(code, f"group {name}")


def committed_offsets(
    group: CoordinatorClient, deadline: float, places: Iterable[TopicPartition] | None = None
) -> list[GroupOffset]:
    """Return the committed offsets of a group, without those of transactions that are open.

    `places`: of these partitions; None: of all, which a broker before 0.10.2 does not tell. Raises
    KafkaError, OSError, ProtocolError, ConfigError.
    """
    topics: dict[str, OffsetFetchRequestTopic] = {}
    for topic, partition in places or ():
        request_topic = topics.setdefault(topic, OffsetFetchRequestTopic(name=topic))
        request_topic.partition_indexes.append(partition)
    request = OffsetFetchRequest(
        group_id=group.name, topics=None if places is None else list(topics.values())
    )
    versions = FETCH_VERSIONS if places is None else (NAMED_VERSION, FETCH_VERSIONS[1])
    return _offsets(group.ask(request, OffsetFetchResponse, versions, deadline))


def stable_offsets(
    group: CoordinatorClient, place: TopicPartition, deadline: float
) -> list[GroupOffset]:
    """Return the committed offsets of a group; those of a transaction that ends are waited for.

    `place` is asked for by itself if the group has no offsets: then a pending one does not show.
    Raises KafkaError, OSError, ProtocolError, ConfigError.
    """
    alone = OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])
    for topics, places in ((None, ()), ([alone], (place,))):
        request = OffsetFetchRequest(group_id=group.name, topics=topics, require_stable=True)
        code_of = partial(_refusal, places)
        offsets = _offsets(
            group.ask(request, OffsetFetchResponse, STABLE_VERSIONS, deadline, code_of)
        )
        if offsets:
            return offsets
    return []


def commit_offsets(
    group: CoordinatorClient,
    offsets: Mapping[TopicPartition, int],
    deadline: float,
    *,
    member_id: str = "",
    generation: int = -1,
) -> None:
    """Commit offsets of a group, as a member, or from outside: Kafka takes them of a group without
    members.

    Raises KafkaError also where one partition is refused, as with UNKNOWN_MEMBER_ID of a group that
    has members; others may be committed. Raises OSError, ProtocolError, ConfigError.
    """
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in sorted(offsets.items()):
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
        )
    request = OffsetCommitRequest(
        group_id=group.name,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=partitions)
            for name, partitions in topics.items()
        ],
    )
    code_of = partial(_coordinator_error, offsets)
    answer = group.ask(request, OffsetCommitResponse, COMMIT_VERSIONS, deadline, code_of)
    for (topic, partition), part in by_partition(answer.topics).items():
        if part.error_code:
            raise KafkaError(ErrorCode(part.error_code), f"{topic}-{partition}")


def _coordinator_error(places: Iterable[TopicPartition], answer: OffsetCommitResponse) -> int:
    """Return an error that is about the coordinator; 0 if it has decided about each partition.

    Raises ProtocolError if it leaves one out: nobody knows whether that is committed.
    """
    parts = by_partition(answer.topics)
    codes = {part_of(parts, place).error_code for place in places}
    return next(iter(sorted(codes & _UNREADY)), ErrorCode.NONE)


def _offsets(answer: OffsetFetchResponse) -> list[GroupOffset]:
    return [
        GroupOffset(
            topic.name,
            partition.partition_index,
            partition.committed_offset,
            partition.metadata or "",
        )
        for topic in answer.topics
        for partition in topic.partitions
        if partition.committed_offset >= 0
    ]


def _refusal(places: Iterable[TopicPartition], answer: OffsetFetchResponse) -> int:
    """Return the error of the group, or of a partition; 0 if there is none.

    Raises ProtocolError if one is left out that was asked for by itself.
    """
    parts = by_partition(answer.topics)
    for code in (answer.error_code, *(part.error_code for part in parts.values())):
        if code:
            return int(code)
    for place in places:
        part_of(parts, place)
    return ErrorCode.NONE
