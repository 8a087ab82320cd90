"""Dialogues that Apache Kafka of several releases and minibroker under their names have.

Each speaks with the newest versions of the broker's own ApiVersions. Its answers are kept in
`tests/golden/releases`, one file for each release (`make release-dialogues`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.protocol.primitives import ZERO_UUID
from tests.support.batches import batch
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Callable

RELEASES: Final = {"0.11": "0.11.0.3", "1.1": "1.1.1", "2.8": "2.8.2", "3.9": "3.9.1"}
"""Release → the version that Maven Central serves."""
MASKED: Final = ("throttle_time_ms", "log_append_time_ms", "producer_id", "member_id", "topic_id")
"""Values of the moment."""
VERSION_MAX: Final = 32767
NEWEST: Final = {10: 3}
"""API key → the newest version in which a dialogue speaks; FindCoordinator has lists from 4 on."""
LOADING: Final = 14
DEFAULTS: Final = (
    "auto.create.topics.enable",
    "compression.type",
    "delete.topic.enable",
    "fetch.purgatory.purge.interval.requests",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "log.retention.hours",
    "log.segment.bytes",
    "message.max.bytes",
    "num.partitions",
    "offset.metadata.max.bytes",
    "offsets.retention.minutes",
    "replica.lag.time.max.ms",
    "transaction.max.timeout.ms",
    "transactional.id.expiration.ms",
    "unclean.leader.election.enable",
    "zookeeper.session.timeout.ms",
)
SETTINGS: Final = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
"""Settings of both brokers; everything else is the release's default."""


class Peer:
    """A broker that is asked in its own newest versions."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        with self.connect() as client:
            answer = client.call("api_versions", 0)
        self.ranges = {
            key["api_key"]: (key["min_version"], key["max_version"]) for key in answer["api_keys"]
        }

    def connect(self) -> WireClient:
        """Return a new connection."""
        return WireClient(self.host, self.port, timeout_s=30)

    def ask(self, api: str, api_key: int, **fields: Any) -> Any:
        """Return the masked answer on a connection of its own."""
        with self.connect() as client:
            version = min(self.ranges[api_key][1], NEWEST.get(api_key, VERSION_MAX))
            return masked(client.call(api, version, **fields))


def masked(value: Any) -> Any:
    """Return an answer without what differs from run to run, as JSON has it."""
    if isinstance(value, dict):
        return {
            name: "masked" if name in MASKED else masked(part)
            for name, part in value.items()
            if name != "error_message"
        }
    if isinstance(value, list):
        return [masked(part) for part in value]
    return value.hex() if isinstance(value, bytes) else value


def _topic(name: str, partitions: int = 1, replicas: int = 1, **configs: str) -> dict[str, Any]:
    return {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": replicas,
        "assignments": [],
        "configs": [
            {"name": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    }


def versions(peer: Peer) -> Any:
    """Return the ranges of clients' APIs, without those between brokers and of ZooKeeper."""
    between = (4, 5, 6, 7, 27, 56, 58, 67)
    return {str(key): list(peer.ranges[key]) for key in sorted(peer.ranges) if key not in between}


def unknown_version_of_api_versions(peer: Peer) -> Any:
    with peer.connect() as client:
        client.send_frame(b"\x00\x12\x00\x63\x00\x00\x00\x01\x00\x01c\x00")
        return client.receive_frame()[4:6].hex()


def newer_version(peer: Peer) -> Any:
    with peer.connect() as client:
        newest = peer.ranges[3][1]
        client.send_frame(b"\x00\x03" + (newest + 1).to_bytes(2) + b"\x00\x00\x00\x01\x00\x01c")
        return client.is_closed_by_peer()


def created_topics(peer: Peer) -> Any:
    wishes = [
        _topic("made", 2),
        _topic("none", 0),
        _topic("replicated", 1, 3),
        _topic("configured", 1, 1, retention_ms="x"),
        _topic("bad name"),
    ]
    answers = [peer.ask("create_topics", 19, topics=[wish], timeout_ms=10_000) for wish in wishes]
    answers.append(peer.ask("create_topics", 19, topics=[_topic("made")], timeout_ms=10_000))
    return [[topic["error_code"] for topic in answer["topics"]] for answer in answers]


def produced(peer: Peer) -> Any:
    def code(topic: str, acks: int, size_bytes: int) -> Any:
        records = batch(b"v" * size_bytes)
        answer = peer.ask(
            "produce",
            0,
            acks=acks,
            timeout_ms=10_000,
            topic_data=[{"name": topic, "partition_data": [{"index": 0, "records": records}]}],
        )
        return answer["responses"][0]["partition_responses"][0]["error_code"]

    return [
        code("made", 1, 10),
        code("missing", 1, 10),
        code("made", 7, 10),
        code("made", 1, 1_010_000),
    ]


def joined_groups(peer: Peer) -> Any:
    def join(group: str, session_ms: int, member_id: str = "") -> Any:
        return peer.ask(
            "join_group",
            11,
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=[{"name": "range", "metadata": b""}],
        )["error_code"]

    while peer.ask("find_coordinator", 10, key="g", key_type=0)["error_code"]:
        pass
    return [join("", 10_000), join("g", 400_000), join("g", 10), join("g", 10_000, "stranger")]


def group_requests_of_strangers(peer: Peer) -> Any:
    fields = {"group_id": "h", "generation_id": 1, "member_id": "stranger"}
    return [
        peer.ask("heartbeat", 12, **fields),
        peer.ask("sync_group", 14, assignments=[], **fields)["error_code"],
        peer.ask("describe_groups", 15, groups=["h"])["groups"][0]["group_state"],
    ]


def producer_ids(peer: Peer) -> Any:
    def init(**fields: Any) -> Any:
        answer = peer.ask("init_producer_id", 22, **fields)
        while answer["error_code"] == LOADING:  # the first block of ids is fetched
            answer = peer.ask("init_producer_id", 22, **fields)
        return answer

    return [
        init(transactional_id=name, transaction_timeout_ms=timeout_ms)
        for name, timeout_ms in ((None, 1_000), ("", 1_000), ("x", 10_000_000))
    ]


def defaults(peer: Peer) -> Any:
    answer = peer.ask(
        "describe_configs",
        32,
        resources=[
            {"resource_type": 4, "resource_name": "0", "configuration_keys": list(DEFAULTS)}
        ],
    )
    return {entry["name"]: entry["value"] for entry in answer["results"][0]["configs"]}


def deleted_topics(peer: Peer) -> Any:
    request = {"topics": [{"name": "never", "topic_id": ZERO_UUID}]}
    old = {"topic_names": ["never"]}
    fields = request if peer.ranges[20][1] >= 6 else old
    answer = peer.ask("delete_topics", 20, timeout_ms=500, **fields)
    return [topic["error_code"] for topic in answer["responses"]]


DIALOGUES: Final[tuple[Callable[[Peer], Any], ...]] = (
    versions,
    unknown_version_of_api_versions,
    newer_version,
    created_topics,
    produced,
    joined_groups,
    group_requests_of_strangers,
    producer_ids,
    defaults,
    deleted_topics,
)
