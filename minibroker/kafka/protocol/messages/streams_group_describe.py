# fmt: off
# ruff: noqa: E501
"""StreamsGroupDescribe: key 89, versions 0 to 1.

Admin clients ask a coordinator about streams groups (KIP-1071).

Versions:
1: Topology description and its status (KIP-1331); assignor name (KIP-1357).

Generated from protocol_specs/apis/89_streams_group_describe.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message, not_carried
from minibroker.kafka.protocol.primitives import Reader, Writer

_ZZ = Struct(">??")
_IH = Struct(">ih")
_II = Struct(">ii")
_IQ = Struct(">iq")


class StreamsGroupDescribeRequest(Message):
    """Request of StreamsGroupDescribe."""

    __slots__ = ("group_ids", "include_authorized_operations", "include_topology_description")
    API_KEY = 89
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_ids", "string", 0, 1, False),
        ("include_authorized_operations", "bool", 0, 1, False),
        ("include_topology_description", "bool", 1, 1, False),
    )

    def __init__(
        self,
        *,
        group_ids: list[str] | None = None,
        include_authorized_operations: bool = False,
        include_topology_description: bool = False,
    ) -> None:
        self.group_ids: list[str] = [] if group_ids is None else group_ids
        """Names of the groups wanted."""
        self.include_authorized_operations: bool = include_authorized_operations
        """True: also answer which ACL operations the caller may do on each group."""
        self.include_topology_description: bool = include_topology_description
        """v1+. True: also send the stored description of the topology (KIP-1331)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupDescribeRequest":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        group_ids: list[str] = []
        for _ in range(count):
            group_ids.append(reader.compact_string())
        self.group_ids = group_ids
        if version >= 1:
            (
                self.include_authorized_operations,
                self.include_topology_description,
            ) = reader.fixed(_ZZ)
        else:
            self.include_authorized_operations = reader.boolean()
            self.include_topology_description = False
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.group_ids))
        for text in self.group_ids:
            writer.compact_string(text)
        if version >= 1:
            writer.append(_ZZ.pack(
                self.include_authorized_operations,
                self.include_topology_description,
            ))
        else:
            if self.include_topology_description:
                raise not_carried("StreamsGroupDescribeRequest", "include_topology_description", version)
            writer.boolean(self.include_authorized_operations)
        writer.append(b"\x00")


class Endpoint(Message):
    """Address at which the member answers interactive queries; null if it does not."""

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
    """How far tasks have restored, as last reported."""

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
    """Active tasks, grouped by subtopology."""

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


class Assignment(Message):
    """Tasks the member runs now."""

    __slots__ = ("active_tasks", "standby_tasks", "warmup_tasks")
    JSON_FIELDS: JsonFields = (
        ("active_tasks", "TaskIds", 0, 1, False),
        ("standby_tasks", "TaskIds", 0, 1, False),
        ("warmup_tasks", "TaskIds", 0, 1, False),
    )

    def __init__(
        self,
        *,
        active_tasks: list[TaskIds] | None = None,
        standby_tasks: list[TaskIds] | None = None,
        warmup_tasks: list[TaskIds] | None = None,
    ) -> None:
        self.active_tasks: list[TaskIds] = [] if active_tasks is None else active_tasks
        """Active tasks, grouped by subtopology."""
        self.standby_tasks: list[TaskIds] = [] if standby_tasks is None else standby_tasks
        """Standby tasks, grouped by subtopology."""
        self.warmup_tasks: list[TaskIds] = [] if warmup_tasks is None else warmup_tasks
        """Warm-up tasks, grouped by subtopology."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Assignment":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        active_tasks: list[TaskIds] = []
        for _ in range(count):
            active_tasks.append(TaskIds.read(reader, version))
        self.active_tasks = active_tasks
        count = reader.compact_array_count()
        standby_tasks: list[TaskIds] = []
        for _ in range(count):
            standby_tasks.append(TaskIds.read(reader, version))
        self.standby_tasks = standby_tasks
        count = reader.compact_array_count()
        warmup_tasks: list[TaskIds] = []
        for _ in range(count):
            warmup_tasks.append(TaskIds.read(reader, version))
        self.warmup_tasks = warmup_tasks
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.active_tasks))
        for task_ids in self.active_tasks:
            task_ids.write(writer, version)
        writer.compact_array_count(len(self.standby_tasks))
        for task_ids in self.standby_tasks:
            task_ids.write(writer, version)
        writer.compact_array_count(len(self.warmup_tasks))
        for task_ids in self.warmup_tasks:
            task_ids.write(writer, version)
        writer.append(b"\x00")


class KeyValue(Message):
    """Topic settings it was created with."""

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
    """Changelogs of its state stores."""

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
        """Partition count it must have; 0 = not laid down."""
        self.replication_factor: int = replication_factor
        """Copies per partition; 0 = the broker's default."""
        self.topic_configs: list[KeyValue] = [] if topic_configs is None else topic_configs
        """Topic settings it was created with."""

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


class TopologyDescriptionNode(Message):
    """Sources, processors and sinks of the subtopology."""

    __slots__ = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 1, 1, False),
        ("node_type", "int8", 1, 1, False),
        ("source_topics", "string", 1, 1, False),
        ("sink_topic", "string", 1, 1, False),
        ("stores", "string", 1, 1, False),
        ("successors", "string", 1, 1, False),
    )

    def __init__(
        self,
        *,
        name: str = "",
        node_type: int = 0,
        source_topics: list[str] | None = None,
        sink_topic: str | None = None,
        stores: list[str] | None = None,
        successors: list[str] | None = None,
    ) -> None:
        self.name: str = name
        """Node of the topology, by name."""
        self.node_type: int = node_type
        """Kind: 1 reads topics (source), 2 computes (processor), 3 writes a topic (sink)."""
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        """Topics a source reads; empty for other nodes or when chosen at run time."""
        self.sink_topic: str | None = sink_topic
        """Topic a sink writes; null for other nodes or when chosen at run time."""
        self.stores: list[str] = [] if stores is None else stores
        """State stores a processor uses; empty for other nodes."""
        self.successors: list[str] = [] if successors is None else successors
        """Nodes its output goes to, by name."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopologyDescriptionNode":
        self = cls.__new__(cls)
        self.name = reader.compact_string()
        self.node_type = reader.int8()
        count = reader.compact_array_count()
        source_topics: list[str] = []
        for _ in range(count):
            source_topics.append(reader.compact_string())
        self.source_topics = source_topics
        self.sink_topic = reader.compact_nullable_string()
        count = reader.compact_array_count()
        stores: list[str] = []
        for _ in range(count):
            stores.append(reader.compact_string())
        self.stores = stores
        count = reader.compact_array_count()
        successors: list[str] = []
        for _ in range(count):
            successors.append(reader.compact_string())
        self.successors = successors
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.name)
        writer.int8(self.node_type)
        writer.compact_array_count(len(self.source_topics))
        for text in self.source_topics:
            writer.compact_string(text)
        writer.compact_nullable_string(self.sink_topic)
        writer.compact_array_count(len(self.stores))
        for text in self.stores:
            writer.compact_string(text)
        writer.compact_array_count(len(self.successors))
        for text in self.successors:
            writer.compact_string(text)
        writer.append(b"\x00")


class TopologyDescriptionSubtopology(Message):
    """Connected parts of the topology."""

    __slots__ = ("subtopology_id", "nodes")
    JSON_FIELDS: JsonFields = (
        ("subtopology_id", "string", 1, 1, False),
        ("nodes", "TopologyDescriptionNode", 1, 1, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Subtopology, by id."""
        self.nodes: list[TopologyDescriptionNode] = [] if nodes is None else nodes
        """Sources, processors and sinks of the subtopology."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopologyDescriptionSubtopology":
        self = cls.__new__(cls)
        self.subtopology_id = reader.compact_string()
        count = reader.compact_array_count()
        nodes: list[TopologyDescriptionNode] = []
        for _ in range(count):
            nodes.append(TopologyDescriptionNode.read(reader, version))
        self.nodes = nodes
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_count(len(self.nodes))
        for topology_description_node in self.nodes:
            topology_description_node.write(writer, version)
        writer.append(b"\x00")


class TopologyDescriptionGlobalStore(Message):
    """State stores every instance holds in full."""

    __slots__ = ("source", "processor")
    JSON_FIELDS: JsonFields = (
        ("source", "TopologyDescriptionNode", 1, 1, False),
        ("processor", "TopologyDescriptionNode", 1, 1, False),
    )

    def __init__(
        self,
        *,
        source: TopologyDescriptionNode | None = None,
        processor: TopologyDescriptionNode | None = None,
    ) -> None:
        self.source: TopologyDescriptionNode = TopologyDescriptionNode() if source is None else source
        """Source that feeds the global store."""
        self.processor: TopologyDescriptionNode = TopologyDescriptionNode() if processor is None else processor
        """Processor that writes into the global store."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopologyDescriptionGlobalStore":
        self = cls.__new__(cls)
        self.source = TopologyDescriptionNode.read(reader, version)
        self.processor = TopologyDescriptionNode.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        self.source.write(writer, version)
        self.processor.write(writer, version)
        writer.append(b"\x00")


class TopologyDescription(Message):
    """Full description as pushed by a client; null unless the status is 3."""

    __slots__ = ("subtopologies", "global_stores")
    JSON_FIELDS: JsonFields = (
        ("subtopologies", "TopologyDescriptionSubtopology", 1, 1, False),
        ("global_stores", "TopologyDescriptionGlobalStore", 1, 1, False),
    )

    def __init__(
        self,
        *,
        subtopologies: list[TopologyDescriptionSubtopology] | None = None,
        global_stores: list[TopologyDescriptionGlobalStore] | None = None,
    ) -> None:
        self.subtopologies: list[TopologyDescriptionSubtopology] = [] if subtopologies is None else subtopologies
        """Connected parts of the topology."""
        self.global_stores: list[TopologyDescriptionGlobalStore] = [] if global_stores is None else global_stores
        """State stores every instance holds in full."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "TopologyDescription":
        self = cls.__new__(cls)
        count = reader.compact_array_count()
        subtopologies: list[TopologyDescriptionSubtopology] = []
        for _ in range(count):
            subtopologies.append(TopologyDescriptionSubtopology.read(reader, version))
        self.subtopologies = subtopologies
        count = reader.compact_array_count()
        global_stores: list[TopologyDescriptionGlobalStore] = []
        for _ in range(count):
            global_stores.append(TopologyDescriptionGlobalStore.read(reader, version))
        self.global_stores = global_stores
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_array_count(len(self.subtopologies))
        for topology_description_subtopology in self.subtopologies:
            topology_description_subtopology.write(writer, version)
        writer.compact_array_count(len(self.global_stores))
        for topology_description_global_store in self.global_stores:
            topology_description_global_store.write(writer, version)
        writer.append(b"\x00")


class Subtopology(Message):
    """Its parts with patterns resolved to topics; null while the group is not ready."""

    __slots__ = ("subtopology_id", "source_topics", "repartition_sink_topics", "state_changelog_topics", "repartition_source_topics")
    JSON_FIELDS: JsonFields = (
        ("subtopology_id", "string", 0, 1, False),
        ("source_topics", "string", 0, 1, False),
        ("repartition_sink_topics", "string", 0, 1, False),
        ("state_changelog_topics", "TopicInfo", 0, 1, False),
        ("repartition_source_topics", "TopicInfo", 0, 1, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        source_topics: list[str] | None = None,
        repartition_sink_topics: list[str] | None = None,
        state_changelog_topics: list[TopicInfo] | None = None,
        repartition_source_topics: list[TopicInfo] | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Name of the subtopology, the same on every client of the application."""
        self.source_topics: list[str] = [] if source_topics is None else source_topics
        """User topics it reads, by name."""
        self.repartition_sink_topics: list[str] = [] if repartition_sink_topics is None else repartition_sink_topics
        """Repartition topics fed by this subtopology."""
        self.state_changelog_topics: list[TopicInfo] = [] if state_changelog_topics is None else state_changelog_topics
        """Changelogs of its state stores."""
        self.repartition_source_topics: list[TopicInfo] = [] if repartition_source_topics is None else repartition_source_topics
        """Repartition topics it reads."""

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
        repartition_sink_topics: list[str] = []
        for _ in range(count):
            repartition_sink_topics.append(reader.compact_string())
        self.repartition_sink_topics = repartition_sink_topics
        count = reader.compact_array_count()
        state_changelog_topics: list[TopicInfo] = []
        for _ in range(count):
            state_changelog_topics.append(TopicInfo.read(reader, version))
        self.state_changelog_topics = state_changelog_topics
        count = reader.compact_array_count()
        repartition_source_topics: list[TopicInfo] = []
        for _ in range(count):
            repartition_source_topics.append(TopicInfo.read(reader, version))
        self.repartition_source_topics = repartition_source_topics
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.subtopology_id)
        writer.compact_array_count(len(self.source_topics))
        for text in self.source_topics:
            writer.compact_string(text)
        writer.compact_array_count(len(self.repartition_sink_topics))
        for text in self.repartition_sink_topics:
            writer.compact_string(text)
        writer.compact_array_count(len(self.state_changelog_topics))
        for topic_info in self.state_changelog_topics:
            topic_info.write(writer, version)
        writer.compact_array_count(len(self.repartition_source_topics))
        for topic_info in self.repartition_source_topics:
            topic_info.write(writer, version)
        writer.append(b"\x00")


class Topology(Message):
    """Topology in force; null on error."""

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
        """Version of the topology."""
        self.subtopologies: list[Subtopology] | None = subtopologies
        """Its parts with patterns resolved to topics; null while the group is not ready."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Topology":
        self = cls.__new__(cls)
        self.epoch = reader.int32()
        count = reader.compact_nullable_array_count()
        subtopologies: list[Subtopology] = []
        for _ in range(count):
            subtopologies.append(Subtopology.read(reader, version))
        self.subtopologies = subtopologies if count >= 0 else None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.epoch)
        writer.compact_array_count(-1 if self.subtopologies is None else len(self.subtopologies))
        for subtopology in self.subtopologies or []:
            subtopology.write(writer, version)
        writer.append(b"\x00")


class Member(Message):
    """Members of the group."""

    __slots__ = ("member_id", "member_epoch", "instance_id", "rack_id", "client_id", "client_host", "topology_epoch", "process_id", "user_endpoint", "client_tags", "task_offsets", "task_end_offsets", "assignment", "target_assignment", "is_classic")
    JSON_FIELDS: JsonFields = (
        ("member_id", "string", 0, 1, False),
        ("member_epoch", "int32", 0, 1, False),
        ("instance_id", "string", 0, 1, False),
        ("rack_id", "string", 0, 1, False),
        ("client_id", "string", 0, 1, False),
        ("client_host", "string", 0, 1, False),
        ("topology_epoch", "int32", 0, 1, False),
        ("process_id", "string", 0, 1, False),
        ("user_endpoint", "Endpoint", 0, 1, False),
        ("client_tags", "KeyValue", 0, 1, False),
        ("task_offsets", "TaskOffset", 0, 1, False),
        ("task_end_offsets", "TaskOffset", 0, 1, False),
        ("assignment", "Assignment", 0, 1, False),
        ("target_assignment", "Assignment", 0, 1, False),
        ("is_classic", "bool", 0, 1, False),
    )

    def __init__(
        self,
        *,
        member_id: str = "",
        member_epoch: int = 0,
        instance_id: str | None = None,
        rack_id: str | None = None,
        client_id: str = "",
        client_host: str = "",
        topology_epoch: int = 0,
        process_id: str = "",
        user_endpoint: Endpoint | None = None,
        client_tags: list[KeyValue] | None = None,
        task_offsets: list[TaskOffset] | None = None,
        task_end_offsets: list[TaskOffset] | None = None,
        assignment: Assignment | None = None,
        target_assignment: Assignment | None = None,
        is_classic: bool = False,
    ) -> None:
        self.member_id: str = member_id
        """Member, by the id the coordinator knows it under."""
        self.member_epoch: int = member_epoch
        """Epoch the member has reached."""
        self.instance_id: str | None = instance_id
        """Static member name (group.instance.id, KIP-345); null for a dynamic member."""
        self.rack_id: str | None = rack_id
        """client.rack of the member; null = none."""
        self.client_id: str = client_id
        """client_id of the request header the member last joined with."""
        self.client_host: str = client_host
        """Address the member connected from, as text."""
        self.topology_epoch: int = topology_epoch
        """Version of the topology the member runs."""
        self.process_id: str = process_id
        """Process the member runs in, shared by its threads."""
        self.user_endpoint: Endpoint | None = user_endpoint
        """Address at which the member answers interactive queries; null if it does not."""
        self.client_tags: list[KeyValue] = [] if client_tags is None else client_tags
        """Tags for rack-aware standby placement."""
        self.task_offsets: list[TaskOffset] = [] if task_offsets is None else task_offsets
        """How far tasks have restored, as last reported."""
        self.task_end_offsets: list[TaskOffset] = [] if task_end_offsets is None else task_end_offsets
        """How far the changelogs of the tasks reach, as last reported."""
        self.assignment: Assignment = Assignment() if assignment is None else assignment
        """Tasks the member runs now."""
        self.target_assignment: Assignment = Assignment() if target_assignment is None else target_assignment
        """Tasks the member will run once everybody has moved."""
        self.is_classic: bool = is_classic
        """True for a member that still speaks the classic protocol."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "Member":
        self = cls.__new__(cls)
        self.member_id = reader.compact_string()
        self.member_epoch = reader.int32()
        self.instance_id = reader.compact_nullable_string()
        self.rack_id = reader.compact_nullable_string()
        self.client_id = reader.compact_string()
        self.client_host = reader.compact_string()
        self.topology_epoch = reader.int32()
        self.process_id = reader.compact_string()
        self.user_endpoint = Endpoint.read(reader, version) if reader.int8() >= 0 else None
        count = reader.compact_array_count()
        client_tags: list[KeyValue] = []
        for _ in range(count):
            client_tags.append(KeyValue.read(reader, version))
        self.client_tags = client_tags
        count = reader.compact_array_count()
        task_offsets: list[TaskOffset] = []
        for _ in range(count):
            task_offsets.append(TaskOffset.read(reader, version))
        self.task_offsets = task_offsets
        count = reader.compact_array_count()
        task_end_offsets: list[TaskOffset] = []
        for _ in range(count):
            task_end_offsets.append(TaskOffset.read(reader, version))
        self.task_end_offsets = task_end_offsets
        self.assignment = Assignment.read(reader, version)
        self.target_assignment = Assignment.read(reader, version)
        self.is_classic = reader.boolean()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.member_id)
        writer.int32(self.member_epoch)
        writer.compact_nullable_string(self.instance_id)
        writer.compact_nullable_string(self.rack_id)
        writer.compact_string(self.client_id)
        writer.compact_string(self.client_host)
        writer.int32(self.topology_epoch)
        writer.compact_string(self.process_id)
        if self.user_endpoint is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.user_endpoint.write(writer, version)
        writer.compact_array_count(len(self.client_tags))
        for key_value in self.client_tags:
            key_value.write(writer, version)
        writer.compact_array_count(len(self.task_offsets))
        for task_offset in self.task_offsets:
            task_offset.write(writer, version)
        writer.compact_array_count(len(self.task_end_offsets))
        for task_offset in self.task_end_offsets:
            task_offset.write(writer, version)
        self.assignment.write(writer, version)
        self.target_assignment.write(writer, version)
        writer.boolean(self.is_classic)
        writer.append(b"\x00")


class DescribedGroup(Message):
    """One description per group asked for."""

    __slots__ = ("error_code", "error_message", "group_id", "group_state", "group_epoch", "assignment_epoch", "topology", "members", "authorized_operations", "topology_description", "topology_description_status", "assignor_name")
    JSON_FIELDS: JsonFields = (
        ("error_code", "error_code", 0, 1, False),
        ("error_message", "string", 0, 1, False),
        ("group_id", "string", 0, 1, False),
        ("group_state", "string", 0, 1, False),
        ("group_epoch", "int32", 0, 1, False),
        ("assignment_epoch", "int32", 0, 1, False),
        ("topology", "Topology", 0, 1, False),
        ("members", "Member", 0, 1, False),
        ("authorized_operations", "int32", 0, 1, False),
        ("topology_description", "TopologyDescription", 1, 1, False),
        ("topology_description_status", "int8", 1, 1, False),
        ("assignor_name", "string", 1, 1, False),
    )

    def __init__(
        self,
        *,
        error_code: int = 0,
        error_message: str | None = None,
        group_id: str = "",
        group_state: str = "",
        group_epoch: int = 0,
        assignment_epoch: int = 0,
        topology: Topology | None = None,
        members: list[Member] | None = None,
        authorized_operations: int = -2147483648,
        topology_description: TopologyDescription | None = None,
        topology_description_status: int = 0,
        assignor_name: str | None = None,
    ) -> None:
        self.error_code: int = error_code
        """Result for this group alone; 0 (NONE) on success."""
        self.error_message: str | None = error_message
        """Human-readable reason for this entry's error_code; null when there is nothing to add."""
        self.group_id: str = group_id
        """Group, by name."""
        self.group_state: str = group_state
        """Empty, NotReady, Assigning, Reconciling, Stable or Dead; empty string on error."""
        self.group_epoch: int = group_epoch
        """Counter raised whenever members or metadata change."""
        self.assignment_epoch: int = assignment_epoch
        """Group epoch the target assignment was computed for."""
        self.topology: Topology | None = topology
        """Topology in force; null on error."""
        self.members: list[Member] = [] if members is None else members
        """Members of the group."""
        self.authorized_operations: int = authorized_operations
        """Bit set of ACL operations the caller may do on the group; -2147483648 = not asked for."""
        self.topology_description: TopologyDescription | None = topology_description
        """v1+. Full description as pushed by a client; null unless the status is 3."""
        self.topology_description_status: int = topology_description_status
        """v1+. 0 = not asked for, 1 = none stored, 2 = could not be read, 3 = present."""
        self.assignor_name: str | None = assignor_name
        """v1+. Assignor the next computation will use; null on error (KIP-1357)."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "DescribedGroup":
        self = cls.__new__(cls)
        self.error_code = reader.int16()
        self.error_message = reader.compact_nullable_string()
        self.group_id = reader.compact_string()
        self.group_state = reader.compact_string()
        self.group_epoch, self.assignment_epoch = reader.fixed(_II)
        self.topology = Topology.read(reader, version) if reader.int8() >= 0 else None
        count = reader.compact_array_count()
        members: list[Member] = []
        for _ in range(count):
            members.append(Member.read(reader, version))
        self.members = members
        self.authorized_operations = reader.int32()
        if version >= 1:
            self.topology_description = TopologyDescription.read(reader, version) if reader.int8() >= 0 else None
        else:
            self.topology_description = None
        if version >= 1:
            self.topology_description_status = reader.int8()
        else:
            self.topology_description_status = 0
        if version >= 1:
            self.assignor_name = reader.compact_nullable_string()
        else:
            self.assignor_name = None
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int16(self.error_code)
        writer.compact_nullable_string(self.error_message)
        writer.compact_string(self.group_id)
        writer.compact_string(self.group_state)
        writer.append(_II.pack(self.group_epoch, self.assignment_epoch))
        if self.topology is None:
            writer.int8(-1)
        else:
            writer.int8(1)
            self.topology.write(writer, version)
        writer.compact_array_count(len(self.members))
        for member in self.members:
            member.write(writer, version)
        writer.int32(self.authorized_operations)
        if version >= 1:
            if self.topology_description is None:
                writer.int8(-1)
            else:
                writer.int8(1)
                self.topology_description.write(writer, version)
        else:
            if self.topology_description is not None:
                raise not_carried("DescribedGroup", "topology_description", version)
        if version >= 1:
            writer.int8(self.topology_description_status)
        else:
            if self.topology_description_status != 0:
                raise not_carried("DescribedGroup", "topology_description_status", version)
        if version >= 1:
            writer.compact_nullable_string(self.assignor_name)
        writer.append(b"\x00")


class StreamsGroupDescribeResponse(Message):
    """Answer of StreamsGroupDescribe."""

    __slots__ = ("throttle_time_ms", "groups")
    API_KEY = 89
    VERSIONS = (0, 1)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 1, False),
        ("groups", "DescribedGroup", 0, 1, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        groups: list[DescribedGroup] | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.groups: list[DescribedGroup] = [] if groups is None else groups
        """One description per group asked for."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupDescribeResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms = reader.int32()
        count = reader.compact_array_count()
        groups: list[DescribedGroup] = []
        for _ in range(count):
            groups.append(DescribedGroup.read(reader, version))
        self.groups = groups
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.int32(self.throttle_time_ms)
        writer.compact_array_count(len(self.groups))
        for described_group in self.groups:
            described_group.write(writer, version)
        writer.append(b"\x00")
