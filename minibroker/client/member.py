"""A member of a consumer group: it joins, has partitions, says that it lives, commits, leaves.

    join ─► JoinGroup ─► (the leader assigns) ─► SyncGroup ─► its partitions
              ▲                                                  │ a thread sends Heartbeat
              └──── `must_rejoin`: others came or left ◄─────────┘

The member speaks the classic protocol, which every broker from 0.9 on has, also for a group of
KIP-848. Partitions are given up before a rebalance (eager). The thread of heartbeats stops when the
reader has not asked for anything for `POLL_MAX_S`, so a reader that hangs loses its partitions.

Source: Kafka AbstractCoordinator, ConsumerCoordinator; KIP-62, KIP-394, KIP-814.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client import admin, groups
from minibroker.client.assignors import ASSIGNORS
from minibroker.client.client import CLIENT_ERRORS, Client
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.dialogue import VersionedRequest
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition, by_topic
from minibroker.kafka.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from minibroker.kafka.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from minibroker.kafka.protocol.messages.leave_group import (
    LeaveGroupRequest,
    LeaveGroupResponse,
    MemberIdentity,
)
from minibroker.kafka.protocol.messages.sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    ConsumerProtocolAssignment,
)
from minibroker.kafka.protocol.stored.consumer_protocol_assignment import (
    TopicPartition as AssignedTopic,
)
from minibroker.kafka.protocol.stored.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from minibroker.client.settings import ClientSettings

JOIN_VERSIONS: Final = (0, 9)
SYNC_VERSIONS: Final = (0, 5)
HEARTBEAT_VERSIONS: Final = (0, 4)
LEAVE_VERSIONS: Final = (0, 4)
_MEMBERS_FROM: Final = 3
"""Version of LeaveGroup from which on a request has a list of members."""

PROTOCOL_TYPE: Final = "consumer"
SESSION_MS: Final = 30_000
"""The longest session that brokers of 0.9 and 0.10.0 take."""
REBALANCE_MS: Final = 300_000
HEARTBEAT_S: Final = 3.0
POLL_MAX_S: Final = REBALANCE_MS / 1000
PATIENCE_S: Final = 60.0
"""Time for which a coordinator is looked for."""
_REJOIN: Final = frozenset(
    {
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.UNKNOWN_MEMBER_ID,
    }
)


class Membership(NamedTuple):
    """A member as its coordinator knows it."""

    member_id: str
    generation: int


class MemberSession:
    """A member of a group. One thread uses it; another one, of its own, sends heartbeats."""

    def __init__(self, settings: ClientSettings, group: str, topics: Sequence[str]) -> None:
        """Make a member that reads `topics`; `join` makes it known."""
        # A join is answered when every member has joined.
        patient = settings._replace(timeout_s=max(settings.timeout_s, POLL_MAX_S + 10))
        self._client = Client(patient)
        self._group = CoordinatorClient(self._client, group)
        self._topics = tuple(topics)
        self._heart_client = Client(settings)
        self._lock = threading.Lock()
        self._membership: Membership | None = None
        """Changed by the reader's thread, read by both; guarded by `_lock`."""
        self._member_id = ""
        """Owned by the reader's thread."""
        self._polled_s = time.monotonic()
        """When the reader last asked; written by its thread."""
        self._must_rejoin = threading.Event()
        self._is_closed = threading.Event()
        self._heart: threading.Thread | None = None

    @property
    def group(self) -> str:
        """Return the name of the group."""
        return self._group.name

    def must_rejoin(self) -> bool:
        """Return whether the partitions are to be given up and `join` is to be called again."""
        self._polled_s = time.monotonic()
        return self._must_rejoin.is_set()

    def join(self) -> list[TopicPartition]:
        """Join the group, or join it again; return the partitions that this member has now.

        Raises:
            KafkaError: the coordinator refuses, as with INCONSISTENT_GROUP_PROTOCOL where the other
                members have no assignor in common with this one.
            OSError, ProtocolError, ConfigError: no coordinator was there for `PATIENCE_S`.
        """
        self._set(None)
        while True:
            self._polled_s = time.monotonic()
            self._must_rejoin.clear()
            joined = self._ask_join()
            if joined is None:
                continue
            self._member_id = joined.member_id
            try:
                answer = self._ask_sync(joined)
            except KafkaError as error:
                if error.code not in _REJOIN:
                    raise
                if error.code == ErrorCode.UNKNOWN_MEMBER_ID:
                    self._member_id = ""
                continue
            self._set(Membership(joined.member_id, joined.generation_id))
            self._start_heart()
            if not answer.assignment:
                return []
            assignment = ConsumerProtocolAssignment.from_client(answer.assignment)
            return [
                TopicPartition(topic.topic, partition)
                for topic in assignment.assigned_partitions
                for partition in sorted(topic.partitions)
            ]

    def committed(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the committed offsets of the group in these partitions, those that it has.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        deadline = time.monotonic() + PATIENCE_S
        offsets = groups.committed_offsets(self._group, deadline, places)
        return {TopicPartition(each.topic, each.partition): each.offset for each in offsets}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets; return whether the group has taken them.

        It has not if this member was taken out of it meanwhile: then others read these records
        again. Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        if not offsets or self._membership is None:
            return not offsets
        deadline = time.monotonic() + PATIENCE_S
        try:
            groups.commit_offsets(
                self._group,
                offsets,
                deadline,
                member_id=self._membership.member_id,
                generation=self._membership.generation,
            )
        except KafkaError as error:
            if error.code not in _REJOIN:
                raise
            self._lose(error.code)
            return False
        return True

    def leave(self) -> None:
        """Leave the group, so that the others need not wait for the end of the session.

        It is done as well as it can be: a coordinator that is away takes the member out by itself.
        """
        self._is_closed.set()
        membership = self._membership
        self._set(None)
        if self._heart is not None:
            self._heart.join(HEARTBEAT_S)
        if not (membership or self._member_id):
            return
        member_id = membership.member_id if membership else self._member_id
        name = self._group.name

        def of_version(version: int) -> LeaveGroupRequest:
            if version >= _MEMBERS_FROM:
                return LeaveGroupRequest(
                    group_id=name, members=[MemberIdentity(member_id=member_id)]
                )
            return LeaveGroupRequest(group_id=name, member_id=member_id)

        request = VersionedRequest(LeaveGroupRequest, of_version)
        try:
            self._group.ask(request, LeaveGroupResponse, LEAVE_VERSIONS, time.monotonic())
        except CLIENT_ERRORS:
            return

    # Joining.

    def _ask_join(self) -> JoinGroupResponse | None:
        """Return the answer of a join, None where it has to be asked again with another id."""
        subscription = ConsumerProtocolSubscription(topics=list(self._topics)).to_bytes(0)
        request = JoinGroupRequest(
            group_id=self._group.name,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            member_id=self._member_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[
                JoinGroupRequestProtocol(name=name, metadata=subscription) for name in ASSIGNORS
            ],
        )
        deadline = time.monotonic() + PATIENCE_S
        answer = self._group.ask(
            request,
            JoinGroupResponse,
            JOIN_VERSIONS,
            deadline,
            lambda answer: 0 if answer.error_code in _IDS else int(answer.error_code),
        )
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            return None
        if answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
            return None
        joined: JoinGroupResponse = answer
        return joined

    def _ask_sync(self, joined: JoinGroupResponse) -> SyncGroupResponse:
        assignments: list[SyncGroupRequestAssignment] = []
        if joined.leader == joined.member_id and not joined.skip_assignment:
            assignments = self._assigned(joined)
        request = SyncGroupRequest(
            group_id=self._group.name,
            generation_id=joined.generation_id,
            member_id=joined.member_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=joined.protocol_name,
            assignments=assignments,
        )
        deadline = time.monotonic() + PATIENCE_S
        answer: SyncGroupResponse = self._group.ask(
            request, SyncGroupResponse, SYNC_VERSIONS, deadline
        )
        return answer

    def _assigned(self, joined: JoinGroupResponse) -> list[SyncGroupRequestAssignment]:
        """Return the assignment of each member.

        Raises OSError, ProtocolError (also for an assignor that no member offered), ConfigError.
        """
        topics_of = {
            member.member_id: frozenset(
                ConsumerProtocolSubscription.from_client(member.metadata).topics
            )
            for member in joined.members
        }
        topic_names = sorted(frozenset().union(*topics_of.values()))
        described = admin.describe(self._client, topic_names).topics
        counts = {
            name: topic.partition_count for name, topic in described.items() if not topic.error
        }
        assign = ASSIGNORS.get(str(joined.protocol_name))
        if assign is None:
            raise ProtocolError(
                f"the coordinator of group {self._group.name} chose assignor "
                f"{joined.protocol_name!r}, expected one of {', '.join(ASSIGNORS)}"
            )
        assigned = assign(topics_of, counts)
        return [
            SyncGroupRequestAssignment(member_id=member, assignment=_assignment_bytes(partitions))
            for member, partitions in assigned.items()
        ]

    # Heartbeats.

    def _set(self, membership: Membership | None) -> None:
        with self._lock:
            self._membership = membership

    def _lose(self, code: ErrorCode) -> None:
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            self._member_id = ""
        self._must_rejoin.set()

    def _start_heart(self) -> None:
        if self._heart is None:
            self._heart = threading.Thread(
                target=self._beat, name=f"group {self._group.name}", daemon=True
            )
            self._heart.start()

    def _beat(self) -> None:
        """Send heartbeats until the member leaves. The thread of heartbeats."""
        coordinator = CoordinatorClient(self._heart_client, self._group.name)
        while not self._is_closed.wait(HEARTBEAT_S):
            with self._lock:
                membership = self._membership
            is_hanging = time.monotonic() - self._polled_s > POLL_MAX_S
            if membership is None or is_hanging or self._must_rejoin.is_set():
                continue
            request = HeartbeatRequest(
                group_id=self._group.name,
                generation_id=membership.generation,
                member_id=membership.member_id,
            )
            try:
                coordinator.ask(
                    request, HeartbeatResponse, HEARTBEAT_VERSIONS, time.monotonic() + HEARTBEAT_S
                )
            except KafkaError as error:
                if error.code in _REJOIN:
                    self._must_rejoin.set()
            except CLIENT_ERRORS:
                continue  # the session lasts longer; the reader notices a broker that is away


_IDS: Final = frozenset({ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.UNKNOWN_MEMBER_ID})


def _assignment_bytes(partitions: Sequence[TopicPartition]) -> bytes:
    return ConsumerProtocolAssignment(
        assigned_partitions=[
            AssignedTopic(topic=topic, partitions=numbers)
            for topic, numbers in by_topic(partitions).items()
        ]
    ).to_bytes(0)
