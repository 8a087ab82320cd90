"""The invariants of replication, checked after each turn of the loop.

- A leader epoch of a partition has at most one leader.
- A high watermark of a leader does not go back while it leads, nor does the start of its log.
- It moves only while min.insync.replicas are in the ISR, as the tree has confirmed it.
- Records below a high watermark are committed: at their offsets no broker ever has others below its
  own high watermark, and nobody sees others.
- The leader that the tree names has all committed records, and so has each running member of the
  ISR.
- A new leader knows the first open transaction: its last stable offset is not beyond it.
- When a DeleteRecords request is confirmed, no log of the ISR starts before the low watermark of
  the answer, and none of these logs does so later.
- At the end all logs are equal, and hold each acknowledged record once, where it was acknowledged;
  each transaction is there wholly or not at all. Each broker goes by the configs of the tree.

A topic with unclean elections loses records, and a topic that is deleted loses its configuration
first: there only leaders are unique, and logs are equal at the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.codecs import decode_config
from minibroker.broker.partitions.role import Leader
from minibroker.broker.storage import log_reads
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.batch import iterate_headers
from minibroker.kafka.records.record import decode_records
from tests.simulation.plan import BRIEF_TOPIC, MIN_INSYNC, UNCLEAN_TOPIC
from tests.simulation.transactions import committed_of

if TYPE_CHECKING:
    from minibroker.broker.partitions.partition import Partition
    from minibroker.broker.storage.partition_log import PartitionLog
    from tests.simulation.clients import Clients
    from tests.simulation.host import Host
    from tests.simulation.loop import Machine
    from tests.simulation.world import World


class Batch(NamedTuple):
    """A batch as all replicas must have it."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class ReplicaView:
    """A replica when it was looked at."""

    __slots__ = (
        "checked_to",
        "generation",
        "high_watermark",
        "log",
        "log_end_offset",
        "log_start_offset",
        "role",
    )

    def __init__(self, log: PartitionLog, role: object, checked_to: int) -> None:
        self.log = log
        self.role = role
        self.generation = log.place.generation
        self.high_watermark = log.high_watermark
        self.log_end_offset = log.log_end_offset
        self.log_start_offset = log.log_start_offset
        self.checked_to = checked_to
        """Offset up to which its log was compared with what is committed."""


class Deletion(NamedTuple):
    """A DeleteRecords request on its way: the members of the ISR when it was sent."""

    name: TopicPartition
    members: list[tuple[Host, Machine, int]]
    """Broker, process and session of the tree."""


class PartitionRules:
    """Facts about one partition of one topic; a topic that is made again has others."""

    def __init__(self, world: World, name: TopicPartition) -> None:
        self._world = world
        self.name = name
        self.is_lossy = name.topic in (UNCLEAN_TOPIC, BRIEF_TOPIC)
        self.leaders: dict[int, int] = {}
        """Leader epoch → broker."""
        self.committed: dict[int, Batch] = {}
        """Base offset → batch."""
        self.committed_end = 0
        self.deleted_to: dict[PartitionLog, int] = {}
        """Log → the highest low watermark of a confirmed DeleteRecords.

        Each process has logs of its own. As in Kafka, a process that is killed may come back with
        an older start: it stands in a checkpoint. A replica that is moved away and back has a new
        log in the same process. That log starts where its leader's does, which may be older too.
        """
        self.leader_start = 0
        """The highest start of a leader's log: nothing is known of what is below. A follower that
        parts from the leader there may have a hole, which its own start has to hide."""

    def check_replica(
        self, host: Host, partition: Partition, earlier: ReplicaView | None
    ) -> ReplicaView:
        """Check one replica that changed. Raises AssertionError."""
        log, role = partition.log, partition.role
        is_other = (
            earlier is None or earlier.log is not log or earlier.generation != log.place.generation
        )
        self.check_start(host.broker_id, log)
        now = ReplicaView(log, role, log.log_start_offset if is_other else earlier.checked_to)  # type: ignore[union-attr]
        if isinstance(role, Leader):
            self.leader_start = max(self.leader_start, now.log_start_offset)
            self._check_leader(host.broker_id, partition, role, earlier, now)
        if not self.is_lossy:
            for batch in batches(partition, now.checked_to, now.high_watermark):
                self._check_batch(host.broker_id, batch, may_commit=isinstance(role, Leader))
            now.checked_to = max(now.checked_to, now.high_watermark)
        return now

    def _check_leader(
        self,
        broker_id: int,
        partition: Partition,
        role: Leader,
        earlier: ReplicaView | None,
        now: ReplicaView,
    ) -> None:
        first = self.leaders.setdefault(role.epoch, broker_id)
        assert first == broker_id, (
            f"brokers {first} and {broker_id} both lead {self.name} in epoch {role.epoch}"
        )
        if earlier is None or not isinstance(earlier.role, Leader):
            self._check_stable_offset(broker_id, partition)
        else:
            assert now.high_watermark >= earlier.high_watermark, (
                f"the high watermark of {self.name} at broker {broker_id} went back from"
                f" {earlier.high_watermark} to {now.high_watermark} while it leads"
            )
            assert now.log_start_offset >= earlier.log_start_offset, (
                f"the log start of {self.name} at broker {broker_id} went back from"
                f" {earlier.log_start_offset} to {now.log_start_offset} while it leads"
            )
        if earlier is not None and now.high_watermark > earlier.high_watermark:
            roles = [role, *([earlier.role] if isinstance(earlier.role, Leader) else [])]
            assert self.is_lossy or any(len(roles.metadata_isr) >= MIN_INSYNC for roles in roles), (
                f"the high watermark of {self.name} at broker {broker_id} moved to"
                f" {now.high_watermark} with the ISR {list(role.metadata_isr)}"
            )

    def _check_stable_offset(self, broker_id: int, partition: Partition) -> None:
        """Check that a new leader knows the transactions that are open in its log.

        What DeleteRecords took does not count, also where a kill brought it back: the producers
        were noted without it.
        """
        log = partition.log
        start = max(log.log_start_offset, self.leader_start)
        _, undecided = committed_of(since(content(partition), start))
        expected = max(min(undecided.values(), default=log.log_end_offset), start)
        stable_offset = log.last_stable_offset
        # One whose marker is not committed holds it, too, and so does one of which DeleteRecords
        # took all records.
        assert stable_offset <= expected, (
            f"the last stable offset of {self.name} at its new leader {broker_id} is"
            f" {stable_offset}, the first open transaction is at {expected}"
        )

    def _check_batch(self, broker_id: int, batch: Batch, *, may_commit: bool) -> None:
        committed_batch = self.committed.get(batch.base_offset)
        if committed_batch is None and batch.last_offset < self.leader_start:
            return
        if committed_batch is None:
            assert batch.base_offset >= self.committed_end, (
                f"{self.name}: broker {broker_id} has {batch} below its high watermark, and offset"
                f" {batch.base_offset} is committed inside of another batch, or was not kept"
            )
            assert may_commit, (
                f"{self.name}: follower {broker_id} has {batch} below its high watermark, unknown"
            )
            self.committed[batch.base_offset] = batch
            self.committed_end = batch.last_offset + 1
            self._world.note(f"{self.name}: committed to {self.committed_end} by {broker_id}")
        else:
            assert committed_batch == batch, (
                f"{self.name}: broker {broker_id} has {batch} below its high watermark, committed"
                f" is {committed_batch}"
            )

    def check_start(self, broker_id: int, log: PartitionLog) -> None:
        """Check that a log has nothing of what is deleted. Raises AssertionError."""
        offset = self.deleted_to.get(log, 0)
        assert log.log_start_offset >= offset, (
            f"records of {self.name} below {offset} are deleted, and the log of broker {broker_id}"
            f" starts at {log.log_start_offset}"
        )

    def check_in_sync(self, host: Host, partition: Partition, isr: list[int]) -> None:
        """Check that a member of the ISR has what is committed. Raises AssertionError."""
        assert self.is_lossy or partition.log_end_offset >= self.committed_end, (
            f"broker {host.broker_id} is in the ISR {isr} of {self.name} and ends at"
            f" {partition.log_end_offset}, committed is {self.committed_end}"
        )


class Rules:
    """The invariants of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._of: dict[tuple[str, int, bytes], PartitionRules] = {}
        """Topic, partition and topic id → rules."""
        self._views: list[dict[Partition, ReplicaView]] = [{} for _ in world.hosts]
        self._machines: list[Machine | None] = [None for _ in world.hosts]
        self._zxid = -1

    @property
    def committed_end(self) -> int:
        """Return the sum of all ends of what is committed in the partitions that lose nothing."""
        return sum(rules.committed_end for rules in self._of.values())

    def of(self, partition: Partition) -> PartitionRules:
        """Return the rules of a partition."""
        key = partition.topic, partition.index, bytes(partition.topic_id)
        rules = self._of.get(key)
        if rules is None:
            name = TopicPartition(partition.topic, partition.index)
            rules = self._of[key] = PartitionRules(self._world, name)
        return rules

    def check(self) -> None:
        """Check all. Raises AssertionError."""
        has_changed = False
        for host in self._world.hosts:
            machine = host.machine
            replicas = self._views[host.broker_id]
            if (
                machine is None
                or host.files.is_cut
                or machine is not self._machines[host.broker_id]
            ):
                replicas.clear()
                self._machines[host.broker_id] = machine
            if machine is None or host.files.is_cut:
                continue
            for partition in host.replicas():
                log = partition.log
                earlier = replicas.get(partition)
                if (
                    earlier is None
                    or earlier.role is not partition.role
                    or earlier.high_watermark != log.high_watermark
                    or earlier.log_end_offset != log.log_end_offset
                    or earlier.log_start_offset != log.log_start_offset
                    or earlier.log is not log
                    or earlier.generation != log.place.generation
                ):
                    has_changed = True
                    replicas[partition] = machine.context.run(
                        self.of(partition).check_replica, host, partition, earlier
                    )
        if has_changed or self._world.tree.zxid != self._zxid:
            self._zxid = self._world.tree.zxid
            self._check_in_sync()

    def _check_in_sync(self) -> None:
        world = self._world
        for name, state in world.states.items():
            for broker_id in state.isr:
                host = world.hosts[broker_id]
                partition = host.replica(name)
                if (
                    partition is not None
                    and host.is_ready
                    and partition.topic_id == world.topic_ids.get(name.topic)
                ):
                    self.of(partition).check_in_sync(host, partition, state.isr)

    # Deleted records.

    def begin_deletion(self, name: TopicPartition) -> Deletion:
        """Return what is needed to check a DeleteRecords request that is sent now."""
        return Deletion(name, self._members(name))

    def _members(self, name: TopicPartition) -> list[tuple[Host, Machine, int]]:
        state = self._world.states.get(name)
        return [
            (host, host.machine, host.session.session_id)
            for host in self._world.hosts
            if state is not None
            and host.broker_id in state.isr
            and host.machine is not None
            and host.is_ready
            and not host.session.is_away
        ]

    def confirm_deletion(self, deletion: Deletion, offset: int, low_watermark: int) -> None:
        """Check the logs of all that were in the ISR all the time: none starts below the low
        watermark of the answer. Raises AssertionError.
        """
        assert low_watermark >= offset, f"deleted to {low_watermark}, asked for {offset}"
        members = self._members(deletion.name)
        for member in deletion.members:
            host = member[0]
            partition = host.replica(deletion.name)
            if member in members and partition is not None:
                rules, log = self.of(partition), partition.log
                rules.deleted_to[log] = max(rules.deleted_to.get(log, 0), low_watermark)
                rules.check_start(host.broker_id, log)

    # The end.

    def check_at_end(self, clients: Clients) -> None:
        """Check that all logs are equal, and hold what clients know. Raises AssertionError."""
        committed: dict[TopicPartition, dict[bytes, int]] = {}
        starts: dict[TopicPartition, int] = {}
        for name in self._world.states:
            logs = {host.broker_id: host.log_of(name) for host in self._of_replicas(name)}
            partition = self._world.hosts[next(iter(logs))].replica(name)
            assert partition is not None
            rules = self.of(partition)
            start = max(span[0] for span in logs.values())
            start = starts[name] = max(start, rules.leader_start)
            contents = {broker_id: since(span[1], start) for broker_id, span in logs.items()}
            first, *others = contents
            for other in others:
                assert contents[other] == contents[first], (
                    f"the logs of {name} at brokers {first} and {other} differ"
                )
            if not rules.is_lossy:
                values = self._check_content(rules, contents[first])
                committed[name], undecided = committed_of(contents[first])
                assert not undecided, f"{name} has open transactions at the end: {undecided}"
                if name in clients.partitions:
                    check_known(name, values, clients, start)
        clients.transactions.check_at_end(committed, starts)
        for host in self._world.hosts:
            self._check_configs(host)

    def _check_configs(self, host: Host) -> None:
        """Check that a broker goes by the configs that the tree has. Raises AssertionError."""
        dynamic = host.broker.dynamic
        configs = {
            ("topics", topic): dynamic.topic_overrides(topic) for topic in self._world.topic_ids
        }
        configs["brokers", paths.DEFAULT_ENTITY] = dynamic.cluster_default
        for entity, config in configs.items():
            path = paths.config(*entity)
            node = self._world.tree.nodes.get(path)
            expected = decode_config(path, node.data) if node is not None else {}
            assert config == expected, (
                f"broker {host.broker_id} has {config} for {entity}, the tree has {expected}"
            )

    def _of_replicas(self, name: TopicPartition) -> list[Host]:
        return [self._world.hosts[broker_id] for broker_id in self._world.replicas_of(name)]

    @staticmethod
    def _check_content(rules: PartitionRules, log: bytes) -> dict[int, bytes]:
        """Return offset → value of a log that has what is committed. Raises AssertionError."""
        values = {}
        for position, header in iterate_headers(memoryview(log)):
            batch = Batch(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
            committed_batch = rules.committed.get(batch.base_offset)
            assert committed_batch == batch, (
                f"{rules.name}: {committed_batch} was committed, {batch} is there"
            )
            for record in decode_records(memoryview(log)[position:]):
                values[record.offset] = record.value or b""
        return values


def check_known(
    name: TopicPartition, values: dict[int, bytes], clients: Clients, start: int
) -> None:
    """Check that a log has what clients know of it from `start` on. Raises AssertionError."""
    for offset, value in (*clients.acknowledged[name], *clients.values[name].items()):
        assert offset < start or values.get(offset) == value, (
            f"clients know {value!r} at offset {offset} of {name}, there is {values.get(offset)!r}"
        )


def content(partition: Partition) -> bytes:
    """Return all bytes of a log."""
    data = b""
    offset, log = partition.log_start_offset, partition.log
    while offset < log.log_end_offset:
        piece = log_reads.read(
            log, offset, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True
        )
        records = bytes(piece.records)
        data += records
        for _, header in iterate_headers(memoryview(records)):
            offset = header.last_offset + 1
    return data


def since(log: bytes, start: int) -> bytes:
    """Return the batches of a log that have an offset from `start` on."""
    for position, header in iterate_headers(memoryview(log)):
        if header.last_offset >= start:
            return log[position:]
    return b""


def batches(partition: Partition, start: int, end: int) -> list[Batch]:
    """Return the batches from one offset to another, both at the edges of batches."""
    items: list[Batch] = []
    offset, log = max(start, partition.log_start_offset), partition.log
    while offset < end:
        piece = log_reads.read(log, offset, 1 << 20, end_offset=end, min_one_batch=True)
        if not piece.records:
            break
        for _, header in iterate_headers(piece.records):
            if header.last_offset >= start:
                items.append(
                    Batch(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
                )
            offset = header.last_offset + 1
    return items
