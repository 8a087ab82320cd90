"""Partitions read from their offsets on, from all their leaders at once, as whole batches.

    positions ─► a Fetch to each leader, the next one sent when an answer is there ─► Fetched

So an answer is on its way while the caller works on the one before, and at most two answers of a
leader are in memory. A broker that is away, or leads no more, is left, and the leaders are asked
for anew. A case that only the caller can decide (an offset that the log does not have) is an
exception.

Source: Kafka Fetcher, AbstractFetch; KIP-74, KIP-98, KIP-320, KIP-392 (no sessions of KIP-227).
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client.client import UNKNOWN_TOPIC_CODES
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.client.fetch import read_batches
from minibroker.client.readiness import is_any_readable
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError, ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from minibroker.client.client import Client
    from minibroker.client.connection import BlockingConnection
    from minibroker.kafka.protocol.messages.fetch import PartitionData
    from minibroker.kafka.records.stored_batch import StoredBatch

VERSIONS: Final = (0, 12)
"""Versions of Fetch that name topics."""
_WHOLE_FROM: Final = 3
"""Version of Fetch from which on an answer has a whole batch, also one beyond the limits."""
WAIT_MS: Final = 500
"""Longest wait of a broker at the end of its partitions."""
ANSWER_BYTES: Final = 8 << 20
PARTITION_BYTES: Final = 1 << 20
PAUSE_S: Final = 0.1
PATIENCE_S: Final = 60.0
"""Time without an answer of a partition's broker after which reading it has failed."""
UNKNOWN_S: Final = 10.0
"""The same of a partition that brokers do not know: one that has just started knows no topic."""
FOLLOWED_S: Final = 300.0
"""Time for which a replica that the leader names is read in its place (metadata.max.age.ms)."""


class OffsetGoneError(KafkaError):
    """The log of a partition has no such offset: its records were removed, or never written."""

    def __init__(self, place: TopicPartition, offset: int) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{place} has no offset {offset} any more")
        self.place = place
        self.offset = offset


class Fetched(NamedTuple):
    """A part of an answer about one partition."""

    place: TopicPartition
    batches: list[StoredBatch]
    """Batches with records for the reader, as views into the answer; the first may begin before
    `start`."""
    start: int
    """The offset that was asked for."""
    next_offset: int
    """The offset behind the batches; `start` where the answer has none."""
    end: int
    """The end of what this reader may see now: the high watermark, or the last stable offset."""


class _FetchLink:
    """A connection, and the positions that its request asks for."""

    def __init__(self, connection: BlockingConnection, offsets: dict[TopicPartition, int]) -> None:
        self.connection = connection
        self.open_positions = offsets
        self.sent_s = time.monotonic()
        self.version = 0


class PartitionReader:
    """Reads partitions; used by one thread."""

    def __init__(
        self,
        client: Client,
        positions: Mapping[TopicPartition, int],
        *,
        is_committed: bool,
        rack: str = "",
        wait_ms: int = WAIT_MS,
        partition_bytes: int = PARTITION_BYTES,
    ) -> None:
        """Read partitions from these offsets on.

        Args:
            positions: partition → offset of the first record.
            is_committed: records of open and aborted transactions are left out.
            rack: of the reader; a broker there may be read in place of the leader.
            wait_ms: longest wait of a broker that has nothing.
            partition_bytes: of one partition in an answer, unless its first batch is larger.
        """
        self._client = client
        self._is_committed = is_committed
        self._rack = rack
        self._wait_ms = wait_ms
        self._partition_bytes = partition_bytes
        self.positions: dict[TopicPartition, int] = dict(positions)
        """The next offset of each partition that is read."""
        self._links: dict[tuple[str, int], _FetchLink] = {}
        self._followed: dict[TopicPartition, tuple[tuple[str, int], float]] = {}
        """Replicas that are read in place of the leader, and until when, on the monotonic clock."""
        now_s = time.monotonic()
        self._heard_s = dict.fromkeys(self.positions, now_s)
        """When a broker last answered about a partition without an error."""
        self._resumes_s = 0.0
        """No request before this, on the monotonic clock: after a failure, or over a quota."""

    def seek(self, positions: Mapping[TopicPartition, int]) -> None:
        """Read these partitions from these offsets on, and no others. Answers that are on their way
        about other offsets are dropped.
        """
        self.positions = dict(positions)
        now_s = time.monotonic()
        self._heard_s = dict.fromkeys(self.positions, now_s)

    def remove(self, places: Iterable[TopicPartition]) -> None:
        """Read these partitions no more."""
        for place in places:
            self.positions.pop(place, None)

    def close(self) -> None:
        """Give the connections back; those that wait for an answer are closed."""
        for link in self._links.values():
            self._client.give_back(link.connection)
        self._links.clear()

    def poll(self, timeout_s: float) -> list[Fetched]:
        """Return what has come from brokers, nothing after `timeout_s` seconds.

        A part without batches says that the reader is at the end of its partition.

        Raises:
            OffsetGoneError: a log does not have an offset.
            KafkaError: a broker refuses a partition, or does not know it for `UNKNOWN_S`.
            OSError, ProtocolError: no broker answered about a partition for `PATIENCE_S`, or takes
                no login.
            CorruptionError: bytes of a broker are damaged.
            ConfigError: the settings of TLS.
        """
        until_s = time.monotonic() + timeout_s
        while True:
            self._send_all()
            fetched = self._receive(until_s)
            if fetched:
                self._send_all()
                return fetched
            if time.monotonic() >= until_s or not self.positions:
                return []

    # Requests.

    def _send_all(self) -> None:
        """Ask each broker that has no question for the partitions that it serves."""
        if time.monotonic() < self._resumes_s:
            return
        waiting = {place for link in self._links.values() for place in link.open_positions}
        of_brokers: dict[tuple[str, int], dict[TopicPartition, tuple[int, int]]] = {}
        for place, offset in self.positions.items():
            if place in waiting:
                continue
            try:
                address, epoch = self._address_of(place)
            except BrokerRefusedError:
                raise
            except (KafkaError, OSError, ProtocolError) as error:
                self._fail([place], error)
                continue
            of_brokers.setdefault(address, {})[place] = (offset, epoch)
        for address, positions in of_brokers.items():
            link = self._links.get(address)
            if link is None or not link.open_positions:
                self._send(address, positions)

    def _address_of(self, place: TopicPartition) -> tuple[tuple[str, int], int]:
        """Return the broker to ask about a partition, and the leader's epoch.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        leader = self._client.leader(*place)
        address, until_s = self._followed.get(place, (leader.address, 0.0))
        if until_s and until_s < time.monotonic():
            del self._followed[place]
            address = leader.address
        return address, leader.epoch

    def _send(
        self, address: tuple[str, int], positions: dict[TopicPartition, tuple[int, int]]
    ) -> None:
        offsets = {place: offset for place, (offset, _) in positions.items()}
        try:
            link = self._link(address)
            link.open_positions, link.sent_s = offsets, time.monotonic()
            link.version = link.connection.version_for(FetchRequest, *VERSIONS)
            link.connection.send(self._request(positions), FetchResponse, link.version)
        except BrokerRefusedError:
            raise
        except (OSError, ProtocolError) as error:
            self._drop(address)
            self._fail(offsets, error)

    def _link(self, address: tuple[str, int]) -> _FetchLink:
        link = self._links.get(address)
        if link is not None and link.connection.is_retired:
            self._drop(address)
            link = None
        if link is None:
            link = self._links[address] = _FetchLink(self._client.connection(address), {})
        return link

    def _request(self, positions: Mapping[TopicPartition, tuple[int, int]]) -> FetchRequest:
        topics: dict[str, FetchTopic] = {}
        for place, (offset, epoch) in positions.items():
            topic = topics.setdefault(place.topic, FetchTopic(topic=place.topic))
            topic.partitions.append(
                FetchPartition(
                    partition=place.partition,
                    current_leader_epoch=epoch,
                    fetch_offset=offset,
                    partition_max_bytes=self._partition_bytes,
                )
            )
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._wait_ms,
            min_bytes=1,
            max_bytes=ANSWER_BYTES,
            isolation_level=int(self._is_committed),
            topics=list(topics.values()),
            rack_id=self._rack,
        )

    # Answers.

    def _receive(self, until_s: float) -> list[Fetched]:
        """Return the parts of the answers that are there, or come before `until_s`."""
        fetched: list[Fetched] = []
        for address in self._readable(until_s):
            link = self._links[address]
            positions, link.open_positions = link.open_positions, {}
            try:
                answer = link.connection.receive()
                self._resumes_s = time.monotonic() + answer.throttle_time_ms / 1000
                if answer.error_code:
                    raise KafkaError(ErrorCode(answer.error_code), "Fetch")
            except (OSError, ProtocolError, KafkaError) as error:
                self._drop(address)
                self._fail(positions, error)
                continue
            for topic in answer.responses:
                for part in topic.partitions:
                    place = TopicPartition(topic.topic, part.partition_index)
                    start = positions.pop(place, None)
                    if start is not None and self.positions.get(place) == start:
                        fetched.extend(self._read_part(place, start, part, link.version))
            if positions and not answer.throttle_time_ms:  # over a quota an answer is empty
                left_out = ", ".join(map(str, list(positions)[:5]))
                self._fail(positions, ProtocolError(f"{link.connection} leaves {left_out} out"))
        return fetched

    def _readable(self, until_s: float) -> list[tuple[str, int]]:
        """Return the brokers whose answer is there, waiting for the first one until `until_s`."""
        waiting = {address: link for address, link in self._links.items() if link.open_positions}
        ready = [address for address, link in waiting.items() if link.connection.wait(0)]
        pause_s = max(0.0, until_s - time.monotonic())
        if ready or not pause_s:
            return ready
        if not waiting:
            resumes_s = self._resumes_s - time.monotonic()
            threading.Event().wait(min(pause_s, max(resumes_s, 0.0)))
            return []
        if self._resumes_s > time.monotonic():  # partitions that failed are asked for again then
            pause_s = min(pause_s, self._resumes_s - time.monotonic())
        is_any_readable((link.connection for link in waiting.values()), pause_s)
        self._check_silence(waiting)
        return [address for address, link in waiting.items() if link.connection.wait(0)]

    def _check_silence(self, waiting: Mapping[tuple[str, int], _FetchLink]) -> None:
        """Leave brokers that have not answered for far longer than they may wait."""
        for address, link in waiting.items():
            if time.monotonic() - link.sent_s > PATIENCE_S and not link.connection.wait(0):
                self._drop(address)
                self._fail(link.open_positions, TimeoutError(f"{link.connection} does not answer"))

    def _read_part(
        self, place: TopicPartition, start: int, part: PartitionData, version: int
    ) -> list[Fetched]:
        """Return what an answer has about a partition, and move the position behind it.

        Raises OffsetGoneError, KafkaError, CorruptionError.
        """
        code = ErrorCode(part.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE and place not in self._followed:
            raise OffsetGoneError(place, start)
        if code:
            self._followed.pop(place, None)
            self._fail([place], KafkaError(code, str(place)))
            return []
        if part.preferred_read_replica >= 0 and not part.records:
            address = self._client.broker(place.topic, part.preferred_read_replica)
            if address is not None:
                self._followed[place] = (address, time.monotonic() + FOLLOWED_S)
            return []
        self._heard_s[place] = time.monotonic()
        aborted: list[tuple[int, int]] = []
        end = part.high_watermark
        if self._is_committed:
            aborted = [
                (transaction.producer_id, transaction.first_offset)
                for transaction in part.aborted_transactions or ()
            ]
            if part.last_stable_offset >= 0:
                end = part.last_stable_offset
        try:
            batches = read_batches(part.records or b"", aborted)
        except CorruptionError as error:
            raise CorruptionError(f"{place}, offset {start}: {error}") from error
        next_offset = start if batches.next_offset is None else max(start, batches.next_offset)
        if batches.next_offset is None and version < _WHOLE_FROM and start < end:
            self._partition_bytes = self._grown(place, start)
            return []
        self.positions[place] = next_offset
        return [Fetched(place, batches.data, start, next_offset, end)]

    def _grown(self, place: TopicPartition, offset: int) -> int:
        """Return a larger limit of a partition, for a batch that does not fit into it.

        Raises CorruptionError beyond any size that a broker may have.
        """
        if self._partition_bytes > ANSWER_BYTES * 8:
            raise CorruptionError(f"{place} has no whole batch at offset {offset}")
        return 2 * self._partition_bytes

    # Failures.

    def _drop(self, address: tuple[str, int]) -> None:
        link = self._links.pop(address, None)
        if link is not None:
            link.connection.close()

    def _fail(self, places: Iterable[TopicPartition], error: Exception) -> None:
        """Ask for partitions again after a pause. Raises `error` if that will not help, or has not
        helped for long.
        """
        code = error.code if isinstance(error, KafkaError) else None
        if code is not None and not code.retriable and code not in UNKNOWN_TOPIC_CODES:
            raise error
        patience_s = UNKNOWN_S if code in UNKNOWN_TOPIC_CODES else PATIENCE_S
        now_s = time.monotonic()
        for place in places:
            self._followed.pop(place, None)
            self._client.forget(place.topic)
            if now_s - self._heard_s.get(place, now_s) >= patience_s:
                raise error
        self._resumes_s = now_s + PAUSE_S
