# fmt: off
# ruff: noqa: E501
"""StreamsGroupTopologyDescriptionUpdate: key 93, versions 0 to 0.

A Streams member pushes the readable description of its topology when a heartbeat asked for it (KIP-1331).

Generated from protocol_specs/apis/93_streams_group_topology_description_update.json by `python -m protocol_specs.codegen`; do not edit.
"""

from struct import Struct

from minibroker.kafka.protocol.message import JsonFields, Message
from minibroker.kafka.protocol.primitives import Reader, Writer

_IH = Struct(">ih")


class TopologyDescriptionNode(Message):
    """Sources, processors and sinks of the subtopology."""

    __slots__ = ("name", "node_type", "source_topics", "sink_topic", "stores", "successors")
    JSON_FIELDS: JsonFields = (
        ("name", "string", 0, 0, False),
        ("node_type", "int8", 0, 0, False),
        ("source_topics", "string", 0, 0, False),
        ("sink_topic", "string", 0, 0, False),
        ("stores", "string", 0, 0, False),
        ("successors", "string", 0, 0, False),
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
        ("subtopology_id", "string", 0, 0, False),
        ("nodes", "TopologyDescriptionNode", 0, 0, False),
    )

    def __init__(
        self,
        *,
        subtopology_id: str = "",
        nodes: list[TopologyDescriptionNode] | None = None,
    ) -> None:
        self.subtopology_id: str = subtopology_id
        """Subtopology, by id; appears once only."""
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
        ("source", "TopologyDescriptionNode", 0, 0, False),
        ("processor", "TopologyDescriptionNode", 0, 0, False),
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
    """The description."""

    __slots__ = ("subtopologies", "global_stores")
    JSON_FIELDS: JsonFields = (
        ("subtopologies", "TopologyDescriptionSubtopology", 0, 0, False),
        ("global_stores", "TopologyDescriptionGlobalStore", 0, 0, False),
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


class StreamsGroupTopologyDescriptionUpdateRequest(Message):
    """Request of StreamsGroupTopologyDescriptionUpdate."""

    __slots__ = ("group_id", "member_id", "topology_epoch", "topology_description")
    API_KEY = 93
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("group_id", "string", 0, 0, False),
        ("member_id", "string", 0, 0, False),
        ("topology_epoch", "int32", 0, 0, False),
        ("topology_description", "TopologyDescription", 0, 0, False),
    )

    def __init__(
        self,
        *,
        group_id: str = "",
        member_id: str = "",
        topology_epoch: int = 0,
        topology_description: TopologyDescription | None = None,
    ) -> None:
        self.group_id: str = group_id
        """Streams group (application.id), by name."""
        self.member_id: str = member_id
        """Member that pushes; it must still be in the group, else UNKNOWN_MEMBER_ID."""
        self.topology_epoch: int = topology_epoch
        """Version of the topology that is described."""
        self.topology_description: TopologyDescription = TopologyDescription() if topology_description is None else topology_description
        """The description."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupTopologyDescriptionUpdateRequest":
        self = cls.__new__(cls)
        self.group_id = reader.compact_string()
        self.member_id = reader.compact_string()
        self.topology_epoch = reader.int32()
        self.topology_description = TopologyDescription.read(reader, version)
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.compact_string(self.group_id)
        writer.compact_string(self.member_id)
        writer.int32(self.topology_epoch)
        self.topology_description.write(writer, version)
        writer.append(b"\x00")


class StreamsGroupTopologyDescriptionUpdateResponse(Message):
    """Answer of StreamsGroupTopologyDescriptionUpdate."""

    __slots__ = ("throttle_time_ms", "error_code", "error_message")
    API_KEY = 93
    VERSIONS = (0, 0)
    FLEXIBLE_FROM: int | None = 0
    JSON_FIELDS: JsonFields = (
        ("throttle_time_ms", "int32", 0, 0, False),
        ("error_code", "error_code", 0, 0, False),
        ("error_message", "string", 0, 0, False),
    )

    def __init__(
        self,
        *,
        throttle_time_ms: int = 0,
        error_code: int = 0,
        error_message: str | None = None,
    ) -> None:
        self.throttle_time_ms: int = throttle_time_ms
        """Pause the quota asks of the client, in ms; 0 when it is within quota."""
        self.error_code: int = error_code
        """UNKNOWN_MEMBER_ID, STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED, …; 0 = description stored."""
        self.error_message: str | None = error_message
        """Human-readable reason for error_code; null when there is nothing to add."""

    @classmethod
    def read(cls, reader: Reader, version: int) -> "StreamsGroupTopologyDescriptionUpdateResponse":
        self = cls.__new__(cls)
        self.throttle_time_ms, self.error_code = reader.fixed(_IH)
        self.error_message = reader.compact_nullable_string()
        reader.skip_tagged_fields()
        return self

    def write(self, writer: Writer, version: int) -> None:
        writer.append(_IH.pack(self.throttle_time_ms, self.error_code))
        writer.compact_nullable_string(self.error_message)
        writer.append(b"\x00")
