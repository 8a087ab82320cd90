# fmt: off
# ruff: noqa: E501
"""ListTransactions: key 66, versions 0 to 2.

Admin clients list the transactions a coordinator knows (KIP-664).

Versions:
1: Filter by age (KIP-994).
2: Filter by a pattern of the transactional id (KIP-1152).

Generated from protocol_specs/apis/66_list_transactions.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class ListTransactionsRequest(Message):
    """Request of ListTransactions."""

    __slots__ = ("state_filters", "producer_id_filters", "duration_filter", "transactional_id_pattern")
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("state_filters", "string", 0, 2, False),
        ("producer_id_filters", "int64", 0, 2, False),
        ("duration_filter", "int64", 1, 2, False),
        ("transactional_id_pattern", "string", 2, 2, False),
    )

    def __init__(
        self,
        *,
        state_filters: list[str] | None = None,
        producer_id_filters: list[int] | None = None,
        duration_filter: int = -1,
        transactional_id_pattern: str | None = None,
    ) -> None:
        self.state_filters: list[str] = [] if state_filters is None else state_filters
        """State names to list; empty = any."""
        self.producer_id_filters: list[int] = [] if producer_id_filters is None else producer_id_filters
        """Producer ids to list; empty = any."""
        self.duration_filter: int = duration_filter
        """v1+. Only transactions open for more than this many ms; negative = any."""
        self.transactional_id_pattern: str | None = transactional_id_pattern
        """v2+. RE2 pattern the transactional id must match; null or empty = any."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListTransactionsRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        state_filters: list[str] = []
        for _ in range(count):
            state_filters.append(reader.compact_string())
        self.state_filters = state_filters
        count = reader.compact_array_count()
        self.producer_id_filters = reader.numbers(count, "q")
        if version >= 1:
            self.duration_filter = reader.int64()
        else:
            self.duration_filter = -1
        if version >= 2:
            self.transactional_id_pattern = reader.compact_nullable_string()
        else:
            self.transactional_id_pattern = None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.state_filters))
        for text in self.state_filters:
            writer.compact_string(text)
        writer.compact_array_count(len(self.producer_id_filters))
        writer.numbers(self.producer_id_filters, "q")
        if version >= 1:
            writer.int64(self.duration_filter)
        else:
            if self.duration_filter != -1:
                raise not_carried("ListTransactionsRequest", "duration_filter", version)
        if version >= 2:
            writer.compact_nullable_string(self.transactional_id_pattern)
        else:
            if self.transactional_id_pattern is not None:
                raise not_carried("ListTransactionsRequest", "transactional_id_pattern", version)
        writer.append(b"\x00")


class TransactionState(Message):
    """Transactions found."""

    __slots__ = ("transactional_id", "producer_id", "transaction_state")
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 0, 2, False),
        ("producer_id", "int64", 0, 2, False),
        ("transaction_state", "string", 0, 2, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        transaction_state: str = "",
    ) -> None:
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.transaction_state: str = transaction_state
        """State, by name, e.g. Ongoing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TransactionState":
        self = cls.__new__(cls)
        self.transactional_id = reader.compact_string()
        self.producer_id = reader.int64()
        self.transaction_state = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.int64(self.producer_id)
        writer.compact_string(self.transaction_state)
        writer.append(b"\x00")


class ListTransactionsResponse(Message):
    """Answer of ListTransactions."""

    __slots__ = ("throttle_time_ms", "error_code", "unknown_state_filters", "transaction_states")
    API_KEY = 66
    VERSIONS = (0, 2)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 2, False),
        ("error_code", "error_code", 0, 2, False),
        ("unknown_state_filters", "string", 0, 2, False),
        ("transaction_states", "TransactionState", 0, 2, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        unknown_state_filters: list[str] | None = None,
        transaction_states: list[TransactionState] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """COORDINATOR_LOAD_IN_PROGRESS, INVALID_REGULAR_EXPRESSION, …; 0 on success, even if none is found."""
        self.unknown_state_filters: list[str] = [] if unknown_state_filters is None else unknown_state_filters
        """Names in state_filters that are no state."""
        self.transaction_states: list[TransactionState] = [] if transaction_states is None else transaction_states
        """Transactions found."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ListTransactionsResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        count = reader.compact_array_count()
        unknown_state_filters: list[str] = []
        for _ in range(count):
            unknown_state_filters.append(reader.compact_string())
        self.unknown_state_filters = unknown_state_filters
        count = reader.compact_array_count()
        transaction_states: list[TransactionState] = []
        for _ in range(count):
            transaction_states.append(TransactionState.read(reader, version))
        self.transaction_states = transaction_states
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_array_count(len(self.unknown_state_filters))
        for text in self.unknown_state_filters:
            writer.compact_string(text)
        writer.compact_array_count(len(self.transaction_states))
        for transaction_state in self.transaction_states:
            transaction_state.write(writer, version)
        writer.append(b"\x00")
