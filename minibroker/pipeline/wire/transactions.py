"""The calls of a transactional producer to its coordinators.

    initialise ──► producer id and epoch; every older producer of this name is fenced
    committed ──► offsets of its group, once no transaction about them is open
    add_partitions ── (wire.produce_queue) ── … ── commit_offset ── end
    abort

A coordinator that moves, starts or is silent is asked again until the deadline of the caller. Each
call may be repeated: the coordinator knows what it has done.

The requests are those of before KIP-890, version 2. So the epoch stays the same in all transactions
of a session, and a partition is added before its first batch is sent.

Source: Kafka TransactionManager; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import KafkaError, ProtocolError
from minibroker.protocol.dialogue import BrokerRefusedError
from minibroker.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from minibroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from minibroker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from minibroker.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from minibroker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from minibroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from minibroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.pipeline.offsets import TopicPartition
    from minibroker.pipeline.wire.client import WireClient

OF_GROUPS: Final = 0
OF_TRANSACTIONS: Final = 1
FIND_VERSIONS: Final = (1, 3)
INIT_VERSIONS: Final = (3, 4)
CALL_VERSIONS: Final = (0, 3)
"""Versions of the other calls; in later ones the epoch changes with each transaction."""
FETCH_VERSIONS: Final = (7, 7)
"""The version of OffsetFetch that waits for open transactions and asks for one group."""
PAUSE_S: Final = 0.02
_GROUP_CALLS: Final = frozenset({TxnOffsetCommitRequest.API_KEY, OffsetFetchRequest.API_KEY})
_UNFINISHED: Final = frozenset(
    {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT}
)
"""A transaction is about to end; its coordinator is the right one."""
_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class GroupOffset(NamedTuple):
    """A committed offset of a group."""

    topic: str
    partition: int
    offset: int
    metadata: str


class ProducerSession:
    """One transactional producer, as its coordinators know it; used by one thread."""

    def __init__(self, client: WireClient, transactional_id: str, timeout_ms: int) -> None:
        """`timeout_ms`: the coordinator aborts a transaction that is open for longer."""
        self._client = client
        self._timeout_ms = timeout_ms
        self._coordinators: dict[int, tuple[str, int]] = {}
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1

    def initialise(self, deadline: float) -> None:
        """Get an id and an epoch; older producers of this name are fenced, their work is aborted.

        Raises as `_ask`.
        """
        found = self._ask(
            InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
            ),
            InitProducerIdResponse,
            INIT_VERSIONS,
            deadline,
        )
        self.producer_id, self.epoch = found.producer_id, found.producer_epoch

    def add_partitions(self, places: Iterable[TopicPartition], deadline: float) -> None:
        """Make partitions a part of the transaction, before their first batch. Raises as `_ask`."""
        topics: dict[str, list[int]] = {}
        for topic, partition in places:
            topics.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in topics.items()
            ],
        )
        self._ask(request, AddPartitionsToTxnResponse, CALL_VERSIONS, deadline, _added)

    def committed(self, place: TopicPartition, deadline: float) -> list[GroupOffset]:
        """Return the committed offsets of the group that has the name of the transactions.

        Those of a transaction that ends in this moment are waited for.

        Args:
            place: is asked for by itself if the group has no offsets: then a pending one does not
                show.
            deadline: on the monotonic clock.

        Raises as `_ask`.
        """
        alone = OffsetFetchRequestTopic(name=place.topic, partition_indexes=[place.partition])
        for topics in (None, [alone]):
            request = OffsetFetchRequest(
                group_id=self.transactional_id, topics=topics, require_stable=True
            )
            answer = self._ask(request, OffsetFetchResponse, FETCH_VERSIONS, deadline, _unreadable)
            found = [
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
            if found:
                return found
        return []

    def commit_offset(
        self, group: str, place: TopicPartition, offset: int, metadata: str, deadline: float
    ) -> None:
        """Make a committed offset of a group a part of the transaction. Raises as `_ask`."""
        who: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "group_id": group,
        }
        self._ask(
            AddOffsetsToTxnRequest(**who),
            AddOffsetsToTxnResponse,
            CALL_VERSIONS,
            deadline,
        )
        partition = TxnOffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=offset, committed_metadata=metadata
        )
        topic = TxnOffsetCommitRequestTopic(name=place.topic, partitions=[partition])
        self._ask(
            TxnOffsetCommitRequest(**who, topics=[topic]),
            TxnOffsetCommitResponse,
            CALL_VERSIONS,
            deadline,
            lambda found: found.topics[0].partitions[0].error_code,
        )

    def commit(self, deadline: float) -> None:
        """Make the transaction visible; it is decided when this returns. Raises as `_ask`."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        self._ask(request, EndTxnResponse, CALL_VERSIONS, deadline)

    def abort(self, deadline: float) -> None:
        """Abort the transaction and take a new epoch.

        So a batch that is still on its way to a broker is refused when it comes. EndTxn would let
        it begin a transaction that nobody ends. The first answer says that the abort goes on. Kafka
        has another epoch then, and refuses the repeated question as one of a fenced producer, whose
        transaction is over, too.

        Raises as `_ask`.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        try:
            self._ask(request, InitProducerIdResponse, INIT_VERSIONS, deadline)
        except KafkaError as error:
            if error.code not in _FENCED:
                raise

    def _ask(
        self,
        request: Any,
        response: Any,
        versions: tuple[int, int],
        deadline: float,
        code_of: Callable[[Any], int] = lambda found: int(found.error_code),
    ) -> Any:
        """Return the answer of a coordinator, which is asked until it gives one.

        Raises:
            KafkaError: the coordinator refuses, or it could not be asked before the deadline.
            OSError: no broker answered before the deadline, or it takes no login.
            ProtocolError: an answer is malformed.
            ConfigError: the settings of TLS.
        """
        kind = OF_GROUPS if request.API_KEY in _GROUP_CALLS else OF_TRANSACTIONS
        while True:
            try:
                found = self._ask_once(kind, request, response, versions)
                code = code_of(found)
                if not code:
                    return found
                raise KafkaError(ErrorCode(code), type(request).__name__)
            except BrokerRefusedError:
                raise
            except KafkaError as error:
                if not error.code.retriable or time.monotonic() >= deadline:
                    raise
                if error.code not in _UNFINISHED:
                    self._coordinators.pop(kind, None)
            except (OSError, ProtocolError):
                self._coordinators.pop(kind, None)
                if time.monotonic() >= deadline:
                    raise
            threading.Event().wait(PAUSE_S)

    def _ask_once(self, kind: int, request: Any, response: Any, versions: tuple[int, int]) -> Any:
        if kind not in self._coordinators:
            self._coordinators[kind] = self._find(kind)
        return self._client.ask(self._coordinators[kind], request, response, versions)

    def _find(self, kind: int) -> tuple[str, int]:
        # The group of a task has the name of its transactions.
        request = FindCoordinatorRequest(key=self.transactional_id, key_type=kind)
        found = self._client.ask_any(request, FindCoordinatorResponse, FIND_VERSIONS)
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code), found.error_message)
        return found.host, found.port


def _unreadable(found: OffsetFetchResponse) -> int:
    """Return the error of the group, or of a partition; 0 if there is none."""
    codes = [partition.error_code for topic in found.topics for partition in topic.partitions]
    return next((code for code in (found.error_code, *codes) if code), ErrorCode.NONE)


def _added(found: AddPartitionsToTxnResponse) -> int:
    """Return the error of the partition that was refused, 0 if none was."""
    codes = {
        partition.partition_error_code
        for topic in found.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    refused = sorted(codes - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED})
    return refused[0] if refused else ErrorCode.NONE
