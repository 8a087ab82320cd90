# fmt: off
# ruff: noqa: E501
"""Produce: key 0, versions 0 to 13.

Producers append record batches to partition logs with it; the partition leader answers, unless acks = 0.

Versions:
1: Throttle time in the response.
2: Response tells the log append time (KIP-32).
3: Transactional id and magic-2 batches (KIP-98).
4: KAFKA_STORAGE_ERROR may be answered.
5: Response tells the log start offset.
6: No change.
7: zstd-compressed batches are allowed (KIP-110).
8: Response names the records that spoilt a batch, with a text (KIP-467).
9: Flexible encoding (KIP-482).
10: Response may carry current leaders and their addresses as tagged fields (KIP-951).
11: TRANSACTION_ABORTABLE may be answered (KIP-890).
12: In a transaction, producing also adds the partition to it: no AddPartitionsToTxn needed (KIP-890 part 2).
13: Topics are named by id; UNKNOWN_TOPIC_ID may be answered (KIP-516).

Generated from protocol_specs/apis/00_produce.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import ZERO_UUID, Buffer, Reader, Writer

_HI = Struct(">hi")
_IHQ = Struct(">ihq")
_IHQQ = Struct(">ihqq")
_IHQQQ = Struct(">ihqqq")
_II = Struct(">ii")


class PartitionProduceData(Message):
    """Batches to append, grouped by partition."""

    __slots__ = ("index", "records")
    JSON_FIELDS: JsonFields = (
        ("index", "int32", 0, 13, False),
        ("records", "records", 0, 13, False),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        records: Buffer | None = None,
    ) -> None:
        self.index: int = index
        """Partition number within the topic, counted from 0."""
        self.records: Buffer | None = records
        """Record batches as they go to the log; from v3 on exactly one batch, of magic 2."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionProduceData":
        self = cls.__new__(cls)
        self.index = reader.int32()
        if version >= 9:
            self.records = reader.compact_records()
        else:
            self.records = reader.records()
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.index)
        if version >= 9:
            writer.compact_records(self.records)
        else:
            writer.records(self.records)
        if version >= 9:
            writer.append(b"\x00")


class TopicProduceData(Message):
    """Batches to append, grouped by topic."""

    __slots__ = ("name", "topic_id", "partition_data")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 12, False),
        ("topic_id", "uuid", 13, 13, False),
        ("partition_data", "PartitionProduceData", 0, 13, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_data: list[PartitionProduceData] | None = None,
    ) -> None:
        self.name: str = name
        """v0-12. Topic, by name; up to v12."""
        self.topic_id: bytes = topic_id
        """v13+. Topic, by id; from v13 on in place of the name."""
        self.partition_data: list[PartitionProduceData] = [] if partition_data is None else partition_data
        """Batches to append, grouped by partition."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicProduceData":
        self = cls.__new__(cls)
        if version >= 13:
            self.name = ""
        elif version >= 9:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 13:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_data: list[PartitionProduceData] = []
        for _ in range(count):
            partition_data.append(PartitionProduceData.read(reader, version))
        self.partition_data = partition_data
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 13:
            pass
        elif version >= 9:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 9:
            writer.compact_array_count(len(self.partition_data))
        else:
            writer.array_count(len(self.partition_data))
        for partition_produce_data in self.partition_data:
            partition_produce_data.write(writer, version)
        if version >= 9:
            writer.append(b"\x00")


class ProduceRequest(Message):
    """Request of Produce."""

    __slots__ = ("transactional_id", "acks", "timeout_ms", "topic_data")
    API_KEY = 0
    VERSIONS = (0, 13)
    FLEXIBLE_FROM: int | None = 9
    JSON_FIELDS: JsonFields = (
        ("transactional_id", "string", 3, 13, False),
        ("acks", "int16", 0, 13, False),
        ("timeout_ms", "int32", 0, 13, False),
        ("topic_data", "TopicProduceData", 0, 13, False),
    )

    def __init__(
        self,
        *,
        transactional_id: str | None = None,
        acks: int = 0,
        timeout_ms: int = 0,
        topic_data: list[TopicProduceData] | None = None,
    ) -> None:
        self.transactional_id: str | None = transactional_id
        """v3+. transactional.id of the sender, checked for WRITE on it; null outside transactions."""
        self.acks: int = acks
        """When to answer: 0 = never, 1 = after the leader's append, -1 = after all in-sync replicas have it."""
        self.timeout_ms: int = timeout_ms
        """Longest wait for the in-sync replicas when acks = -1, in ms; then REQUEST_TIMED_OUT."""
        self.topic_data: list[TopicProduceData] = [] if topic_data is None else topic_data
        """Batches to append, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProduceRequest":
        self = cls.__new__(cls)
        if version >= 9:
            self.transactional_id = reader.compact_nullable_string()
        elif version >= 3:
            self.transactional_id = reader.nullable_string()
        else:
            self.transactional_id = None
        self.acks, self.timeout_ms = reader.fixed(_HI)
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        topic_data: list[TopicProduceData] = []
        for _ in range(count):
            topic_data.append(TopicProduceData.read(reader, version))
        self.topic_data = topic_data
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 9:
            writer.compact_nullable_string(self.transactional_id)
        elif version >= 3:
            writer.nullable_string(self.transactional_id)
        else:
            if self.transactional_id is not None:
                raise not_carried("ProduceRequest", "transactional_id", version)
        writer.append(_HI.pack(self.acks, self.timeout_ms))
        if version >= 9:
            writer.compact_array_count(len(self.topic_data))
        else:
            writer.array_count(len(self.topic_data))
        for topic_produce_data in self.topic_data:
            topic_produce_data.write(writer, version)
        if version >= 9:
            writer.append(b"\x00")


class BatchIndexAndErrorMessage(Message):
    """Offending records when validation refused the whole batch; empty otherwise (KIP-467)."""

    __slots__ = ("batch_index", "batch_index_error_message")
    JSON_FIELDS: JsonFields = (
        ("batch_index", "int32", 8, 13, False),
        ("batch_index_error_message", "string", 8, 13, False),
    )

    def __init__(
        self,
        *,
        batch_index: int = 0,
        batch_index_error_message: str | None = None,
    ) -> None:
        self.batch_index: int = batch_index
        """Position of the refused record in its batch, counted from 0."""
        self.batch_index_error_message: str | None = batch_index_error_message
        """Error of that record; null if there is no message."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "BatchIndexAndErrorMessage":
        self = cls.__new__(cls)
        self.batch_index = reader.int32()
        if version >= 9:
            self.batch_index_error_message = reader.compact_nullable_string()
        else:
            self.batch_index_error_message = reader.nullable_string()
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.batch_index)
        if version >= 9:
            writer.compact_nullable_string(self.batch_index_error_message)
        else:
            writer.nullable_string(self.batch_index_error_message)
        if version >= 9:
            writer.append(b"\x00")


class LeaderIdAndEpoch(Message):
    """Tagged: where the partition leads now, sent with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    __slots__ = ("leader_id", "leader_epoch")
    JSON_FIELDS: JsonFields = (
        ("leader_id", "int32", 10, 13, False),
        ("leader_epoch", "int32", 10, 13, False),
    )

    def __init__(
        self,
        *,
        leader_id: int = -1,
        leader_epoch: int = -1,
    ) -> None:
        self.leader_id: int = leader_id
        """Broker id of the partition leader now; -1 when unknown."""
        self.leader_epoch: int = leader_epoch
        """Leader epoch that goes with that leader; -1 when unknown."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "LeaderIdAndEpoch":
        self = cls.__new__(cls)
        self.leader_id, self.leader_epoch = reader.fixed(_II)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_II.pack(self.leader_id, self.leader_epoch))
        writer.append(b"\x00")


class PartitionProduceResponse(Message):
    """Results by partition of that topic."""

    __slots__ = ("index", "error_code", "base_offset", "log_append_time_ms", "log_start_offset", "record_errors", "error_message", "current_leader")
    JSON_FIELDS: JsonFields = (
        ("index", "int32", 0, 13, False),
        ("error_code", "error_code", 0, 13, False),
        ("base_offset", "int64", 0, 13, False),
        ("log_append_time_ms", "int64", 2, 13, False),
        ("log_start_offset", "int64", 5, 13, False),
        ("record_errors", "BatchIndexAndErrorMessage", 8, 13, False),
        ("error_message", "string", 8, 13, False),
        ("current_leader", "LeaderIdAndEpoch", 10, 13, True),
    )

    def __init__(
        self,
        *,
        index: int = 0,
        error_code: int = 0,
        base_offset: int = 0,
        log_append_time_ms: int = -1,
        log_start_offset: int = -1,
        record_errors: list[BatchIndexAndErrorMessage] | None = None,
        error_message: str | None = None,
        current_leader: LeaderIdAndEpoch | None = None,
    ) -> None:
        self.index: int = index
        """Partition number within the topic, counted from 0."""
        self.error_code: int = error_code
        """Result of the append to this partition; 0 (NONE) on success."""
        self.base_offset: int = base_offset
        """Offset given to the first record of the batch; -1 when nothing was appended."""
        self.log_append_time_ms: int = log_append_time_ms
        """v2+. Broker clock put on the batch, in ms, under message.timestamp.type=LogAppendTime; -1 under CreateTime."""
        self.log_start_offset: int = log_start_offset
        """v5+. First offset the log still holds; -1 when unknown. Lets a producer tell expired state from lost data."""
        self.record_errors: list[BatchIndexAndErrorMessage] = [] if record_errors is None else record_errors
        """v8+. Offending records when validation refused the whole batch; empty otherwise (KIP-467)."""
        self.error_message: str | None = error_message
        """v8+. Summary of why the batch was refused; null when there is nothing to add."""
        self.current_leader: LeaderIdAndEpoch | None = current_leader
        """v10+. Tagged: where the partition leads now, sent with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "PartitionProduceResponse":
        self = cls.__new__(cls)
        if version >= 5:
            (
                self.index,
                self.error_code,
                self.base_offset,
                self.log_append_time_ms,
                self.log_start_offset,
            ) = reader.fixed(_IHQQQ)
        elif version >= 2:
            (
                self.index,
                self.error_code,
                self.base_offset,
                self.log_append_time_ms,
            ) = reader.fixed(_IHQQ)
            self.log_start_offset = -1
        else:
            self.index, self.error_code, self.base_offset = reader.fixed(_IHQ)
            self.log_append_time_ms = -1
            self.log_start_offset = -1
        if version >= 8:
            if version >= 9:
                count = reader.compact_array_count()
            else:
                count = reader.array_count()
            record_errors: list[BatchIndexAndErrorMessage] = []
            for _ in range(count):
                record_errors.append(BatchIndexAndErrorMessage.read(reader, version))
            self.record_errors = record_errors
        else:
            self.record_errors = []
        if version >= 9:
            self.error_message = reader.compact_nullable_string()
        elif version >= 8:
            self.error_message = reader.nullable_string()
        else:
            self.error_message = None
        self.current_leader = None
        if version >= 9:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 10:
                    self.current_leader = LeaderIdAndEpoch.read(reader, version)
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 5:
            writer.append(_IHQQQ.pack(
                self.index,
                self.error_code,
                self.base_offset,
                self.log_append_time_ms,
                self.log_start_offset,
            ))
        elif version >= 2:
            writer.append(_IHQQ.pack(
                self.index,
                self.error_code,
                self.base_offset,
                self.log_append_time_ms,
            ))
        else:
            writer.append(_IHQ.pack(self.index, self.error_code, self.base_offset))
        if version >= 8:
            if version >= 9:
                writer.compact_array_count(len(self.record_errors))
            else:
                writer.array_count(len(self.record_errors))
            for batch_index_and_error_message in self.record_errors:
                batch_index_and_error_message.write(writer, version)
        if version >= 9:
            writer.compact_nullable_string(self.error_message)
        elif version >= 8:
            writer.nullable_string(self.error_message)
        if version >= 9:
            tagged: list[tuple[int, Writer]] = []
            if self.current_leader is not None and self.current_leader != LeaderIdAndEpoch() and version >= 10:
                value = Writer()
                self.current_leader.write(value, version)
                tagged.append((0, value))
            elif self.current_leader is not None and self.current_leader != LeaderIdAndEpoch():
                raise not_carried("PartitionProduceResponse", "current_leader", version)
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.current_leader is not None and self.current_leader != LeaderIdAndEpoch():
                raise not_carried("PartitionProduceResponse", "current_leader", version)


class TopicProduceResponse(Message):
    """Results grouped by topic."""

    __slots__ = ("name", "topic_id", "partition_responses")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 12, False),
        ("topic_id", "uuid", 13, 13, False),
        ("partition_responses", "PartitionProduceResponse", 0, 13, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        topic_id: bytes = ZERO_UUID,
        partition_responses: list[PartitionProduceResponse] | None = None,
    ) -> None:
        self.name: str = name
        """v0-12. Topic of the results, by name; up to v12."""
        self.topic_id: bytes = topic_id
        """v13+. Topic of the results, by id; from v13 on."""
        self.partition_responses: list[PartitionProduceResponse] = [] if partition_responses is None else partition_responses
        """Results by partition of that topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicProduceResponse":
        self = cls.__new__(cls)
        if version >= 13:
            self.name = ""
        elif version >= 9:
            self.name = reader.compact_string()
        else:
            self.name = reader.string()
        if version >= 13:
            self.topic_id = reader.uuid()
        else:
            self.topic_id = ZERO_UUID
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        partition_responses: list[PartitionProduceResponse] = []
        for _ in range(count):
            partition_responses.append(PartitionProduceResponse.read(reader, version))
        self.partition_responses = partition_responses
        if version >= 9:
            reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 13:
            pass
        elif version >= 9:
            writer.compact_string(self.name)
        else:
            writer.string(self.name)
        if version >= 13:
            writer.uuid(self.topic_id)
        if version >= 9:
            writer.compact_array_count(len(self.partition_responses))
        else:
            writer.array_count(len(self.partition_responses))
        for partition_produce_response in self.partition_responses:
            partition_produce_response.write(writer, version)
        if version >= 9:
            writer.append(b"\x00")


class NodeEndpoint(Message):
    """Tagged: addresses of the leaders named in current_leader, saves a metadata refresh (KIP-951)."""

    __slots__ = ("node_id", "host", "port", "rack")
    JSON_FIELDS: JsonFields = (
        ("node_id", "int32", 10, 13, False),
        ("host", "string", 10, 13, False),
        ("port", "int32", 10, 13, False),
        ("rack", "string", 10, 13, False),
    )

    def __init__(
        self,
        *,
        node_id: int = 0,
        host: str = "",
        port: int = 0,
        rack: str | None = None,
    ) -> None:
        self.node_id: int = node_id
        """The node's id, as in broker.id."""
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""
        self.rack: str | None = rack
        """The node's broker.rack; null when it is not configured."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "NodeEndpoint":
        self = cls.__new__(cls)
        self.node_id = reader.int32()
        self.host = reader.compact_string()
        self.port = reader.int32()
        self.rack = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.node_id)
        writer.compact_string(self.host)
        writer.int32(self.port)
        writer.compact_nullable_string(self.rack)
        writer.append(b"\x00")


class ProduceResponse(Message):
    """Answer of Produce."""

    __slots__ = ("responses", "throttle_time_ms", "node_endpoints")
    API_KEY = 0
    VERSIONS = (0, 13)
    FLEXIBLE_FROM: int | None = 9
    JSON_FIELDS: JsonFields = (
        ("responses", "TopicProduceResponse", 0, 13, False),
        ("throttle_time_ms", "int32", 1, 13, False),
        ("node_endpoints", "NodeEndpoint", 10, 13, True),
    )

    def __init__(
        self,
        *,
        responses: list[TopicProduceResponse] | None = None,
        throttle_time_ms: int = 0,
        node_endpoints: list[NodeEndpoint] | None = None,
    ) -> None:
        self.responses: list[TopicProduceResponse] = [] if responses is None else responses
        """Results grouped by topic."""
        self.throttle_time_ms: int = throttle_time_ms
        """v1+. Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.node_endpoints: list[NodeEndpoint] = [] if node_endpoints is None else node_endpoints
        """v10+. Tagged: addresses of the leaders named in current_leader, saves a metadata refresh (KIP-951)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "ProduceResponse":
        self = cls.__new__(cls)
        if version >= 9:
            count = reader.compact_array_count()
        else:
            count = reader.array_count()
        responses: list[TopicProduceResponse] = []
        for _ in range(count):
            responses.append(TopicProduceResponse.read(reader, version))
        self.responses = responses
        if version >= 1:
            self.throttle_time_ms = reader.int32()
        else:
            self.throttle_time_ms = 0
        self.node_endpoints = []
        if version >= 9:
            for _ in range(reader.tag_count()):
                tag = reader.uvarint()
                end = reader.tag_end()
                if tag == 0 and version >= 10:
                    count = reader.compact_array_count()
                    node_endpoints: list[NodeEndpoint] = []
                    for _ in range(count):
                        node_endpoints.append(NodeEndpoint.read(reader, version))
                    self.node_endpoints = node_endpoints
                else:
                    reader.position = end
                reader.finish_tag(end)
        return self

    def write(self, writer: Writer, version: int) -> None:
        if version >= 9:
            writer.compact_array_count(len(self.responses))
        else:
            writer.array_count(len(self.responses))
        for topic_produce_response in self.responses:
            topic_produce_response.write(writer, version)
        if version >= 1:
            writer.int32(self.throttle_time_ms)
        if version >= 9:
            tagged: list[tuple[int, Writer]] = []
            if self.node_endpoints and version >= 10:
                value = Writer()
                value.compact_array_count(len(self.node_endpoints))
                for node_endpoint in self.node_endpoints:
                    node_endpoint.write(value, version)
                tagged.append((0, value))
            elif self.node_endpoints:
                raise not_carried("ProduceResponse", "node_endpoints", version)
            if tagged:
                writer.tagged_fields(tagged)
            else:
                writer.append(b"\x00")
        else:
            if self.node_endpoints:
                raise not_carried("ProduceResponse", "node_endpoints", version)
