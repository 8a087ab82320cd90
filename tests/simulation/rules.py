"""The invariants of replication, checked after each turn of the loop.

- A leader epoch has at most one leader.
- A high watermark of a leader does not go back while it leads.
- It moves only while min.insync.replicas are in the ISR, as the tree has confirmed it.
- Records below a high watermark are committed: at their offsets no broker ever has others below its
  own high watermark, and nobody sees others.
- The leader that the tree names has all committed records, and so has each running member of the
  ISR.
- At the end all logs are equal, and hold each acknowledged record once, where it was acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.partitions.role import Leader
from minibroker.records.batch import iterate_headers
from minibroker.records.record import decode_records

if TYPE_CHECKING:
    from minibroker.partitions.partition import Partition
    from tests.simulation.clients import Clients
    from tests.simulation.world import Host, World

MIN_INSYNC = 2


class Batch(NamedTuple):
    """A batch as all replicas must have it."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int


class Seen(NamedTuple):
    """A replica when it was looked at."""

    partition: Partition
    generation: int
    role: object
    high_watermark: int
    log_end_offset: int


class Rules:
    """The invariants of one run."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.leaders: dict[int, int] = {}
        """Leader epoch → broker."""
        self.committed: dict[int, Batch] = {}
        """Base offset → batch."""
        self.committed_end = 0
        self._seen: dict[int, Seen] = {}
        self._checked_to: dict[int, int] = {}
        """Broker → offset up to which its log was compared with what is committed."""
        self._state: object = None

    def check(self) -> None:
        """Check all. Raises AssertionError."""
        is_changed = False
        for host in self._world.hosts:
            partition = host.partition
            if partition is None:
                self._seen.pop(host.broker_id, None)
                self._checked_to.pop(host.broker_id, None)
                continue
            log = partition.log
            now = Seen(
                partition,
                log.place.generation,
                partition.role,
                log.high_watermark,
                log.log_end_offset,
            )
            before = self._seen.get(host.broker_id)
            if now != before:
                is_changed = True
                self._seen[host.broker_id] = now
                assert host.machine is not None
                host.machine.context.run(self._check_replica, host, before, now)
        node = self._world.tree.nodes.get("/brokers/topics/t/partitions/0/state")
        if is_changed or node is not self._state:
            self._state = node
            self._check_in_sync()

    def _check_replica(self, host: Host, before: Seen | None, now: Seen) -> None:
        broker_id = host.broker_id
        if (
            before is None
            or before.generation != now.generation
            or before.partition is not now.partition
        ):
            self._checked_to[broker_id] = now.partition.log_start_offset
        role = now.role
        if isinstance(role, Leader):
            first = self.leaders.setdefault(role.epoch, broker_id)
            assert first == broker_id, (
                f"brokers {first} and {broker_id} both lead in epoch {role.epoch}"
            )
            if before is not None and isinstance(before.role, Leader):
                assert now.high_watermark >= before.high_watermark, (
                    f"the high watermark of broker {broker_id} went back from"
                    f" {before.high_watermark} to {now.high_watermark} while it leads"
                )
            if before is not None and now.high_watermark > before.high_watermark:
                known = [role, *([before.role] if isinstance(before.role, Leader) else [])]
                assert any(len(leader.metadata_isr) >= MIN_INSYNC for leader in known), (
                    f"the high watermark of broker {broker_id} moved to {now.high_watermark} with"
                    f" the ISR {list(role.metadata_isr)}"
                )
        for batch in batches(now.partition, self._checked_to[broker_id], now.high_watermark):
            self._check_batch(broker_id, batch, may_commit=isinstance(role, Leader))
        self._checked_to[broker_id] = max(self._checked_to[broker_id], now.high_watermark)

    def _check_batch(self, broker_id: int, batch: Batch, *, may_commit: bool) -> None:
        known = self.committed.get(batch.base_offset)
        if known is None:
            assert batch.base_offset >= self.committed_end, (
                f"broker {broker_id} has {batch} below its high watermark, and offset"
                f" {batch.base_offset} is committed inside of another batch"
            )
            assert may_commit, f"follower {broker_id} has {batch} below its high watermark, unknown"
            self.committed[batch.base_offset] = batch
            self.committed_end = batch.last_offset + 1
            self._world.note(f"committed to {self.committed_end} by broker {broker_id}")
        else:
            assert known == batch, (
                f"broker {broker_id} has {batch} below its high watermark, committed is {known}"
            )

    def _check_in_sync(self) -> None:
        state = self._world.state
        if state is None:
            return
        for host in self._world.hosts:
            partition = host.partition
            if partition is None or not host.is_ready:
                continue
            if host.broker_id in state.isr:
                assert partition.log_end_offset >= self.committed_end, (
                    f"broker {host.broker_id} is in the ISR {state.isr} and ends at"
                    f" {partition.log_end_offset}, committed is {self.committed_end}"
                )

    def check_at_end(self, clients: Clients) -> None:
        """Check that all logs are equal, and hold what clients know. Raises AssertionError."""
        logs = []
        for host in self._world.hosts:
            partition = host.partition
            assert partition is not None
            assert host.machine is not None
            logs.append(host.machine.context.run(content, partition))
        for host, log in zip(self._world.hosts[1:], logs[1:], strict=True):
            assert log == logs[0], f"the logs of brokers 0 and {host.broker_id} differ"
        values = {}
        for position, header in iterate_headers(memoryview(logs[0])):
            batch = Batch(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
            known = self.committed.get(batch.base_offset)
            assert known == batch, f"{known} was committed, {batch} is there"
            for record in decode_records(memoryview(logs[0])[position:]):
                values[record.offset] = record.value
        for offset, value in (*clients.acknowledged, *clients.seen.items()):
            assert values.get(offset) == value, (
                f"clients know {value!r} at offset {offset}, there is {values.get(offset)!r}"
            )


def content(partition: Partition) -> bytes:
    """Return all bytes of a log."""
    found = b""
    offset, log = partition.log_start_offset, partition.log
    while offset < log.log_end_offset:
        read = log.read(offset, 1 << 20, end_offset=log.log_end_offset, min_one_batch=True)
        records = bytes(read.records)
        found += records
        for _, header in iterate_headers(memoryview(records)):
            offset = header.last_offset + 1
    return found


def batches(partition: Partition, start: int, end: int) -> list[Batch]:
    """Return the batches from one offset to another, both at the edges of batches."""
    found: list[Batch] = []
    offset, log = start, partition.log
    while offset < end:
        read = log.read(offset, 1 << 20, end_offset=end, min_one_batch=True)
        if not read.records:
            break
        for _, header in iterate_headers(read.records):
            if header.last_offset >= start:
                found.append(
                    Batch(header.base_offset, header.last_offset, header.leader_epoch, header.crc)
                )
            offset = header.last_offset + 1
    return found
