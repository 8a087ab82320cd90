"""Brokers of a cluster as a task sees them: leaders of partitions, and connections to them.

A connection that is given back whole waits for the next task of this process. So a worker connects
and logs in once and not for each range. Nobody else takes it for `IDLE_S`: then it is closed with
the next look, before the broker's connections.max.idle.ms. The leaders of a topic are known to all
tasks of this process, too: an answer about 10,000 partitions is large, and a task needs a few of
them. One that is wrong by now is refused by the broker that it names, and asked for anew.

Source: Kafka Metadata, ConsumerMetadata, NetworkClient.
"""

from __future__ import annotations

import atexit
import logging
import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.client.connection import BlockingConnection
from minibroker.client.dialogue import BrokerRefusedError, VersionedRequest
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ConfigError, KafkaError, ProtocolError
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from minibroker.kafka.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from minibroker.client.settings import ClientSettings

logger = logging.getLogger(__name__)

IDLE_S: Final = 60.0
IDLE_MAX: Final = 64
"""Connections that wait in one process."""
LEADERS_AGE_S: Final = 300.0
"""Age from which on leaders are asked for anew (Kafka's metadata.max.age.ms)."""
TOPICS_MAX: Final = 256
"""Topics whose leaders are known in one process."""
EARLIEST: Final = -2
METADATA_VERSIONS: Final = (0, 12)
LIST_VERSIONS: Final = (0, 7)
_AUTO_CREATION_FROM: Final = 4
"""Version of Metadata from which on a request may forbid the broker to make a missing topic."""
CLIENT_ERRORS: Final = (KafkaError, OSError, ProtocolError, ConfigError)
UNKNOWN_TOPIC_CODES: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID}
)
"""A broker does not know the topic: it has just started, or the topic is gone."""
"""The errors that a call of the client raises, from whatever cause."""


def is_lasting(error: Exception) -> bool:
    """Return whether no waiting mends one of `CLIENT_ERRORS`: a login that is refused, a wrong
    certificate, wrong settings, a name that nobody knows.
    """
    is_unknown_name = isinstance(error, socket.gaierror) and error.errno != socket.EAI_AGAIN
    return is_unknown_name or isinstance(error, (BrokerRefusedError, ConfigError, ssl.SSLError))


_Key = tuple["ClientSettings", tuple[str, int]]
_idle: dict[_Key, BlockingConnection] = {}
"""Connections that wait for a user, the one that waits longest first; of this process."""


class PartitionLeader(NamedTuple):
    """The leader of a partition."""

    address: tuple[str, int]
    epoch: int
    """-1: the broker does not tell."""
    topic_id: bytes
    """Zeros: the broker has no ids."""


class TopicLeaders(NamedTuple):
    """The leaders of one topic."""

    asked_s: float
    """When they were asked for, by the monotonic clock."""
    partitions: dict[int, PartitionLeader]
    partition_count: int
    """Partitions of the topic, with a leader or without."""
    brokers: Mapping[int, tuple[str, int]]
    """Id → address of every broker that the answer named."""


_leaders_of: dict[tuple[ClientSettings, str], TopicLeaders] = {}
"""Leaders of topics, the topic that was asked for longest ago first; of this process."""


def metadata_request(
    names: Iterable[str] | None, *, creates_topics: bool = False
) -> VersionedRequest:
    """Return a question about topics of these names, or about all for None.

    A broker before 0.11 cannot be told that it must not make a missing topic, so it is asked about
    all topics. So is one before 0.10, which takes no names for all.
    """
    topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]

    def of_version(version: int) -> MetadataRequest:
        if version >= _AUTO_CREATION_FROM:
            return MetadataRequest(topics=topics, allow_auto_topic_creation=creates_topics)
        request_topics = topics if creates_topics or not topics else None
        return MetadataRequest(
            topics=[] if request_topics is None and not version else request_topics
        )

    return VersionedRequest(MetadataRequest, of_version)


def offset_of(part: Any) -> int:
    """Return the offset in a part of an answer of ListOffsets, -1 for none.

    Before Kafka 0.10.1 a part has a list of offsets.
    """
    old = part.old_style_offsets
    return int(old[0] if old else part.offset)


class Client:
    """The client of one task: used by one thread."""

    def __init__(self, settings: ClientSettings, *, creates_topics: bool = False) -> None:
        """`creates_topics`: a broker may make a topic that is asked for, as it does for writers."""
        self._settings = settings
        self.creates_topics = creates_topics
        """Constant."""
        self._addresses: tuple[tuple[str, int], ...] = ()
        """Every broker that the last answer named."""

    @property
    def settings(self) -> ClientSettings:
        """Return the settings, for another client of the same cluster."""
        return self._settings

    @property
    def rack(self) -> str:
        """Return the rack of this client (client.rack), empty for none."""
        return self._settings.rack

    def leader(self, topic: str, partition: int) -> PartitionLeader:
        """Return the leader of a partition, which is asked for once in `LEADERS_AGE_S`.

        Raises:
            KafkaError: the broker's, such as UNKNOWN_TOPIC_OR_PARTITION; LEADER_NOT_AVAILABLE for a
                partition that has none now.
            OSError: no broker answers.
            ProtocolError: an answer is malformed.
            ConfigError: the settings of TLS.
        """
        leaders = self._leaders(topic)
        if partition not in leaders.partitions:
            leaders = self._ask_leaders(topic)
        leader = leaders.partitions.get(partition)
        if leader is None and partition < leaders.partition_count:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader")
        if leader is None:
            raise KafkaError(
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
            )
        return leader

    def partition_count(self, topic: str) -> int:
        """Return how many partitions a topic has, with the age of `leader`'s answers.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        return self._leaders(topic).partition_count

    def led_partitions(self, topic: str) -> list[int]:
        """Return the partitions of a topic that have a leader.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        return list(self._leaders(topic).partitions)

    def broker(self, topic: str, broker_id: int) -> tuple[str, int] | None:
        """Return the address of a broker, None where the answer about the topic did not name it.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        return self._leaders(topic).brokers.get(broker_id)

    def _leaders(self, topic: str) -> TopicLeaders:
        leaders = _leaders_of.get((self._settings, topic))
        if leaders is None or time.monotonic() - leaders.asked_s >= LEADERS_AGE_S:
            leaders = self._ask_leaders(topic)
        self._addresses = tuple(leaders.brokers.values())
        return leaders

    def forget(self, topic: str) -> None:
        """Ask anew for the leaders of a topic when one is needed."""
        _leaders_of.pop((self._settings, topic), None)

    def connection(self, address: tuple[str, int]) -> BlockingConnection:
        """Return a connection for the caller alone. Raises OSError, ProtocolError, ConfigError."""
        close_idle(IDLE_S)
        waiting = _idle.pop((self._settings, address), None)
        if waiting is not None:
            if waiting.is_usable:
                return waiting
            waiting.close()
        return BlockingConnection.open(self._settings, address)

    def give_back(self, connection: BlockingConnection) -> None:
        """Keep a connection for the next user, or close it if an answer is still on its way."""
        key = (self._settings, connection.address)
        connection.idle_since_s = time.monotonic()
        is_kept = len(_idle) < IDLE_MAX and connection.is_usable
        # In one step: another thread may give one back at this moment.
        if not is_kept or _idle.setdefault(key, connection) is not connection:
            connection.close()

    def earliest(self, topic: str, partition: int) -> int:
        """Return the log start offset of a partition.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        leader = self.leader(topic, partition)
        start = ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST)
        request = ListOffsetsRequest(
            replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[start])]
        )
        answer = self.ask(leader.address, request, ListOffsetsResponse, LIST_VERSIONS)
        part = part_of(by_partition(answer.topics), (topic, partition))
        if part.error_code:
            raise KafkaError(ErrorCode(part.error_code), f"the start of {topic}-{partition}")
        return offset_of(part)

    def _ask_leaders(self, topic: str) -> TopicLeaders:
        """Return the leaders of a topic as they are now, and keep them.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        request = metadata_request([topic], creates_topics=self.creates_topics)
        metadata = self.ask_any(request, MetadataResponse, METADATA_VERSIONS)
        brokers = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        self._addresses = tuple(brokers.values())
        answer = part_of({answer.name: answer for answer in metadata.topics}, topic)
        if answer.error_code:
            code = ErrorCode(answer.error_code)
            is_unknown = code in UNKNOWN_TOPIC_CODES
            raise KafkaError(code, f"{'there is no ' if is_unknown else ''}topic {topic!r}")
        leaders = {
            partition.partition_index: PartitionLeader(
                brokers[partition.leader_id], partition.leader_epoch, answer.topic_id
            )
            for partition in answer.partitions
            if partition.leader_id in brokers
        }
        if not leaders:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"topic {topic!r} has no leader")
        self.forget(topic)
        if len(_leaders_of) >= TOPICS_MAX:
            del _leaders_of[next(iter(_leaders_of))]
        current = _leaders_of[self._settings, topic] = TopicLeaders(
            time.monotonic(), leaders, len(answer.partitions), brokers
        )
        return current

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> Any:
        """Return the answer of the first broker that gives one, to a request of one of `versions`.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        failures: list[Exception] = []
        for address in dict.fromkeys((*self._addresses, *self._settings.servers)):
            try:
                return self.ask(address, request, response, versions)
            except BrokerRefusedError:
                raise
            except (OSError, ProtocolError, ConfigError) as error:
                logger.info("no answer from %s:%d: %s", *address, error)
                failures.append(error)
        # A server that accepts and is silent says more than one where nobody listens.
        other = [error for error in failures if not isinstance(error, ConnectionRefusedError)]
        raise (other or failures)[-1]

    def brokers(self) -> tuple[tuple[str, int], ...]:
        """Return the addresses of all brokers, as one of them tells now.

        Raises KafkaError, OSError, ProtocolError, ConfigError.
        """
        return tuple(self.broker_addresses().values())

    def broker_addresses(self) -> dict[int, tuple[str, int]]:
        """Return id → address of all brokers. Raises KafkaError, OSError, ProtocolError,
        ConfigError.
        """
        metadata = self.ask_any(metadata_request([]), MetadataResponse, METADATA_VERSIONS)
        addresses = {broker.node_id: (broker.host, broker.port) for broker in metadata.brokers}
        self._addresses = tuple(addresses.values())
        return addresses

    def ask(
        self, address: tuple[str, int], request: Any, response: Any, versions: tuple[int, int]
    ) -> Any:
        """Return the answer of one broker to a request of one of `versions`, from oldest to newest.

        Raises:
            OSError: the broker does not answer, or refuses the login or the versions.
            ProtocolError: its answer is malformed.
            ConfigError: the settings of TLS.
        """
        (answer,) = self.ask_together(address, [request], response, versions)
        return answer

    def ask_together(
        self,
        address: tuple[str, int],
        requests: Sequence[Any],
        response: Any,
        versions: tuple[int, int],
    ) -> list[Any]:
        """Return the answers to small requests of one kind, which are all sent before the first
        answer is received. Raises OSError, ProtocolError, ConfigError.
        """
        connection = self.connection(address)
        try:
            for request in requests:
                version = connection.version_for(request, *versions)
                connection.send(request, response, version)
            answers = [connection.receive() for _ in requests]
        except BaseException:
            connection.close()
            raise
        self.give_back(connection)
        return answers


def close_idle(after_s: float = 0.0) -> None:
    """Close the connections that have waited for `after_s` seconds."""
    now_s = time.monotonic()
    for key, connection in list(_idle.items()):
        if now_s - connection.idle_since_s >= after_s:
            pooled = _idle.pop(key, None)  # another thread may have taken it
            if pooled is not None:
                pooled.close()


atexit.register(close_idle)
