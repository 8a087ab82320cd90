"""The state of one classic group: members, protocols, generation.

    Empty ──join──► PreparingRebalance ──all joined, or time is up──► CompletingRebalance
      ▲                    ▲      │                                          │
      │                    │      └── nobody left ──► Empty                  │ the leader's
      │                    │                                                 ▼ assignment is stored
      └── deleted: Dead    └──────── a member comes, goes or changes ───── Stable

Only the steps beside this module change it, and return the work that follows. The group is stored
when a generation has its assignment, when a static member is replaced and when the last member has
left; a group that was loaded goes on from there.

Source: Kafka 4.4, org.apache.kafka.coordinator.group.classic.ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, Final

from minibroker.broker.groups.group import CLASSIC, Group
from minibroker.broker.groups.kinds import GROUP_METADATA
from minibroker.broker.groups.member_requests import JoinAnswer, SyncAnswer
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.primitives import Reader
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataKey

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.broker.groups.classic.events import Step
    from minibroker.broker.groups.classic.member import Member
    from minibroker.broker.groups.group import CommitPartitionValidator, GroupRecord
    from minibroker.broker.groups.member_requests import JoinWaiter, Protocols, SyncWaiter


class State(Enum):
    """Under Kafka's names, as DescribeGroups and ListGroups show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_COMES_FROM: Final = {
    State.EMPTY: (State.PREPARING_REBALANCE,),
    State.PREPARING_REBALANCE: (State.STABLE, State.COMPLETING_REBALANCE, State.EMPTY),
    State.COMPLETING_REBALANCE: (State.PREPARING_REBALANCE,),
    State.STABLE: (State.COMPLETING_REBALANCE,),
    State.DEAD: tuple(State),
}
WITH_MEMBERS: Final = (State.STABLE, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE)


class ClassicGroup(Group):
    """One group whose leader assigns; also a group that nobody joined and that stores offsets."""

    __slots__ = (
        "_protocol_type",
        "awaiting_join_count",
        "generation_id",
        "initial_delay_ms",
        "initial_remaining_ms",
        "is_joined_by_new_member",
        "leader_id",
        "members",
        "pending_join",
        "pending_sync",
        "previous_state",
        "protocol_name",
        "state",
        "state_timestamp_ms",
        "static_members",
        "subscribed_topics",
        "supporters",
    )

    type_name: ClassVar[str] = CLASSIC

    def __init__(
        self,
        group_id: str,
        state_timestamp_ms: int,
        *,
        state: State = State.EMPTY,
        generation_id: int = 0,
        protocol_type: str | None = None,
        protocol_name: str | None = None,
        leader_id: str | None = None,
    ) -> None:
        super().__init__(group_id)
        self.state = state
        self.previous_state = State.DEAD
        self.state_timestamp_ms = state_timestamp_ms
        """When it came into its state, wall clock; -1 when its record did not say (before 2.1)."""
        self._protocol_type = protocol_type
        self.protocol_name = protocol_name
        self.generation_id = generation_id
        self.leader_id = leader_id
        self.members: dict[str, Member] = {}
        """By member id, in the order they came."""
        self.static_members: dict[str, str] = {}
        """Instance id → member id."""
        self.pending_join: dict[str, None] = {}
        """Member ids that the coordinator gave out and that have not joined yet."""
        self.pending_sync: dict[str, None] = {}
        """Members that have not asked for their share of this generation yet."""
        self.awaiting_join_count = 0
        self.supporters: Counter[str] = Counter()
        """Protocol → how many members can do it."""
        self.subscribed_topics: frozenset[str] | None = None
        self.is_joined_by_new_member = False
        """While an initial rebalance is delayed: somebody came since the delay began."""
        self.initial_delay_ms = 0
        self.initial_remaining_ms = -1
        """How much longer an initial rebalance may be delayed; -1: the rebalance is no such."""

    def __str__(self) -> str:
        return (
            f"group {self.group_id} ({self.state.value}, generation {self.generation_id},"
            f" {len(self.members)} members)"
        )

    # Answers that every kind of group gives.

    @property
    def serving_kind(self) -> str:
        """Return its own kind."""
        return CLASSIC

    @property
    def protocol_type(self) -> str | None:
        return self._protocol_type

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def is_empty(self) -> bool:
        return self.state is State.EMPTY

    @property
    def member_count(self) -> int:
        return len(self.members)

    @property
    def is_simple(self) -> bool:
        """Return whether nobody ever joined the group: it only stores offsets."""
        return self._protocol_type is None and self.is_empty and not self.pending_join

    @property
    def uses_consumer_protocol(self) -> bool:
        """Return whether the members are consumers, whose subscriptions can be known."""
        return self._protocol_type == CONSUMER_PROTOCOL

    def is_subscribed_to(self, topic: str) -> bool:
        if self.subscribed_topics is None:
            return self.uses_consumer_protocol
        return topic in self.subscribed_topics

    def validate_offset_commit(
        self,
        member_id: str,
        instance_id: str | None,
        generation_or_epoch: int,
        *,
        is_transactional: bool,
        version: int,
    ) -> CommitPartitionValidator | None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        if generation_or_epoch < 0 and self.state is State.EMPTY:
            return None  # an admin client, or a consumer that assigns itself its partitions
        if generation_or_epoch >= 0 or member_id or instance_id is not None:
            self.validate_member(member_id, instance_id)
            if generation_or_epoch != self.generation_id:
                raise KafkaError(
                    ErrorCode.ILLEGAL_GENERATION,
                    f"commit of generation {generation_or_epoch}: {self} has moved on",
                )
        elif not is_transactional and self.state is not State.EMPTY:
            raise KafkaError(
                ErrorCode.UNKNOWN_MEMBER_ID,
                f"{self} has members that subscribed; a consumer that uses assign() must not"
                " commit under the same group.id",
            )
        if not is_transactional and self.state is State.COMPLETING_REBALANCE:
            raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{self} waits for its assignment")
        return None

    def validate_offset_fetch(self, member_id: str | None, member_epoch: int) -> None:
        if self.state is State.DEAD:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {self.group_id} is dead.")

    def validate_offset_delete(self) -> None:
        self.validate_offset_fetch(None, -1)
        if self.state in WITH_MEMBERS and not self.uses_consumer_protocol:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def validate_delete(self) -> None:
        self.validate_offset_fetch(None, -1)
        if self.state in WITH_MEMBERS:
            raise KafkaError(ErrorCode.NON_EMPTY_GROUP)

    def tombstones(self) -> list[GroupRecord]:
        return [(GroupMetadataKey(group=self.group_id).to_bytes(GROUP_METADATA), None)]

    def expiration_base_ms(self, commit_timestamp_ms: int) -> int | None:
        if self._protocol_type is None:
            return commit_timestamp_ms
        if self.state is State.EMPTY:
            return self.state_timestamp_ms if self.state_timestamp_ms >= 0 else commit_timestamp_ms
        if (
            self.uses_consumer_protocol
            and self.subscribed_topics is not None
            and self.state is State.STABLE
        ):
            return commit_timestamp_ms
        return None

    # Members.

    def validate_member(self, member_id: str, instance_id: str | None) -> None:
        """Raises KafkaError UNKNOWN_MEMBER_ID, or FENCED_INSTANCE_ID when another took its name."""
        if instance_id is not None:
            static_id = self.static_members.get(instance_id)
            if static_id is None:
                raise KafkaError(
                    ErrorCode.UNKNOWN_MEMBER_ID, f"{self} has no instance {instance_id}"
                )
            if static_id != member_id:
                raise KafkaError(
                    ErrorCode.FENCED_INSTANCE_ID,
                    f"instance {instance_id} of {self} is member {static_id} now, not {member_id}",
                )
        if member_id not in self.members:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{self} has no member {member_id!r}")

    def add(self, member: Member, protocol_type: str, waiter: JoinWaiter | None = None) -> None:
        """Take a member that supports the group's protocols; the first one sets the type."""
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        if not self.members:
            self._protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.supporters.update(member.names)
        member.join_waiter = waiter
        self.awaiting_join_count += waiter is not None
        self.pending_join.pop(member.member_id, None)

    def update(
        self,
        step: Step,
        member: Member,
        protocols: Protocols,
        *,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        waiter: JoinWaiter | None,
    ) -> None:
        """Join a member again. An earlier join of it that still waits is answered first, while
        Kafka leaves that connection muted for ever.
        """
        self.answer_join(
            step, member, JoinAnswer(ErrorCode.REBALANCE_IN_PROGRESS, member.member_id)
        )
        self.supporters.subtract(member.names)
        member.protocols = protocols
        self.supporters.update(member.names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        member.join_waiter = waiter
        self.awaiting_join_count += waiter is not None

    def remove(self, member_id: str) -> None:
        """Forget a member or an id that was given out; another member leads if it did."""
        member = self.members.pop(member_id, None)
        if member is not None:
            self.supporters.subtract(member.names)
            self.awaiting_join_count -= member.join_waiter is not None
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.pending_join.pop(member_id, None)
        self.pending_sync.pop(member_id, None)

    def replace_static(self, step: Step, instance_id: str, new_member_id: str) -> Member:
        """Give the static member a new id; it keeps the rest. A request that waits under the old id
        is fenced.
        """
        old_member_id = self.static_members[instance_id]
        member = self.members.pop(old_member_id)
        fenced = ErrorCode.FENCED_INSTANCE_ID
        self.answer_join(step, member, JoinAnswer(fenced, old_member_id))
        self.answer_sync(step, member, SyncAnswer(fenced))
        member.member_id = new_member_id
        member.is_new = False
        self.members[new_member_id] = member
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        self.static_members[instance_id] = new_member_id
        return member

    def answer_join(self, step: Step, member: Member, answer: JoinAnswer) -> None:
        """Answer the member's join if one waits."""
        waiter = member.join_waiter
        if waiter is not None:
            member.join_waiter = None
            self.awaiting_join_count -= 1
            step.answer_join(waiter, answer)

    def answer_sync(self, step: Step, member: Member, answer: SyncAnswer) -> bool:
        """Answer the member's sync if one waits; whether one did."""
        waiter: SyncWaiter | None = member.sync_waiter
        if waiter is None:
            return False
        member.sync_waiter = None
        step.answer_sync(waiter, answer)
        return True

    @property
    def have_all_joined(self) -> bool:
        """Return whether every member waits for the end of the join phase, and every id given out
        is used.
        """
        return len(self.members) == self.awaiting_join_count and not self.pending_join

    @property
    def rebalance_timeout_ms(self) -> int:
        """Return how long a join phase waits for everybody: the patience of the most patient
        member.
        """
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def everybody(self) -> tuple[tuple[str, str | None, bytes], ...]:
        """Return all members as the leader is told of them."""
        return tuple(
            (member.member_id, member.instance_id, member.metadata_of(self.protocol_name))
            for member in self.members.values()
        )

    # Protocols and generations.

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a member with these protocols can join the present ones."""
        if self.state is State.EMPTY:
            return bool(protocol_type) and bool(protocols)
        return self._protocol_type == protocol_type and any(
            self.supporters[name] == len(self.members) for name, _ in protocols
        )

    def select_protocol(self) -> str:
        """Return the protocol that most members like best among those that all of them can do."""
        count = len(self.members)
        candidates = {name for name, able in self.supporters.items() if able == count}
        votes = Counter(member.vote(candidates) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it joined, else take a member that did; False: nobody joined."""
        if self.leader_id is None:
            return False
        if self.members[self.leader_id].join_waiter is not None:
            return True
        for member in self.members.values():
            if member.join_waiter is not None:
                self.leader_id = member.member_id
                return True
        return False

    def begin_generation(self, now_ms: int) -> None:
        """Begin the next generation, of the members that are left: the join phase is over."""
        self.generation_id += 1
        # Protocols that nobody can do any more would pile up over the life of a group.
        self.supporters = +self.supporters
        self.protocol_name = self.select_protocol() if self.members else None
        self.learn_topics()
        self.go(State.COMPLETING_REBALANCE if self.members else State.EMPTY, now_ms)
        self.pending_sync.clear()

    def learn_topics(self) -> None:
        """Look up in the members' metadata what they are subscribed to."""
        self.subscribed_topics = None
        if self.uses_consumer_protocol and (self.protocol_name is not None or not self.members):
            self.subscribed_topics = subscribed_topics(
                member.metadata_of(self.protocol_name) for member in self.members.values()
            )

    @property
    def can_rebalance(self) -> bool:
        """Return whether a rebalance can begin: none is under way."""
        return self.state in _COMES_FROM[State.PREPARING_REBALANCE]

    def go(self, state: State, now_ms: int) -> None:
        """Go into another state."""
        assert self.state in _COMES_FROM[state], f"{self} cannot become {state.value}"
        self.previous_state = self.state
        self.state = state
        self.state_timestamp_ms = now_ms


CONSUMER_PROTOCOL: Final = "consumer"
TOPICS_MAX: Final = 100_000
"""Topics in one subscription; a longer list is somebody's mistake and is not read."""


def topics_of(metadata: bytes) -> list[str]:
    """Return the topics in one member's metadata: version int16, count int32, then strings.

    Read as version 0 whatever it says: every version begins like it. Raises ProtocolError.
    Source: Kafka ConsumerProtocol, ClassicGroup.computeSubscribedTopics.
    """
    reader = Reader(metadata)
    reader.int16()
    count = reader.array_count()
    if count > TOPICS_MAX:
        raise ProtocolError(f"subscription to {count} topics, expected at most {TOPICS_MAX}")
    topics = [reader.string() for _ in range(count)]
    reader.nullable_byte_string()
    return topics


def subscribed_topics(all_metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Return the topics of all members; None when one of them cannot be understood."""
    topics: set[str] = set()
    try:
        for metadata in all_metadata:
            topics.update(topics_of(metadata))
    except ProtocolError:
        return None
    return frozenset(topics)
