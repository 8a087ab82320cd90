"""The shapes of transactions, and of producers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from minibroker.control.shapes import AnswerShape, BrokerId, Count, PlaceView, QueryShape


class TransactionView(AnswerShape):
    """A transactional id that a broker of this process coordinates."""

    transactional_id: str
    broker_id: BrokerId
    state: Annotated[str, Meta(description="Kafka's name: `Ongoing`, `CompleteCommit`, …")]
    is_open: bool
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    started_ms: Annotated[int, Meta(description="Null: none is open.")] | None
    age_ms: Annotated[int, Meta(description="Null: none is open.")] | None
    partitions: Annotated[list[PlaceView], Meta(description="At most 100.")]


class HangingView(AnswerShape):
    """A transaction that is open in a partition, and that no coordinator will end."""

    topic: str
    partition: int
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int
    age_ms: Annotated[int, Meta(description="Since its last record.")]


class TransactionsView(AnswerShape):
    """Transactions, open ones first, and those that hang."""

    transactions: list[TransactionView]
    hanging: list[HangingView]
    cut: Annotated[bool, Meta(description="True: there are more.")]
    knows_all: Annotated[
        bool,
        Meta(
            description="False: brokers of other processes coordinate some, so it is not known"
            " which hang."
        ),
    ]


class TransactionsQuery(QueryShape):
    """A choice of transactions."""

    limit: Annotated[int, Meta(ge=1, le=1000, description="The most of either list.")] = 200
    only_open: Annotated[bool, Meta(description="Leave out those that have ended.")] = False


class AbortChoice(QueryShape):
    """A transaction to abort: by its id, or one that hangs by its place."""

    transactional_id: str | None = None
    topic: str | None = None
    partition: Count | None = None
    producer_id: Count | None = None


class AbortView(AnswerShape):
    """A transaction was aborted."""

    aborted: bool


class ProducerView(AnswerShape):
    """A producer that a partition knows."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: Annotated[int, Meta(description="Null: none is open.")] | None


class PartitionQuery(QueryShape):
    """A choice of a partition."""

    partition: Count = 0
