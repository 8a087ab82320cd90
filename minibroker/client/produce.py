"""Batches on their way to the leaders of their partitions, of a transaction or of none.

    send ──► a request for each leader, several on their way at once ──► answers, taken in order
                └─ an answer that asks for another try, or a lost connection ──► recovery

Recovery waits for every answer that may still come, asks for the leaders, and sends what is not
acknowledged again: of each partition the oldest batch, and the next one when that is there. Batches
keep their sequence numbers, so a broker that has one already says so and stores it once. At most
five requests are on their way to a broker, as many batches of a partition as a broker remembers.
A batch that is too large for its topic is sent in parts. With acks=0 a broker answers nothing, and
a batch counts as written once the kernel has it.

Source: Kafka Sender, RecordAccumulator, ProducerBatch.split, ProducerStateEntry; KIP-98, KIP-126.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.client.client import UNKNOWN_TOPIC_CODES
from minibroker.client.dialogue import BrokerRefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from minibroker.kafka.records.batch import MAGIC_AT, add_to_sequence, read_header
from minibroker.kafka.records.builder import build_batch
from minibroker.kafka.records.compression import CODEC_NAMES
from minibroker.kafka.records.record import decode_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from minibroker.client.client import Client
    from minibroker.client.connection import BlockingConnection
    from minibroker.kafka.ids import TopicPartition
    from minibroker.kafka.protocol.messages.produce import PartitionProduceResponse

VERSIONS: Final = (3, 11)
"""Versions of Produce: batches of format 2 from 3 on; from 12 on it adds partitions by itself."""
ALL_REPLICAS: Final = -1
IN_FLIGHT_MAX: Final = 5
ANSWER_MS: Final = 30_000
"""Longest wait of a broker for the replicas, as Java's request.timeout.ms."""
PAUSE_S: Final = 0.1
UNKNOWN_S: Final = 30.0
"""Time until a partition that brokers do not know is taken for gone."""
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class OutgoingBatch(NamedTuple):
    """A batch with its number in the sequence of its partition."""

    place: TopicPartition
    records: bytearray
    rows: int


class ProduceLimits(NamedTuple):
    """The limits of one producer, from its settings."""

    in_flight: int
    """Requests on their way to a broker, 1 to `IN_FLIGHT_MAX`."""
    request_bytes: int
    """Batches of one request, unless one alone is larger."""
    patience_s: float
    """Time without a new acknowledgement after which it has failed."""
    acks: int = ALL_REPLICAS
    """-1: all replicas in sync acknowledge, 1: the leader alone, 0: nobody."""
    versions: tuple[int, int] = VERSIONS
    """Versions of Produce; below 3 the batches are message sets of format 0 (below 2) or 1."""


class _Link:
    """A connection and the batches of its requests, the oldest first."""

    def __init__(self, connection: BlockingConnection) -> None:
        self.connection = connection
        self.unanswered: deque[Sequence[OutgoingBatch]] = deque()


class ProduceQueue:
    """The batches of one producer; used by one thread."""

    def __init__(
        self,
        client: Client,
        transactional_id: str | None,
        limits: ProduceLimits,
        on_written: Callable[[OutgoingBatch, int], None],
    ) -> None:
        """`transactional_id` None: the batches are of no transaction. `on_written` takes each batch
        that is acknowledged, and its first offset, -1: unknown.
        """
        self._client = client
        self._transactional_id = transactional_id
        self._limits = limits
        self._on_written = on_written
        self._links: dict[tuple[str, int], _Link] = {}
        self._pending: dict[TopicPartition, deque[OutgoingBatch]] = {}
        """Batches that are not acknowledged, of each partition in order."""
        self._failure: Exception | None = None
        """Why some of the batches have to be sent again."""
        self.accepted_bytes = limits.request_bytes
        """Size of a batch that no broker has refused for its size, nor a batch of twice that."""
        self._progress_s = 0.0

    def send(self, batches: Sequence[OutgoingBatch]) -> None:
        """Send batches, those of a partition in order; waits while enough are on their way.

        Raises:
            KafkaError: a broker refuses a batch, or a partition is not there.
            OSError: no broker answers within `patience_s`, or it takes no login.
            ProtocolError: an answer is malformed, again and again.
            ConfigError: the settings of TLS.
        """
        self._progress_s = time.monotonic()
        for batch in batches:
            self._pending.setdefault(batch.place, deque()).append(batch)
        self._send_all(batches)
        if self._failure is not None:
            self._recover()

    def flush(self) -> None:
        """Wait until every batch is acknowledged.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        self._progress_s = time.monotonic()
        self._drain()
        if self._failure is not None:
            self._recover()

    def close(self) -> None:
        """Give the connections back; those that still wait for an answer are closed."""
        for link in self._links.values():
            self._client.give_back(link.connection)
        self._links.clear()

    def _recover(self) -> None:
        """Send the batches again that are not acknowledged, until they are.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        self._drain()
        while oldest := [queue[0] for queue in self._pending.values() if queue]:
            self._check_patience()
            if self._is_cluster_failing():
                for batch in oldest:
                    self._client.forget(batch.place.topic)
            self._failure = None
            self._send_all(oldest)
            self._drain()
            if self._is_cluster_failing():
                threading.Event().wait(PAUSE_S)
        self._failure = None

    def _is_cluster_failing(self) -> bool:
        """Return whether the failure is one of brokers, and not of a batch that is divided now."""
        failure = self._failure
        is_divided = isinstance(failure, KafkaError) and failure.code in _TOO_LARGE
        return failure is not None and not is_divided

    def _check_patience(self) -> None:
        failure = self._failure
        is_gone = isinstance(failure, KafkaError) and failure.code in UNKNOWN_TOPIC_CODES
        patience_s = min(self._limits.patience_s, UNKNOWN_S if is_gone else float("inf"))
        if failure is not None and time.monotonic() - self._progress_s >= patience_s:
            raise failure

    def _send_all(self, batches: Sequence[OutgoingBatch]) -> None:
        """Send batches until one of them fails."""
        for wave in _waves(batches):
            try:
                requests = list(self._requests(wave))
            except BrokerRefusedError:
                raise
            except (KafkaError, OSError, ProtocolError) as error:
                self._fail(error)
                return
            for address, request in requests:
                self._send(address, request)
                if self._failure is not None:
                    return

    def _requests(
        self, wave: Iterable[OutgoingBatch]
    ) -> Iterator[tuple[tuple[str, int], list[OutgoingBatch]]]:
        """Yield leaders and batches for them: one of a partition.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        by_leader: dict[tuple[str, int], list[OutgoingBatch]] = {}
        for batch in wave:
            address = self._client.leader(*batch.place).address
            request = by_leader.setdefault(address, [])
            size_bytes = sum(len(other.records) for other in request)
            if request and size_bytes + len(batch.records) > self._limits.request_bytes:
                yield address, request
                request = by_leader[address] = []
            request.append(batch)
        yield from by_leader.items()

    def _send(self, address: tuple[str, int], batches: Sequence[OutgoingBatch]) -> None:
        try:
            link = self._link(address)
        except BrokerRefusedError:
            raise
        except (OSError, ProtocolError) as error:
            self._fail(error)
            return
        while len(link.unanswered) >= self._limits.in_flight:
            self._receive(link)
            if self._failure is not None:
                return
        request = self._request(batches)
        try:
            version = link.connection.version_for(request, *self._limits.versions)
            if not self._limits.acks:
                link.connection.send_unanswered(request, version)
                for batch in batches:
                    self._pending[batch.place].remove(batch)
                    self._on_written(batch, -1)
                return
            link.unanswered.append(batches)
            link.connection.send(request, ProduceResponse, version)
        except BrokerRefusedError:
            raise
        except OSError as error:
            self._lose(link, error)

    def _link(self, address: tuple[str, int]) -> _Link:
        """Return the connection to a broker, a new one before its login ends."""
        link = self._links.get(address)
        if link is not None and link.connection.is_retired:
            while link.unanswered and address in self._links:
                self._receive(link)
            self._links.pop(address, None)
            link.connection.close()
            link = None
        if link is None:
            link = self._links[address] = _Link(self._client.connection(address))
        return link

    def _request(self, batches: Sequence[OutgoingBatch]) -> ProduceRequest:
        topics: dict[str, TopicProduceData] = {}
        for batch in batches:
            name, partition = batch.place
            topic = topics.setdefault(name, TopicProduceData(name=name))
            topic.partition_data.append(
                PartitionProduceData(index=partition, records=batch.records)
            )
        return ProduceRequest(
            transactional_id=self._transactional_id,
            acks=self._limits.acks,
            timeout_ms=ANSWER_MS,
            topic_data=list(topics.values()),
        )

    def _drain(self) -> None:
        """Take every answer that is still to come."""
        for link in list(self._links.values()):
            while link.unanswered:
                self._receive(link)

    def _receive(self, link: _Link) -> None:
        """Take the oldest answer. Raises KafkaError for a batch that is refused for good."""
        try:
            answer = link.connection.receive()
        except (OSError, ProtocolError) as error:
            self._lose(link, error)
            return
        parts = {
            (topic.name, partition.index): partition
            for topic in answer.responses
            for partition in topic.partition_responses
        }
        for batch in link.unanswered.popleft():
            part = parts.get(batch.place)
            if part is None:
                self._fail(ProtocolError(f"Produce is answered without {batch.place}"))
            else:
                self._take(batch, part)

    def _take(self, batch: OutgoingBatch, part: PartitionProduceResponse) -> None:
        code = ErrorCode(part.error_code)
        waiting = self._pending[batch.place]
        if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
            waiting.remove(batch)
            self._progress_s = time.monotonic()
            self._on_written(batch, part.base_offset if code == ErrorCode.NONE else -1)
            return
        topic, partition = batch.place
        error = KafkaError(code, part.error_message or f"{topic}-{partition}")
        if code in _TOO_LARGE:
            error = KafkaError(
                code,
                f"{topic}-{partition} takes no batch of {len(batch.records)} bytes: raise "
                "max.message.bytes of the topic, or send smaller records",
            )
        # A batch behind one that was not stored is out of order until that one is sent again.
        is_behind = code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and waiting[0] is not batch
        if code in _TOO_LARGE and batch.rows > 1 and batch.records[MAGIC_AT] == 2:
            self._divide(batch)
        elif not code.retriable and not is_behind:
            raise error
        self._fail(error)

    def _divide(self, batch: OutgoingBatch) -> None:
        """Put smaller batches in place of one that its topic does not take."""
        self.accepted_bytes = max(1, min(self.accepted_bytes, len(batch.records) // 2))
        waiting = self._pending[batch.place]
        at = waiting.index(batch)
        del waiting[at]
        for part in reversed(parts_of(batch, self.accepted_bytes)):
            waiting.insert(at, part)

    def _lose(self, link: _Link, error: Exception) -> None:
        """Leave a connection whose requests will not be answered."""
        link.unanswered.clear()
        link.connection.close()
        self._links.pop(link.connection.address, None)
        self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Remember why batches are to be sent again: the first reason."""
        if self._failure is None:
            self._failure = error


def _waves(batches: Sequence[OutgoingBatch]) -> Iterator[list[OutgoingBatch]]:
    """Yield the batches in turns with one of each partition."""
    waves: list[list[OutgoingBatch]] = []
    counts: dict[TopicPartition, int] = {}
    for batch in batches:
        turn = counts.get(batch.place, 0)
        counts[batch.place] = turn + 1
        if turn == len(waves):
            waves.append([])
        waves[turn].append(batch)
    yield from waves


def parts_of(batch: OutgoingBatch, size_bytes_max: int) -> list[OutgoingBatch]:
    """Return the records of a batch in smaller batches, in order, at least two.

    The parts have the sequence numbers of their records, so the batches behind them keep theirs.

    Args:
        batch: of two records or more.
        size_bytes_max: of a part, about: the parts have equal numbers of records, one at least.
    """
    header = read_header(batch.records)
    records = decode_records(batch.records, header=header)
    count = max(2, -(-len(batch.records) // size_bytes_max))
    step = max(1, len(records) // count)
    return [
        OutgoingBatch(
            batch.place,
            build_batch(
                records[start : start + step],
                codec=CODEC_NAMES[header.codec],
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=add_to_sequence(header.base_sequence, start),
                is_transactional=header.is_transactional,
            ),
            len(records[start : start + step]),
        )
        for start in range(0, len(records), step)
    ]
