"""Classic groups under any order of events: owners, waiting requests, generations.

Clients behave as clients do: they join, assign if they lead, ask for their share, send heartbeats,
leave, or are killed; the broker is killed, records are refused, time goes by. Whatever happens

* a partition has at most one owner in a generation (a replaced static member is one owner),
* the generation never goes down while the broker runs,
* in the end nobody waits: every request is answered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from minibroker.broker.groups.classic.group import State
from minibroker.broker.groups.member_requests import Departure, Join, JoinAnswer, Sync
from minibroker.kafka.error_codes import ErrorCode
from tests.scenario.classic_rig import ClassicRig, Waiter

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTITIONS = ("p0", "p1", "p2")
PROTOCOLS = ("range", "roundrobin", "sticky")
NAMES = ("a", "b", "c", "d")
INSTANCES = ("one", "two")
SESSION_MS = 10_000
REBALANCE_MS = 30_000
FOREVER_MS = 3_600_000


class Client:
    """A consumer's knowledge: its id, its generation, and the request that it waits for."""

    def __init__(self, name: str, instance_id: str | None) -> None:
        self.name = name
        self.instance_id = instance_id
        self.member_id = ""
        self.generation = -1
        self.members: tuple[tuple[str, str | None, bytes], ...] = ()
        self.is_leader = False
        self.joining: Waiter | None = None
        self.syncing: Waiter | None = None

    @property
    def is_waiting(self) -> bool:
        return self.joining is not None or self.syncing is not None


class Groups(RuleBasedStateMachine):
    """The rules: the possible next steps of clients, the broker and time."""

    def __init__(self) -> None:
        super().__init__()
        self.rig = ClassicRig()
        self.clients: list[Client] = []
        self.owners: dict[tuple[int, str], str] = {}
        self.generation = 0

    def pick(self, index: int, among: Iterable[Client]) -> Client | None:
        chosen = list(among)
        return chosen[index % len(chosen)] if chosen else None

    # Rules. Most of what happens is good, or no group would ever live.

    @initialize(
        names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=4), static=st.integers(0, 2)
    )
    def begin(self, names: list[str], static: int) -> None:
        for number, name in enumerate(names):
            self.clients.append(Client(name, INSTANCES[number] if number < static else None))
        self.everybody_joins(needs_id=False, skips=True)
        self.everybody_syncs(is_leader_there=True)

    @rule(
        name=st.sampled_from(NAMES),
        instance=st.sampled_from((None, *INSTANCES)),
        count=st.integers(1, 3),
    )
    def arrive(self, name: str, instance: str | None, count: int) -> None:
        for _ in range(count):
            if len(self.clients) < 5:
                self.clients.append(Client(name, instance))
                instance = None

    @rule(
        index=st.integers(0, 9),
        protocols=st.lists(st.sampled_from(PROTOCOLS), min_size=1, unique=True),
        needs_id=st.booleans(),
        skips=st.booleans(),
    )
    def join(self, index: int, protocols: list[str], needs_id: bool, skips: bool) -> None:
        client = self.pick(index, (c for c in self.clients if not c.is_waiting))
        if client is not None:
            self.send_join(client, protocols, needs_id, skips)

    @rule(needs_id=st.booleans(), skips=st.booleans())
    def everybody_joins(self, needs_id: bool, skips: bool) -> None:
        """Let all clients join, as after a rebalance; one that gets an id joins again with it."""
        for _ in range(2 if needs_id else 1):
            for client in list(self.clients):
                if not client.is_waiting:
                    self.send_join(client, ["range"], needs_id, skips)
        self.time_goes_by(0)

    def send_join(self, client: Client, protocols: list[str], needs_id: bool, skips: bool) -> None:
        client.joining = self.rig.join(
            client.name,
            Join(
                client.member_id,
                client.instance_id,
                client.name,
                "/127.0.0.1",
                "consumer",
                tuple((name, b"t") for name in protocols),
                SESSION_MS,
                REBALANCE_MS,
                needs_id,
                skips,
            ),
        )
        self.hear()

    @rule(index=st.integers(0, 9))
    def sync(self, index: int) -> None:
        client = self.pick(index, self.joined())
        if client is not None:
            self.send_sync(client)

    @rule(is_leader_there=st.booleans())
    def everybody_syncs(self, is_leader_there: bool) -> None:
        """Let followers sync, often before the leader, which has to assign."""
        for client in sorted(self.joined(), key=lambda client: client.is_leader):
            if is_leader_there or not client.is_leader:
                self.send_sync(client)

    def joined(self) -> list[Client]:
        return [c for c in self.clients if not c.is_waiting and c.generation >= 0]

    def send_sync(self, client: Client) -> None:
        shares: dict[str, str] = {}
        if client.is_leader and client.members:
            ids = [member_id for member_id, _, _ in client.members]
            for number, partition in enumerate(PARTITIONS):
                owner = ids[number % len(ids)]
                shares[owner] = (shares.get(owner, "") + " " + partition).strip()
        client.syncing = self.rig.sync(
            client.name,
            Sync(
                client.member_id,
                client.instance_id,
                client.generation,
                None,
                None,
                {owner: share.encode() for owner, share in shares.items()},
            ),
        )
        self.hear()

    @rule()
    def everybody_is_alive(self) -> None:
        """Let all clients send heartbeats."""
        for client in [c for c in self.clients if c.generation >= 0]:
            code = self.rig.heartbeat(client.member_id, client.instance_id, client.generation)
            self.refuse(client, code)
            self.hear()

    @rule(index=st.integers(0, 9))
    def leave(self, index: int) -> None:
        client = self.pick(index, self.clients)
        if client is not None:
            self.clients.remove(client)
            self.rig.leave([Departure(client.member_id, client.instance_id)])
            self.hear()

    @rule(elapsed_ms=st.sampled_from((0, 0, 1, 1_000, 3_000)))
    def time_goes_by(self, elapsed_ms: int) -> None:
        self.rig.advance(elapsed_ms)
        self.hear()

    @rule(
        error=st.sampled_from(("client", "broker", "record", "session", "rebalance")),
        index=st.integers(0, 9),
    )
    def something_bad(self, error: str, index: int) -> None:
        """Kill a client or the broker, refuse a record, or let a time-out pass."""
        if error == "client":
            client = self.pick(index, self.clients)
            if client is not None:
                self.clients.remove(client)
        elif error == "record":
            self.rig.failure = ErrorCode.NOT_COORDINATOR
        elif error == "broker":
            self.rig.reload()
            self.generation = self.rig.group.generation_id
            for waiting in self.clients:
                waiting.joining = waiting.syncing = None
        else:
            self.time_goes_by(SESSION_MS if error == "session" else REBALANCE_MS)

    # What clients make of their answers.

    def hear(self) -> None:
        for client in list(self.clients):
            if client.joining is not None and client.joining.answers:
                answer = client.joining.answers[0]
                client.joining = None
                self.on_join_answer(client, answer)
            if client.syncing is not None and client.syncing.answers:
                share = client.syncing.answers[0]
                client.syncing = None
                if share.error is ErrorCode.NONE:
                    self.own(client, share.assignment.decode().split())
                self.refuse(client, share.error)

    def on_join_answer(self, client: Client, answer: JoinAnswer) -> None:
        if answer.error is ErrorCode.MEMBER_ID_REQUIRED:
            client.member_id = answer.member_id
        elif answer.error is ErrorCode.NONE:
            assert answer.generation_id <= self.rig.group.generation_id
            client.member_id = answer.member_id
            client.generation = answer.generation_id
            client.is_leader = answer.leader_id == answer.member_id
            client.members = () if answer.skip_assignment else answer.members
        self.refuse(client, answer.error)

    def refuse(self, client: Client, code: ErrorCode) -> None:
        if code in {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID}:
            client.member_id, client.generation = "", -1
        elif code in {ErrorCode.ILLEGAL_GENERATION, ErrorCode.GROUP_MAX_SIZE_REACHED}:
            client.generation = -1

    def own(self, client: Client, partitions: list[str]) -> None:
        owner = client.instance_id or client.member_id
        for partition in partitions:
            owner_of = self.owners.setdefault((client.generation, partition), owner)
            assert owner_of == owner, f"{partition} of generation {client.generation}: two owners"

    # What must hold.

    @invariant()
    def generations_only_grow(self) -> None:
        assert self.rig.group.generation_id >= self.generation
        self.generation = self.rig.group.generation_id

    @invariant()
    def counts_agree(self) -> None:
        group = self.rig.group
        waiting = [m for m in group.members.values() if m.join_waiter is not None]
        assert group.awaiting_join_count == len(waiting)
        static = {m.instance_id: i for i, m in group.members.items() if m.instance_id is not None}
        assert group.static_members == static
        assert (group.leader_id is None) == (not group.members)
        assert group.leader_id is None or group.leader_id in group.members
        assert not set(group.pending_join) & set(group.members)
        for name in PROTOCOLS:
            able = sum(name in member.names for member in group.members.values())
            assert group.supporters[name] == able
        if group.state is State.EMPTY:
            assert not group.members

    def teardown(self) -> None:
        """Silence all clients: every request is answered, and the group ends empty."""
        self.rig.failure = None
        for _ in range(4):
            self.rig.advance(FOREVER_MS)
        assert not self.rig.waiting, [waiter.name for waiter in self.rig.waiting]
        assert self.rig.group.state is State.EMPTY
        assert not self.rig.timers


TestGroups: Any = Groups.TestCase
TestGroups.settings = settings(max_examples=150, stateful_step_count=40)
