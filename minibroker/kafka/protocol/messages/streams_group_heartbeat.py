# fmt: off
# ruff: noqa: E501
"""StreamsGroupHeartbeat: key 88, versions 0 to 1.

A Kafka Streams member joins, stays in, reports its tasks and leaves: all in one heartbeat (KIP-1071).

Versions:
1: topology_description_required, 64-bit recovery lag, status 6 for missing client tags (KIP-1331).

Generated from protocol_specs/apis/88_streams_group_heartbeat.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_ZI = Struct(">?i")
_IH = Struct(">ih")
_II = Struct(">ii")
_IIII = Struct(">iiii")
_IIIQ = Struct(">iiiq")
_IQ = Struct(">iq")


class KeyValue(Message):
    """Topic settings to create it with."""

    __slots__ = ("key", "value")
    JSON_FIELDS: JsonFields = (
        ("key", "string", 0, 1, False),
        ("value", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        key: str = "",
        value: str = "",
    ) -> None:
        self.key: str = key
        """Topic config key."""
        self.value: str = value
        """Value of the setting, as text."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "KeyValue":
        self = cls.__new__(cls)
        self.key = reader.compact_string()
        self.value = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.key)
        writer.compact_string(self.value)
        writer.append(b"\x00")


class TopicInfo(Message):
    """Changelogs of its state stores; the broker creates missing ones."""

    __slots__ = ("name", "partitions", "replication_factor", "topic_configs")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
        ("replication_factor", "int16", 0, 1, False),
        ("topic_configs", "KeyValue", 0, 1, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        partitions: int = 0,
        replication_factor: int = 0,
        topic_configs: list[KeyValue] | None = None,
    ) -> None:
        self.name: str = name
        """Changelog topic, by name."""
        self.partitions: int = partitions
        """Always 0: a changelog gets as many partitions as its subtopology has tasks."""
        self.replication_factor: int = replication_factor
        """Copies per partition; 0 = the broker's default."""
        self.topic_configs: list[KeyValue] = [] if topic_configs is None else topic_configs
        """Topic settings to create it with."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopicInfo":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.partitions, self.replication_factor = reader.fixed(_IH)
        count = reader.compact_array_count()
        topic_configs: list[KeyValue] = []
        for _ in range(count):
            topic_configs.append(KeyValue.read(reader, version))
        self.topic_configs = topic_configs
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.append(_IH.pack(self.partitions, self.replication_factor))
        writer.compact_array_count(len(self.topic_configs))
        for key_value in self.topic_configs:
            key_value.write(writer, version)
        writer.append(b"\x00")


class Endpoint(Message):
    """application.server for interactive queries; null = none, or as before."""

    __slots__ = ("host", "port")
    JSON_FIELDS: JsonFields = (
        ("host", "string", 0, 1, False),
        ("port", "uint16", 0, 1, False),
    )

    def __init__(
        self,
        *,
        host: str = "",
        port: int = 0,
    ) -> None:
        self.host: str = host
        """Host name or address to connect to."""
        self.port: int = port
        """TCP port to connect to."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Endpoint":
        self = cls.__new__(cls)
        self.host = reader.compact_string()
        self.port = reader.uint16()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.host)
        writer.uint16(self.port)
        writer.append(b"\x00")


class TaskOffset(Message):
    """How far tasks have restored; null = as before."""

    __slots__ = ("subtopology_id", "partition", "offset")
    JSON_FIELDS: JsonFields = (
        ("subtopology_id", "string", 0, 1, False),
        ("partition", "int32", 0, 1, False),
        ("offset", "int64", 0, 1, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partition: int = 0,
        offset: int = 0,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Subtopology, by id."""
        self.partition: int = partition
        """Task number within the subtopology."""
        self.offset: int = offset
        """Sum of the changelog offsets restored for the task."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TaskOffset":
        self = cls.__new__(cls)
        self.subtopology_id = reader.compact_string()
        self.partition, self.offset = reader.fixed(_IQ)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.append(_IQ.pack(self.partition, self.offset))
        writer.append(b"\x00")


class TaskIds(Message):
    """Active tasks the member runs; null = as before."""

    __slots__ = ("subtopology_id", "partitions")
    JSON_FIELDS: JsonFields = (
        ("subtopology_id", "string", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        partitions: list[int] | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Subtopology, by id."""
        self.partitions: list[int] = [] if partitions is None else partitions
        """Task numbers: input partitions of the subtopology."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TaskIds":
        self = cls.__new__(cls)
        self.subtopology_id = reader.compact_string()
        count = reader.compact_array_count()
        self.partitions = reader.numbers(count, "i")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_count(len(self.partitions))
        writer.numbers(self.partitions, "i")
        writer.append(b"\x00")


class CopartitionGroup(Message):
    """Sets of source topics that need equal partition counts."""

    __slots__ = ("source_topics", "source_topic_regex", "repartition_source_topics")
    JSON_FIELDS: JsonFields = (
        ("source_topics", "int16", 0, 1, False),
        ("source_topic_regex", "int16", 0, 1, False),
        ("repartition_source_topics", "int16", 0, 1, False),
    )

    def __init__(
        self,
        *,
        source_topics: list[int] | None = None,
        source_topic_regex: list[int] | None = None,
        repartition_source_topics: list[int] | None = None,
    ) -> None:
        self.source_topics: list[int] = [] if source_topics is None else source_topics
        """Members of the set: positions in source_topics of the subtopology."""
        self.source_topic_regex: list[int] = [] if source_topic_regex is None else source_topic_regex
        """Members of the set: positions in source_topic_regex of the subtopology."""
        self.repartition_source_topics: list[int] = [] if repartition_source_topics is None else repartition_source_topics
        """Members of the set: positions in its repartition_source_topics."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "CopartitionGroup":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        self.source_topics = reader.numbers(count, "h")
        count = reader.compact_array_count()
        self.source_topic_regex = reader.numbers(count, "h")
        count = reader.compact_array_count()
        self.repartition_source_topics = reader.numbers(count, "h")
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.source_topics))
        writer.numbers(self.source_topics, "h")
        writer.compact_array_count(len(self.source_topic_regex))
        writer.numbers(self.source_topic_regex, "h")
        writer.compact_array_count(len(self.repartition_source_topics))
        writer.numbers(self.repartition_source_topics, "h")
        writer.append(b"\x00")


class Subtopology(Message):
    """Connected parts of the topology; tasks are numbered within them."""

    __slots__ = ("subtopology_id", "source_topics", "source_topic_regex", "state_changelog_topics", "repartition_sink_topics", "repartition_source_topics", "copartition_groups")
    JSON_FIELDS: JsonFields = (
        ("subtopology_id", "string", 0, 1, False),
        ("source_topics", "string", 0, 1, False),
        ("source_topic_regex", "string", 0, 1, False),
        ("state_changelog_topics", "TopicInfo", 0, 1, False),
        ("repartition_sink_topics", "string", 0, 1, False),
        ("repartition_source_topics", "TopicInfo", 0, 1, False),
        ("copartition_groups", "CopartitionGroup", 0, 1, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        source_topic_regex: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_sink_topics: list[str] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
        copartition_groups: list[CopartitionGroup] | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Name of the subtopology, the same on every client of the application."""
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        """User topics it reads, by name."""
        self.source_topic_regex: list[str] = [] if source_topic_regex is None else source_topic_regex
        """RE2 patterns of user topics it reads."""
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is None else state_changelog_topics
        """Changelogs of its state stores; the broker creates missing ones."""
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is None else repartition_sink_topics
        """Repartition topics fed by this subtopology."""
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is None else repartition_source_topics
        """Repartition topics it reads; the broker creates missing ones."""
        self.copartition_groups: list[CopartitionGroup] = [] if copartition_groups is None else copartition_groups
        """Sets of source topics that need equal partition counts."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Subtopology":
        self = cls.__new__(cls)
        self.subtopology_id = reader.compact_string()
        count = reader.compact_array_count()
        source_topics: list[str] = []
        for _ in range(count):
            source_topics.append(reader.compact_string())
        self.source_topics = source_topics
        count = reader.compact_array_count()
        source_topic_regex: list[str] = []
        for _ in range(count):
            source_topic_regex.append(reader.compact_string())
        self.source_topic_regex = source_topic_regex
        count = reader.compact_array_count()
        state_changelog_topics: list[TopicInfo] = []
        for _ in range(count):
            state_changelog_topics.append(TopicInfo.read(reader, version))
        self.state_changelog_topics = state_changelog_topics
        count = reader.compact_array_count()
        repartition_sink_topics: list[str] = []
        for _ in range(count):
            repartition_sink_topics.append(reader.compact_string())
        self.repartition_sink_topics = repartition_sink_topics
        count = reader.compact_array_count()
        repartition_source_topics: list[TopicInfo] = []
        for _ in range(count):
            repartition_source_topics.append(TopicInfo.read(reader, version))
        self.repartition_source_topics = repartition_source_topics
        count = reader.compact_array_count()
        copartition_groups: list[CopartitionGroup] = []
        for _ in range(count):
            copartition_groups.append(CopartitionGroup.read(reader, version))
        self.copartition_groups = copartition_groups
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_count(len(self.source_topics))
        for text in self.source_topics:
            writer.compact_string(text)
        writer.compact_array_count(len(self.source_topic_regex))
        for text in self.source_topic_regex:
            writer.compact_string(text)
        writer.compact_array_count(len(self.state_changelog_topics))
        for topic_info in self.state_changelog_topics:
            topic_info.write(writer, version)
        writer.compact_array_count(len(self.repartition_sink_topics))
        for text in self.repartition_sink_topics:
            writer.compact_string(text)
        writer.compact_array_count(len(self.repartition_source_topics))
        for topic_info in self.repartition_source_topics:
            topic_info.write(writer, version)
        writer.compact_array_count(len(self.copartition_groups))
        for copartition_group in self.copartition_groups:
            copartition_group.write(writer, version)
        writer.append(b"\x00")


class Topology(Message):
    """Shape of the application; sent on joining only, null later on."""

    __slots__ = ("epoch", "subtopologies")
    JSON_FIELDS: JsonFields = (
        ("epoch", "int32", 0, 1, False),
        ("subtopologies", "Subtopology", 0, 1, False),
    )

    def __init__(
        self,
        *,
        epoch: int = 0,
        subtopologies: list[Subtopology] | None = None,
    ) -> None:
        self.epoch: int = epoch
        """Version of the topology; another than the group's makes the member wait or update it."""
        self.subtopologies: list[Subtopology] = [] if subtopologies is None else subtopologies
        """Connected parts of the topology; tasks are numbered within them."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Topology":
        self = cls.__new__(cls)
        self.epoch = reader.int32()
        count = reader.compact_array_count()
        subtopologies: list[Subtopology] = []
        for _ in range(count):
            subtopologies.append(Subtopology.read(reader, version))
        self.subtopologies = subtopologies
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        writer.compact_array_count(len(self.subtopologies))
        for subtopology in self.subtopologies:
            subtopology.write(writer, version)
        writer.append(b"\x00")


class StreamsGroupHeartbeatRequest(Message):
    """Request of StreamsGroupHeartbeat."""

    __slots__ = ("group_id", "member_id", "member_epoch", "endpoint_information_epoch", "instance_id", "rack_id", "rebalance_timeout_ms", "topology", "active_tasks", "standby_tasks", "warmup_tasks", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "shutdown_application")
    API_KEY = 88
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 1, False),
        ("member_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("endpoint_information_epoch", "int32", 0, 1, False),
        ("instance_id", "string", 0, 1, False),
        ("rack_id", "string", 0, 1, False),
        ("rebalance_timeout_ms", "int32", 0, 1, False),
        ("topology", "Topology", 0, 1, False),
        ("active_tasks", "TaskIds", 0, 1, False),
        ("standby_tasks", "TaskIds", 0, 1, False),
        ("warmup_tasks", "TaskIds", 0, 1, False),
        ("process_id", "string", 0, 1, False),
        ("user_endpoint", "Endpoint", 0, 1, False),
        ("client_tags", "KeyValue", 0, 1, False),
        ("task_offsets", "TaskOffset", 0, 1, False),
        ("task_end_offsets", "TaskOffset", 0, 1, False),
        ("shutdown_application", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        member_epoch: int = 0,
        endpoint_information_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        rebalance_timeout_ms: int = -1,
        topology: Topology | None = None,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        process_id: str | None = None,
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        shutdown_application: bool = False,
    ) -> None:
        self.group_id: str = group_id
        """Streams group (application.id), by name."""
        self.member_id: str = member_id
        """Id of the member, made by the client and kept while the process lives."""
        self.member_epoch: int = member_epoch
        """Epoch told by the coordinator; 0 = join, -1 = leave, -2 = static member leaves for a while."""
        self.endpoint_information_epoch: int = endpoint_information_epoch
        """Version of the endpoint table the client has; a newer table is sent when it is behind."""
        self.instance_id: str | None = instance_id
        """Static member name; null = none, or as before."""
        self.rack_id: str | None = rack_id
        """client.rack of the member; null = none, or as before."""
        self.rebalance_timeout_ms: int = rebalance_timeout_ms
        """Time the member gets to give up tasks, in ms; -1 = as before."""
        self.topology: Topology | None = topology
        """Shape of the application; sent on joining only, null later on."""
        self.active_tasks: list[TaskIds] | None = active_tasks
        """Active tasks the member runs; null = as before."""
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        """Standby tasks the member runs; null = as before."""
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        """Tasks the member warms up to take over later; null = as before."""
        self.process_id: str | None = process_id
        """Process the member runs in, shared by its threads; null = as before."""
        self.user_endpoint: Endpoint | None = user_endpoint
        """application.server for interactive queries; null = none, or as before."""
        self.client_tags: list[KeyValue] | None = client_tags
        """Tags for rack-aware standby placement; null = as before."""
        self.task_offsets: list[TaskOffset] | None = task_offsets
        """How far tasks have restored; null = as before."""
        self.task_end_offsets: list[TaskOffset] | None = task_end_offsets
        """How far the changelogs of the tasks reach; null = as before."""
        self.shutdown_application: bool = shutdown_application
        """True: tell all members of the group to shut down."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupHeartbeatRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        self.member_id = reader.compact_string()
        self.member_epoch, self.endpoint_information_epoch = reader.fixed(_II)
        self.instance_id = reader.compact_nullable_string()
        self.rack_id = reader.compact_nullable_string()
        self.rebalance_timeout_ms = reader.int32()
        self.topology = Topology.read(reader, version) if reader.int8() >= 0 else None
        count = reader.compact_nullable_array_count()
        active_tasks: list[TaskIds] = []
        for _ in range(count):
            active_tasks.append(TaskIds.read(reader, version))
        self.active_tasks = active_tasks if count >= 0 else None
        count = reader.compact_nullable_array_count()
        standby_tasks: list[TaskIds] = []
        for _ in range(count):
            standby_tasks.append(TaskIds.read(reader, version))
        self.standby_tasks = standby_tasks if count >= 0 else None
        count = reader.compact_nullable_array_count()
        warmup_tasks: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks.append(TaskIds.read(reader, version))
        self.warmup_tasks = warmup_tasks if count >= 0 else None
        self.process_id = reader.compact_nullable_string()
        self.user_endpoint = Endpoint.read(reader, version) if reader.int8() >= 0 else None
        count = reader.compact_nullable_array_count()
        client_tags: list[KeyValue] = []
        for _ in range(count):
            client_tags.append(KeyValue.read(reader, version))
        self.client_tags = client_tags if count >= 0 else None
        count = reader.compact_nullable_array_count()
        task_offsets: list[TaskOffset] = []
        for _ in range(count):
            task_offsets.append(TaskOffset.read(reader, version))
        self.task_offsets = task_offsets if count >= 0 else None
        count = reader.compact_nullable_array_count()
        task_end_offsets: list[TaskOffset] = []
        for _ in range(count):
            task_end_offsets.append(TaskOffset.read(reader, version))
        self.task_end_offsets = task_end_offsets if count >= 0 else None
        self.shutdown_application = reader.boolean()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.append(_II.pack(self.member_epoch, self.endpoint_information_epoch))
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.int32(self.rebalance_timeout_ms)
        if self.topology is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.topology.write(writer, version)
        writer.compact_array_count(-1 if self.active_tasks is None else len(self.active_tasks))
        for task_ids in self.active_tasks or []:
            task_ids.write(writer, version)
        writer.compact_array_count(-1 if self.standby_tasks is None else len(self.standby_tasks))
        for task_ids in self.standby_tasks or []:
            task_ids.write(writer, version)
        writer.compact_array_count(-1 if self.warmup_tasks is None else len(self.warmup_tasks))
        for task_ids in self.warmup_tasks or []:
            task_ids.write(writer, version)
        writer.compact_nullable_string(self.process_id)
        if self.user_endpoint is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.user_endpoint.write(writer, version)
        writer.compact_array_count(-1 if self.client_tags is None else len(self.client_tags))
        for key_value in self.client_tags or []:
            key_value.write(writer, version)
        writer.compact_array_count(-1 if self.task_offsets is None else len(self.task_offsets))
        for task_offset in self.task_offsets or []:
            task_offset.write(writer, version)
        writer.compact_array_count(-1 if self.task_end_offsets is None else len(self.task_end_offsets))
        for task_offset in self.task_end_offsets or []:
            task_offset.write(writer, version)
        writer.boolean(self.shutdown_application)
        writer.append(b"\x00")


class Status(Message):
    """Conditions of the group the member should know; Kafka sends an empty list rather than null."""

    __slots__ = ("status_code", "status_detail")
    JSON_FIELDS: JsonFields = (
        ("status_code", "int8", 0, 1, False),
        ("status_detail", "string", 0, 1, False),
    )

    def __init__(
        self,
        *,
        status_code: int = 0,
        status_detail: str = "",
    ) -> None:
        self.status_code: int = status_code
        """0 stale topology, 1 source topic missing, 2 wrong partition count, 3 internal topic missing, 4 shutdown, …."""
        self.status_detail: str = status_detail
        """Explanation for a human, e.g. which topics are missing."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Status":
        self = cls.__new__(cls)
        self.status_code = reader.int8()
        self.status_detail = reader.compact_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int8(self.status_code)
        writer.compact_string(self.status_detail)
        writer.append(b"\x00")


class TopicPartition(Message):
    """Input partitions of its active tasks, grouped by topic."""

    __slots__ = ("topic", "partitions")
    JSON_FIELDS: JsonFields = (
        ("topic", "string", 0, 1, False),
        ("partitions", "int32", 0, 1, False),
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
    def read(cls, reader: Reader, version: int) -> "TopicPartition":
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


class EndpointToPartitions(Message):
    """Endpoint table for interactive queries, one row per member; null = as before."""

    __slots__ = ("user_endpoint", "active_partitions", "standby_partitions")
    JSON_FIELDS: JsonFields = (
        ("user_endpoint", "Endpoint", 0, 1, False),
        ("active_partitions", "TopicPartition", 0, 1, False),
        ("standby_partitions", "TopicPartition", 0, 1, False),
    )

    def __init__(
        self,
        *,
        user_endpoint: Endpoint | None = None,
        active_partitions: list[TopicPartition] | None = None,
        standby_partitions: list[TopicPartition] | None = None,
    ) -> None:
        self.user_endpoint: Endpoint = Endpoint() if user_endpoint is None else user_endpoint
        """Address at which that member answers interactive queries."""
        self.active_partitions: list[TopicPartition] = [] if active_partitions is None else active_partitions
        """Input partitions of its active tasks, grouped by topic."""
        self.standby_partitions: list[TopicPartition] = [] if standby_partitions is None else standby_partitions
        """Input partitions of its standby and warm-up tasks, grouped by topic."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "EndpointToPartitions":
        self = cls.__new__(cls)
        self.user_endpoint = Endpoint.read(reader, version)
        count = reader.compact_array_count()
        active_partitions: list[TopicPartition] = []
        for _ in range(count):
            active_partitions.append(TopicPartition.read(reader, version))
        self.active_partitions = active_partitions
        count = reader.compact_array_count()
        standby_partitions: list[TopicPartition] = []
        for _ in range(count):
            standby_partitions.append(TopicPartition.read(reader, version))
        self.standby_partitions = standby_partitions
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.user_endpoint.write(writer, version)
        writer.compact_array_count(len(self.active_partitions))
        for topic_partition in self.active_partitions:
            topic_partition.write(writer, version)
        writer.compact_array_count(len(self.standby_partitions))
        for topic_partition in self.standby_partitions:
            topic_partition.write(writer, version)
        writer.append(b"\x00")


class StreamsGroupHeartbeatResponse(Message):
    """Answer of StreamsGroupHeartbeat."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message", "member_id", "member_epoch", "heartbeat_interval_ms", "acceptable_recovery_lag_legacy", "task_offset_interval_ms", "acceptable_recovery_lag", "status", "active_tasks", "standby_tasks", "warmup_tasks", "topology_description_required", "endpoint_information_epoch", "partitions_by_user_endpoint")
    API_KEY = 88
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("member_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("heartbeat_interval_ms", "int32", 0, 1, False),
        ("acceptable_recovery_lag_legacy", "int32", 0, 0, False),
        ("task_offset_interval_ms", "int32", 0, 1, False),
        ("acceptable_recovery_lag", "int64", 1, 1, False),
        ("status", "Status", 0, 1, False),
        ("active_tasks", "TaskIds", 0, 1, False),
        ("standby_tasks", "TaskIds", 0, 1, False),
        ("warmup_tasks", "TaskIds", 0, 1, False),
        ("topology_description_required", "bool", 1, 1, False),
        ("endpoint_information_epoch", "int32", 0, 1, False),
        ("partitions_by_user_endpoint", "EndpointToPartitions", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
        member_id: str = "",
        member_epoch: int = 0,
        heartbeat_interval_ms: int = 0,
        acceptable_recovery_lag_legacy: int = 0,
        task_offset_interval_ms: int = 0,
        acceptable_recovery_lag: int = -1,
        status: list[Status] | None | tuple[()] = (),
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
        topology_description_required: bool = False,
        endpoint_information_epoch: int = 0,
        partitions_by_user_endpoint: list[EndpointToPartitions] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH, STREAMS_INVALID_TOPOLOGY, STREAMS_TOPOLOGY_FENCED, …; 0 on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""
        self.member_id: str = member_id
        """Id of the member, as it sent it."""
        self.member_epoch: int = member_epoch
        """Epoch to send in the next heartbeat; -1 or -2 confirms leaving."""
        self.heartbeat_interval_ms: int = heartbeat_interval_ms
        """Time until the next heartbeat, in ms."""
        self.acceptable_recovery_lag_legacy: int = acceptable_recovery_lag_legacy
        """v0. v0: largest lag in records at which a warm-up task counts as caught up."""
        self.task_offset_interval_ms: int = task_offset_interval_ms
        """Time between reports of task offsets, in ms."""
        self.acceptable_recovery_lag: int = acceptable_recovery_lag
        """v1+. Largest lag in records at which a warm-up task counts as caught up; -1 = broker does not tell."""
        self.status: list[Status] | None = [] if isinstance(status, tuple) else status
        """Conditions of the group the member should know; Kafka sends an empty list rather than null."""
        self.active_tasks: list[TaskIds] | None = active_tasks
        """Active tasks the member shall run; null = as before."""
        self.standby_tasks: list[TaskIds] | None = standby_tasks
        """Standby tasks the member shall run; null = as before."""
        self.warmup_tasks: list[TaskIds] | None = warmup_tasks
        """Tasks the member shall warm up; null = as before."""
        self.topology_description_required: bool = topology_description_required
        """v1+. True: the broker wants a StreamsGroupTopologyDescriptionUpdate (KIP-1331)."""
        self.endpoint_information_epoch: int = endpoint_information_epoch
        """Version of the endpoint table, to be sent back."""
        self.partitions_by_user_endpoint: list[EndpointToPartitions] | None = partitions_by_user_endpoint
        """Endpoint table for interactive queries, one row per member; null = as before."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupHeartbeatResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        self.member_id = reader.compact_string()
        if version >= 1:
            (
                self.member_epoch,
                self.heartbeat_interval_ms,
                self.task_offset_interval_ms,
                self.acceptable_recovery_lag,
            ) = reader.fixed(_IIIQ)
            self.acceptable_recovery_lag_legacy = 0
        else:
            (
                self.member_epoch,
                self.heartbeat_interval_ms,
                self.acceptable_recovery_lag_legacy,
                self.task_offset_interval_ms,
            ) = reader.fixed(_IIII)
            self.acceptable_recovery_lag = -1
        count = reader.compact_nullable_array_count()
        status: list[Status] = []
        for _ in range(count):
            status.append(Status.read(reader, version))
        self.status = status if count >= 0 else None
        count = reader.compact_nullable_array_count()
        active_tasks: list[TaskIds] = []
        for _ in range(count):
            active_tasks.append(TaskIds.read(reader, version))
        self.active_tasks = active_tasks if count >= 0 else None
        count = reader.compact_nullable_array_count()
        standby_tasks: list[TaskIds] = []
        for _ in range(count):
            standby_tasks.append(TaskIds.read(reader, version))
        self.standby_tasks = standby_tasks if count >= 0 else None
        count = reader.compact_nullable_array_count()
        warmup_tasks: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks.append(TaskIds.read(reader, version))
        self.warmup_tasks = warmup_tasks if count >= 0 else None
        if version >= 1:
            (
                self.topology_description_required,
                self.endpoint_information_epoch,
            ) = reader.fixed(_ZI)
        else:
            self.endpoint_information_epoch = reader.int32()
            self.topology_description_required = False
        count = reader.compact_nullable_array_count()
        partitions_by_user_endpoint: list[EndpointToPartitions] = []
        for _ in range(count):
            partitions_by_user_endpoint.append(EndpointToPartitions.read(reader, version))
        self.partitions_by_user_endpoint = partitions_by_user_endpoint if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.member_id)
        if version >= 1:
            if self.acceptable_recovery_lag_legacy != 0:
                raise not_carried("StreamsGroupHeartbeatResponse", "acceptable_recovery_lag_legacy", version)
            writer.append(_IIIQ.pack(
                self.member_epoch,
                self.heartbeat_interval_ms,
                self.task_offset_interval_ms,
                self.acceptable_recovery_lag,
            ))
        else:
            writer.append(_IIII.pack(
                self.member_epoch,
                self.heartbeat_interval_ms,
                self.acceptable_recovery_lag_legacy,
                self.task_offset_interval_ms,
            ))
        writer.compact_array_count(-1 if self.status is None else len(self.status))
        for status in self.status or []:
            status.write(writer, version)
        writer.compact_array_count(-1 if self.active_tasks is None else len(self.active_tasks))
        for task_ids in self.active_tasks or []:
            task_ids.write(writer, version)
        writer.compact_array_count(-1 if self.standby_tasks is None else len(self.standby_tasks))
        for task_ids in self.standby_tasks or []:
            task_ids.write(writer, version)
        writer.compact_array_count(-1 if self.warmup_tasks is None else len(self.warmup_tasks))
        for task_ids in self.warmup_tasks or []:
            task_ids.write(writer, version)
        if version >= 1:
            writer.append(_ZI.pack(
                self.topology_description_required,
                self.endpoint_information_epoch,
            ))
        else:
            if self.topology_description_required:
                raise not_carried("StreamsGroupHeartbeatResponse", "topology_description_required", version)
            writer.int32(self.endpoint_information_epoch)
        writer.compact_array_count(-1 if self.partitions_by_user_endpoint is None else len(self.partitions_by_user_endpoint))
        for endpoint_to_partitions in self.partitions_by_user_endpoint or []:
            endpoint_to_partitions.write(writer, version)
        writer.append(b"\x00")
