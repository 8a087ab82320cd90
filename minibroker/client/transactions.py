"""The calls of a transactional producer to its coordinators.

    initialise ──► producer id and epoch; every older producer of this name is fenced
    committed_offsets ──► of its group, once no transaction about them is open
    add_partitions ── (produce) ── … ── commit_offset ── end
    abort

The requests are those of before KIP-890, version 2. So the epoch stays the same in all transactions
of a session, and a partition is added before its first batch is sent.

A deadline is a time of the monotonic clock, in seconds. Every call raises

    KafkaError     the coordinator refuses, or could not be asked before the deadline
    OSError        no broker answered before the deadline, or it takes no login
    ProtocolError  an answer is malformed, or leaves out a part that was asked for
    ConfigError    the settings of TLS

Source: Kafka TransactionManager; KIP-98, KIP-360, KIP-890.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.groups import stable_offsets
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import by_topic
from minibroker.kafka.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from minibroker.kafka.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from minibroker.kafka.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from minibroker.kafka.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from minibroker.kafka.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from minibroker.client.client import Client
    from minibroker.client.groups import GroupOffset
    from minibroker.kafka.ids import TopicPartition

INIT_VERSIONS: Final = (3, 4)
CALL_VERSIONS: Final = (0, 3)
"""Versions of the other calls; in later ones the epoch changes with each transaction."""
_FENCED: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class ProducerSession:
    """One transactional producer, as its coordinators know it; used by one thread."""

    def __init__(self, client: Client, transactional_id: str, timeout_ms: int) -> None:
        """`timeout_ms`: the coordinator aborts a transaction that is open for longer."""
        self._timeout_ms = timeout_ms
        self._coordinators = CoordinatorClient(client, transactional_id)
        self.transactional_id = transactional_id
        self.producer_id = -1
        self.epoch = -1

    def initialise(self, deadline: float) -> None:
        """Get an id and an epoch; older producers of this name are fenced, their work is aborted.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        answer = self._coordinators.ask(
            InitProducerIdRequest(
                transactional_id=self.transactional_id, transaction_timeout_ms=self._timeout_ms
            ),
            InitProducerIdResponse,
            INIT_VERSIONS,
            deadline,
        )
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch

    def add_partitions(self, places: Iterable[TopicPartition], deadline: float) -> None:
        """Make partitions a part of the transaction, before their first batch.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        added = list(places)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic, partitions=partitions)
                for topic, partitions in by_topic(added).items()
            ],
        )
        code_of = partial(_refusal, added)
        self._coordinators.ask(
            request, AddPartitionsToTxnResponse, CALL_VERSIONS, deadline, code_of
        )

    def committed_offsets(self, place: TopicPartition, deadline: float) -> list[GroupOffset]:
        """Return the committed offsets of the group that has the name of the transactions.

        `place` is asked for by itself if the group has no offsets (`groups.stable_offsets`). Raises
        KafkaError, OSError, ProtocolError, ConfigError.
        """
        return stable_offsets(self._coordinators, place, deadline)

    def commit_offset(
        self, group: str, place: TopicPartition, offset: int, metadata: str, deadline: float
    ) -> None:
        """Make a committed offset of a group a part of the transaction.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        producer: dict[str, Any] = {
            "transactional_id": self.transactional_id,
            "producer_id": self.producer_id,
            "producer_epoch": self.epoch,
            "group_id": group,
        }
        self._coordinators.ask(
            AddOffsetsToTxnRequest(**producer),
            AddOffsetsToTxnResponse,
            CALL_VERSIONS,
            deadline,
        )
        partition = TxnOffsetCommitRequestPartition(
            partition_index=place.partition, committed_offset=offset, committed_metadata=metadata
        )
        topic = TxnOffsetCommitRequestTopic(name=place.topic, partitions=[partition])
        self._coordinators.ask(
            TxnOffsetCommitRequest(**producer, topics=[topic]),
            TxnOffsetCommitResponse,
            CALL_VERSIONS,
            deadline,
            lambda answer: part_of(by_partition(answer.topics), place).error_code,
        )

    def commit(self, deadline: float) -> None:
        """Make the transaction visible; it is decided when this returns.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=True,
        )
        self._coordinators.ask(request, EndTxnResponse, CALL_VERSIONS, deadline)

    def abort(self, deadline: float) -> None:
        """Abort the transaction and take a new epoch.

        So a batch that is still on its way to a broker is refused when it comes. EndTxn would let
        it begin a transaction that nobody ends. The first answer says that the abort goes on. Kafka
        has another epoch then, and refuses the repeated question as one of a fenced producer, whose
        transaction is over, too.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id,
            transaction_timeout_ms=self._timeout_ms,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
        )
        try:
            self._coordinators.ask(request, InitProducerIdResponse, INIT_VERSIONS, deadline)
        except KafkaError as error:
            if error.code not in _FENCED:
                raise


def _refusal(places: Iterable[TopicPartition], answer: AddPartitionsToTxnResponse) -> int:
    """Return the error of the partition that was refused, 0 if none was.

    Raises ProtocolError if one is left out: its batches would be in no transaction.
    """
    codes_of = {
        (topic.name, partition.partition_index): partition.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for partition in topic.results_by_partition
    }
    codes = {part_of(codes_of, place) for place in places}
    refused = sorted(codes - {ErrorCode.NONE, ErrorCode.OPERATION_NOT_ATTEMPTED})
    return refused[0] if refused else ErrorCode.NONE
