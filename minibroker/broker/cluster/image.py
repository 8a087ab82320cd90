"""The metadata image: all that this broker knows of the cluster. It alone answers Metadata.

There is one `MetadataImage`, changed on the loop by `updates.ImageUpdater` only. The values in it
(`TopicImage`, `PartitionImage`, `BrokerInfo`) are replaced, never changed: a handler that holds one
sees a consistent topic while it waits. Values may share lists: read only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from minibroker.kafka.ids import TopicId

NO_LEADER: Final = -1
NO_CONTROLLER: Final = -1
INTERNAL_TOPICS: Final = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state"}
)


class Endpoint(NamedTuple):
    """One advertised listener of a broker."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerInfo(NamedTuple):
    """One registered broker. `epoch` is Kafka's broker epoch (the registration's czxid)."""

    id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    epoch: int = -1
    is_minibroker: bool = False
    """Its registration bears our mark; Kafka's brokers have none."""

    def endpoint(self, listener: str) -> Endpoint | None:
        """Return the endpoint of this listener name, None if the broker has none."""
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionImage:
    """State of one partition. Broker ids in `replicas`, `isr`, `adding`, `removing`, `offline`."""

    __slots__ = (
        "adding",
        "controller_epoch",
        "isr",
        "leader",
        "leader_epoch",
        "leader_recovery_state",
        "offline",
        "partition_epoch",
        "removing",
        "replicas",
    )

    def __init__(
        self,
        *,
        leader: int,
        leader_epoch: int,
        replicas: list[int],
        isr: list[int],
        adding: list[int],
        removing: list[int],
        offline: list[int],
        controller_epoch: int,
        partition_epoch: int,
        leader_recovery_state: int = 0,
    ) -> None:
        self.leader = leader
        """Broker id, NO_LEADER when there is none."""
        self.leader_epoch = leader_epoch
        self.replicas = replicas
        self.isr = isr
        self.adding = adding
        self.removing = removing
        self.offline = offline
        """Replicas whose broker is not registered, or whose log directory failed."""
        self.controller_epoch = controller_epoch
        self.partition_epoch = partition_epoch
        """Version of the state's node in the tree, -1 while there is none."""
        self.leader_recovery_state = leader_recovery_state
        """`codecs.RECOVERING` after an unclean election, until the leader changes the ISR."""

    @property
    def online(self) -> list[int]:
        """Return the replicas whose broker is registered and whose log directory did not fail, in
        order.

        Source: Kafka's ControllerContext.isReplicaOnline.
        """
        return [broker_id for broker_id in self.replicas if broker_id not in self.offline]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionImage):
            return NotImplemented
        # Those that change most often come first.
        return (
            self.partition_epoch == other.partition_epoch
            and self.leader_epoch == other.leader_epoch
            and self.offline == other.offline
            and self.leader == other.leader
            and self.isr == other.isr
            and self.replicas == other.replicas
            and self.adding == other.adding
            and self.removing == other.removing
            and self.controller_epoch == other.controller_epoch
            and self.leader_recovery_state == other.leader_recovery_state
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"PartitionImage({fields})"


class TopicImage:
    """One topic; `partitions[n]` is partition n."""

    # `__weakref__`: values made from a topic are kept beside it and go with it.
    __slots__ = ("__weakref__", "is_internal", "name", "partitions", "topic_id")

    def __init__(self, name: str, topic_id: TopicId, partitions: list[PartitionImage]) -> None:
        self.name = name
        self.topic_id = topic_id
        self.partitions = partitions
        self.is_internal = name in INTERNAL_TOPICS

    def __repr__(self) -> str:
        return f"TopicImage({self.name!r}, {self.topic_id.hex()}, {self.partitions!r})"


class MetadataImage:
    """The metadata of the cluster. Read it on the loop; only `ImageUpdater` changes it."""

    __slots__ = (
        "brokers",
        "cluster_id",
        "configs",
        "controller_epoch",
        "controller_id",
        "hidden_topics",
        "topic_by_id",
        "topics",
    )

    def __init__(self) -> None:
        self.cluster_id = ""
        self.controller_id = NO_CONTROLLER
        self.controller_epoch = 0
        self.brokers: dict[int, BrokerInfo] = {}
        self.topics: dict[str, TopicImage] = {}
        self.topic_by_id: dict[bytes, TopicImage] = {}
        self.hidden_topics: dict[str, TopicId] = {}
        """Topic that the controller deletes → its id; the tree still has it for a while."""
        self.configs: dict[str, dict[str, dict[str, str]]] = {}
        """Entity type → entity name (as in the tree, sanitized) → key → value."""

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        """Return a partition as it is now, None where there is no such partition."""
        image = self.topics.get(topic)
        if image is None or not 0 <= index < len(image.partitions):
            return None
        return image.partitions[index]
