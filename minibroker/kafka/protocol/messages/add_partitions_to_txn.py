# fmt: off
# ruff: noqa: E501
"""AddPartitionsToTxn: key 24, versions 0 to 5.

Adds partitions to an open transaction before writing to them: from producers up to v3, from brokers (verifying) after.

Versions:
1: Over quota, the answer goes out first and the pause follows (KIP-219).
2: PRODUCER_FENCED may be answered (KIP-588).
3: Flexible encoding (KIP-482).
4: Several transactions at once, verify-only mode; from brokers only (KIP-890).
5: TRANSACTION_ABORTABLE may be answered (KIP-890).

Generated from protocol_specs/apis/24_add_partitions_to_txn.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")
_QH = Struct(">qh")
_QHZ = Struct(">qh?")


class AddPartitionsToTxnTopic(Message):
    """Partitions of this transaction, grouped by topic."""

    __slots__ = ("name", "partitions")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 5, False),
        ("partitions", "int32", 0, 5, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Numbers of the partitions meant within that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnTopic":
        self = cls.__new__(cls)
        if version >= 3:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        self.partitions = reader.numbers(count, "i")
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_count(len(self.partitions))
        else:
            writer.array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        if version >= 3:
            writer.append(b"\x00")


class AddPartitionsToTxnTransaction(Message):
    """Transactions to extend or verify; from v4 on."""

    __slots__ = ("transactional_id", "producer_id", "producer_epoch", "verify_only", "topics")
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 4, 5, False),
        ("producer_id", "int64", 4, 5, False),
        ("producer_epoch", "int16", 4, 5, False),
        ("verify_only", "bool", 4, 5, False),
        ("topics", "AddPartitionsToTxnTopic", 4, 5, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        producer_id: int = 0,
        producer_epoch: int = 0,
        verify_only: bool = False,
        topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        """The producer's transactional.id."""
        self.producer_id: int = producer_id
        """Producer id (64 bits, unique in the cluster)."""
        self.producer_epoch: int = producer_epoch
        """Epoch of that producer id; a lower one than the known epoch is fenced off."""
        self.verify_only: bool = verify_only
        """True: only check that the partitions belong to the open transaction; add nothing."""
        self.topics: list[AddPartitionsToTxnTopic] = [] if topics is None else topics
        """Partitions of this transaction, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnTransaction":
        self = cls.__new__(cls)
        self.transactional_id = reader.compact_string()
        self.producer_id, self.producer_epoch, self.verify_only = reader.fixed(_QHZ)
        count = reader.compact_array_count()
        topics: list[AddPartitionsToTxnTopic] = []
        for _ in range(count):
            topics.append(AddPartitionsToTxnTopic.read(reader, version))
        self.topics = topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.append(_QHZ.pack(self.producer_id, self.producer_epoch, self.verify_only))
        writer.compact_array_count(len(self.topics))
        for add_partitions_to_txn_topic in self.topics:
            add_partitions_to_txn_topic.write(writer, version)
        writer.append(b"\x00")


class AddPartitionsToTxnRequest(Message):
    """Request of AddPartitionsToTxn."""

    __slots__ = ("transactions", "v3_and_below_transactional_id", "v3_and_below_producer_id", "v3_and_below_producer_epoch", "v3_and_below_topics")
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("transactions", "AddPartitionsToTxnTransaction", 4, 5, False),
        ("v3_and_below_transactional_id", "string", 0, 3, False),
        ("v3_and_below_producer_id", "int64", 0, 3, False),
        ("v3_and_below_producer_epoch", "int16", 0, 3, False),
        ("v3_and_below_topics", "AddPartitionsToTxnTopic", 0, 3, False),
    )

    def __init__(
        self,
        *,
        transactions: list[AddPartitionsToTxnTransaction] | None = None,
        v3_and_below_transactional_id: str = "",
        v3_and_below_producer_id: int = 0,
        v3_and_below_producer_epoch: int = 0,
        v3_and_below_topics: list[AddPartitionsToTxnTopic] | None = None,
    ) -> None:
        self.transactions: list[AddPartitionsToTxnTransaction] = [] if transactions is None else transactions
        """v4+. Transactions to extend or verify; from v4 on."""
        self.v3_and_below_transactional_id: str = v3_and_below_transactional_id
        """v0-3. Transactional id of the only transaction; up to v3."""
        self.v3_and_below_producer_id: int = v3_and_below_producer_id
        """v0-3. Its producer id; up to v3."""
        self.v3_and_below_producer_epoch: int = v3_and_below_producer_epoch
        """v0-3. Its producer epoch; up to v3."""
        self.v3_and_below_topics: list[AddPartitionsToTxnTopic] = [] if v3_and_below_topics is None else v3_and_below_topics
        """v0-3. Partitions to add, grouped by topic; up to v3."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnRequest":
        self = cls.__new__(cls)
        if version >= 4:
            count = reader.compact_array_count()
            transactions: list[AddPartitionsToTxnTransaction] = []
            for _ in range(count):
                transactions.append(AddPartitionsToTxnTransaction.read(reader, version))
            self.transactions = transactions
        else:
            self.transactions = []
        if version >= 4:
            self.v3_and_below_transactional_id = ""
        elif version >= 3:
            self.v3_and_below_transactional_id = reader.compact_string()
        else:
            self.v3_and_below_transactional_id = reader.string()
        if version >= 4:
            self.v3_and_below_producer_id = 0
            self.v3_and_below_producer_epoch = 0
        else:
            self.v3_and_below_producer_id, self.v3_and_below_producer_epoch = reader.fixed(_QH)
        if version >= 4:
            self.v3_and_below_topics = []
        else:
            if version >= 3:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            v3_and_below_topics: list[AddPartitionsToTxnTopic] = []
            for _ in range(count):
                v3_and_below_topics.append(AddPartitionsToTxnTopic.read(reader, version))
            self.v3_and_below_topics = v3_and_below_topics
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.compact_array_count(len(self.transactions))
            for add_partitions_to_txn_transaction in self.transactions:
                add_partitions_to_txn_transaction.write(writer, version)
        else:
            if self.transactions:
                raise not_carried("AddPartitionsToTxnRequest", "transactions", version)
        if version >= 4:
            if self.v3_and_below_transactional_id != "":
                raise not_carried("AddPartitionsToTxnRequest", "v3_and_below_transactional_id", version)
        elif version >= 3:
            writer.compact_string(self.v3_and_below_transactional_id)
        else:
            writer.string(self.v3_and_below_transactional_id)
        if version >= 4:
            if self.v3_and_below_producer_id != 0:
                raise not_carried("AddPartitionsToTxnRequest", "v3_and_below_producer_id", version)
            if self.v3_and_below_producer_epoch != 0:
                raise not_carried("AddPartitionsToTxnRequest", "v3_and_below_producer_epoch", version)
        else:
            writer.append(_QH.pack(
                self.v3_and_below_producer_id,
                self.v3_and_below_producer_epoch,
            ))
        if version >= 4:
            if self.v3_and_below_topics:
                raise not_carried("AddPartitionsToTxnRequest", "v3_and_below_topics", version)
        else:
            if version >= 3:
                writer.compact_array_count(len(self.v3_and_below_topics))
            else:
                writer.array_count(len(self.v3_and_below_topics))
            for add_partitions_to_txn_topic in self.v3_and_below_topics:
                add_partitions_to_txn_topic.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")


class AddPartitionsToTxnPartitionResult(Message):
    """Results by partition."""

    __slots__ = ("partition_index", "partition_error_code")
    JSON_FIELDS: JsonFields = (
        ("partition_index", "int32", 0, 5, False),
        ("partition_error_code", "error_code", 0, 5, False),
    )

    def __init__(
        self,
        *,
        partition_index: int = 0,
        partition_error_code: int = 0,
    ) -> None:
        self.partition_index: int = partition_index
        """Partition number within the topic, counted from 0."""
        self.partition_error_code: int = partition_error_code
        """Result for this partition; OPERATION_NOT_ATTEMPTED when another one failed; 0 on success."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnPartitionResult":
        self = cls.__new__(cls)
        self.partition_index, self.partition_error_code = reader.fixed(_IH)
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.partition_index, self.partition_error_code))
        if version >= 3:
            writer.append(b"\x00")


class AddPartitionsToTxnTopicResult(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "results_by_partition")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 5, False),
        ("results_by_partition", "AddPartitionsToTxnPartitionResult", 0, 5, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        results_by_partition: list[AddPartitionsToTxnPartitionResult] | None = None,
    ) -> None:
        self.name: str = name
        """Topic, by name."""
        self.results_by_partition: list[AddPartitionsToTxnPartitionResult] = [] if results_by_partition is None else results_by_partition
        """Results by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnTopicResult":
        self = cls.__new__(cls)
        if version >= 3:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 3:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        results_by_partition: list[AddPartitionsToTxnPartitionResult] = []
        for _ in range(count):
            results_by_partition.append(AddPartitionsToTxnPartitionResult.read(reader, version))
        self.results_by_partition = results_by_partition
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 3:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 3:
            writer.compact_array_count(len(self.results_by_partition))
        else:
            writer.array_count(len(self.results_by_partition))
        for add_partitions_to_txn_partition_result in self.results_by_partition:
            add_partitions_to_txn_partition_result.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")


class AddPartitionsToTxnResult(Message):
    """Results by transaction; from v4 on."""

    __slots__ = ("transactional_id", "topic_results")
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 4, 5, False),
        ("topic_results", "AddPartitionsToTxnTopicResult", 4, 5, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str = "",
        topic_results: list[AddPartitionsToTxnTopicResult] | None = None,
    ) -> None:
        self.transactional_id: str = transactional_id
        """Transaction of these results."""
        self.topic_results: list[AddPartitionsToTxnTopicResult] = [] if topic_results is None else topic_results
        """Results grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnResult":
        self = cls.__new__(cls)
        self.transactional_id = reader.compact_string()
        count = reader.compact_array_count()
        topic_results: list[AddPartitionsToTxnTopicResult] = []
        for _ in range(count):
            topic_results.append(AddPartitionsToTxnTopicResult.read(reader, version))
        self.topic_results = topic_results
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.transactional_id)
        writer.compact_array_count(len(self.topic_results))
        for add_partitions_to_txn_topic_result in self.topic_results:
            add_partitions_to_txn_topic_result.write(writer, version)
        writer.append(b"\x00")


class AddPartitionsToTxnResponse(Message):
    """Answer of AddPartitionsToTxn."""

    __slots__ = ("throttle_time_ms", "error_code", "results_by_transaction", "results_by_topic_v3_and_below")
    API_KEY = 24
    VERSIONS = (0, 5)
    FLEXIBLE_FROM: int | None = 3
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 5, False),
        ("error_code", "error_code", 4, 5, False),
        ("results_by_transaction", "AddPartitionsToTxnResult", 4, 5, False),
        ("results_by_topic_v3_and_below", "AddPartitionsToTxnTopicResult", 0, 3, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        results_by_transaction: list[AddPartitionsToTxnResult] | None = None,
        results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """v4+. CLUSTER_AUTHORIZATION_FAILED when a non-broker sends v4 or later; 0 otherwise."""
        self.results_by_transaction: list[AddPartitionsToTxnResult] = [] if results_by_transaction is None else results_by_transaction
        """v4+. Results by transaction; from v4 on."""
        self.results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = [] if results_by_topic_v3_and_below is None else results_by_topic_v3_and_below
        """v0-3. Results grouped by topic; up to v3."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "AddPartitionsToTxnResponse":
        self = cls.__new__(cls)
        if version >= 4:
            self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        else:
            self.throttle_time_ms = reader.int32()
            self.error_code = 0
        if version >= 4:
            count = reader.compact_array_count()
            results_by_transaction: list[AddPartitionsToTxnResult] = []
            for _ in range(count):
                results_by_transaction.append(AddPartitionsToTxnResult.read(reader, version))
            self.results_by_transaction = results_by_transaction
        else:
            self.results_by_transaction = []
        if version >= 4:
            self.results_by_topic_v3_and_below = []
        else:
            if version >= 3:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = []
            for _ in range(count):
                results_by_topic_v3_and_below.append(AddPartitionsToTxnTopicResult.read(reader, version))
            self.results_by_topic_v3_and_below = results_by_topic_v3_and_below
        if version >= 3:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 4:
            writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        else:
            writer.int32(self.throttle_time_ms)
        if version >= 4:
            writer.compact_array_count(len(self.results_by_transaction))
            for add_partitions_to_txn_result in self.results_by_transaction:
                add_partitions_to_txn_result.write(writer, version)
        else:
            if self.results_by_transaction:
                raise not_carried("AddPartitionsToTxnResponse", "results_by_transaction", version)
        if version >= 4:
            if self.results_by_topic_v3_and_below:
                raise not_carried("AddPartitionsToTxnResponse", "results_by_topic_v3_and_below", version)
        else:
            if version >= 3:
                writer.compact_array_count(len(self.results_by_topic_v3_and_below))
            else:
                writer.array_count(len(self.results_by_topic_v3_and_below))
            for add_partitions_to_txn_topic_result in self.results_by_topic_v3_and_below:
                add_partitions_to_txn_topic_result.write(writer, version)
        if version >= 3:
            writer.append(b"\x00")
