# fmt: off
# ruff: noqa: E501
"""DescribeTransactions: key 65, versions 0 to 0.

Admin clients ask a transaction coordinator about transactions (KIP-664).

Generated from protocol_specs/apis/65_describe_transactions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IQQH = Struct(">iqqh")


class DescribeTransactionsRequest(Message):
    """Request of DescribeTransactions."""

    __slots__ = ("transactional_ids",)
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("transactional_ids", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        transactional_ids: list[str] | None = None,
    ) -> None:
        self.transactional_ids: list[str] = [] if transactional_ids is None else transactional_ids
        """Transactional ids wanted; empty answers nothing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTransactionsRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        transactional_ids: list[str] = []
        for _ in range(count):
            transactional_ids.append(reader.compact_string())
        self.transactional_ids = transactional_ids
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.transactional_ids))
        for text in self.transactional_ids:
            writer.compact_string(text)
        writer.append(b"\x00")


class TopicData(Message):
    """Partitions in the open transaction; while it ends, those without a marker yet."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 0, False),
        ("partitions", "int32", 0, 0, False),
    )

    def __init__(
        self,
        *,
        topic: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.topic: str = topic
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicData":
        self = cls.__new__(cls)
        self.topic = reader.compact_string()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.topic)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class TransactionState(Message):
    """One description per id."""

    __slots__ = ("error_code", "transactional_id", "transaction_state", "transaction_timeout_ms", "transaction_start_time_ms", "producer_id", "producer_epoch", "topics")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 0, False),
        ("transactional_id", "string", 0, 0, False),
        ("transaction_state", "string", 0, 0, False),
        ("transaction_timeout_ms", "int32", 0, 0, False),
        ("transaction_start_time_ms", "int64", 0, 0, False),
        ("producer_id", "int64", 0, 0, False),
        ("producer_epoch", "int16", 0, 0, False),
        ("topics", "TopicData", 0, 0, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        transactional_id: str = "",
        transaction_state: str = "",
        transaction_timeout_ms: int = 0,
        transaction_start_time_ms: int = 0,
        producer_id: int = 0,
        producer_epoch: int = 0,
        topics: list[TopicData] | None = None,
    ) -> None:
        self.error_code: int = error_code
        """TRANSACTIONAL_ID_NOT_FOUND, NOT_COORDINATOR, …; 0 on success."""
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.transaction_state: str = transaction_state
        """Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit, CompleteAbort or PrepareEpochFence."""
        self.transaction_timeout_ms: int = transaction_timeout_ms
        """The coordinator aborts the transaction after this many ms."""
        self.transaction_start_time_ms: int = transaction_start_time_ms
        """When it began, ms since the epoch; -1 when none is open."""
        self.producer_id: int = producer_id
        """Producer id the transactional id maps to."""
        self.producer_epoch: int = producer_epoch
        """Latest epoch of that producer id."""
        self.topics: list[TopicData] = [] if topics is None else topics
        """Partitions in the open transaction; while it ends, those without a marker yet."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TransactionState":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        self.transactional_id = reader.compact_string()
        self.transaction_state = reader.compact_string()
        (
            self.transaction_timeout_ms,
            self.transaction_start_time_ms,
            self.producer_id,
            self.producer_epoch,
        ) = reader.fixed(_IQQH)
        count = reader.compact_array_count()
        topics: list[TopicData] = []
        for _ in range(count):
            topics.append(TopicData.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_string(self.transactional_id)
        writer.compact_string(self.transaction_state)
        writer.append(_IQQH.pack(
            self.transaction_timeout_ms,
            self.transaction_start_time_ms,
            self.producer_id,
            self.producer_epoch,
        ))
        writer.compact_array_count(len(self.topics))
        for topic_data in self.topics:
            topic_data.write(writer, version)
        writer.append(b"\x00")


class DescribeTransactionsResponse(Message):
    """Answer of DescribeTransactions."""

    __slots__ = ("throttle_time_ms", "transaction_states")
    API_KEY = 65
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("transaction_states", "TransactionState", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.transaction_states: list[TransactionState] = [] if transaction_states is None else transaction_states
        """One description per id."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribeTransactionsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        transaction_states: list[TransactionState] = []
        for _ in range(count):
            transaction_states.append(TransactionState.read(reader, version))
        self.transaction_states = transaction_states
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.transaction_states))
        for transaction_state in self.transaction_states:
            transaction_state.write(writer, version)
        writer.append(b"\x00")
