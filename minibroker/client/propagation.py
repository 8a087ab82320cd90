"""A change of a topic on its way from the controller to every broker.

    a change is answered ─► each broker is asked (Metadata) ─► all of them show the change

A controller answers when it has decided. The brokers load the decision afterwards: from the log of
the controller (KRaft), or when it reaches them (ZooKeeper). Until then they answer as before, with
UNKNOWN_TOPIC_OR_PARTITION for a new topic. That takes milliseconds, and seconds on a busy machine.
So `admin` returns from a change when nobody can meet a broker without it.

Source: Kafka ControllerApis.createTopics, BrokerMetadataPublisher, DelayedCreatePartitions;
KIP-500.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from minibroker.client.client import METADATA_VERSIONS, UNKNOWN_TOPIC_CODES, metadata_request
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import ZERO_TOPIC_ID
from minibroker.kafka.protocol.messages.metadata import MetadataResponse

if TYPE_CHECKING:
    from minibroker.client.client import Client
    from minibroker.client.patience import Patience
    from minibroker.kafka.protocol.messages.metadata import MetadataResponseTopic

logger = logging.getLogger(__name__)


class NewTopicState(NamedTuple):
    """A topic as the controller has decided it."""

    name: str
    topic_id: bytes
    """The id of the topic that is made or deleted; zeros: unknown."""
    partition_count: int
    """0: it is deleted."""
    first_new: int = 0
    """The first partition that is new, and gets a leader with this change."""

    @property
    def title(self) -> str:
        """Return the change, for a message."""
        if not self.partition_count:
            return f"topic {self.name} is deleted"
        return f"topic {self.name} has {self.partition_count} partitions"


def wait_until_shown(client: Client, state: NewTopicState, patience: Patience) -> None:
    """Return when every broker shows the topic so.

    A broker that does not answer is not waited for: it learns of the change before it serves again.
    So is one that does not tell this user of the topic.

    Raises:
        TimeoutError: a broker does not show it in time; names the broker.
        OSError, ProtocolError, ConfigError: no broker answers at all, as `Client.brokers`.
    """
    waiting = client.brokers()
    while waiting := tuple(each for each in waiting if not _shows(client, each, state)):
        if patience.is_over:
            host, port = waiting[0]
            raise TimeoutError(
                f"{state.title}, but the broker at {host}:{port} does not show that after "
                f"{patience.limit_s:g} s: it is busy, or cut off from the controller. Look "
                "again before the change is repeated"
            )
        patience.pause()


def _shows(client: Client, address: tuple[str, int], state: NewTopicState) -> bool:
    """Return whether a broker shows the topic so, or will not say."""
    request = metadata_request([state.name])
    try:
        answer = client.ask(address, request, MetadataResponse, METADATA_VERSIONS)
    except (OSError, ProtocolError) as error:
        logger.info("%s, and %s:%d does not tell: %s", state.title, *address, error)
        return True
    topic = next((each for each in answer.topics if each.name == state.name), None)
    if not state.partition_count:
        return topic is None or _is_gone(topic, state)
    return topic is not None and _is_there(topic, state, {each.node_id for each in answer.brokers})


def _is_gone(topic: MetadataResponseTopic, state: NewTopicState) -> bool:
    """Return whether the topic is unknown, or another one of its name."""
    if topic.error_code:
        return ErrorCode(topic.error_code) != ErrorCode.LEADER_NOT_AVAILABLE
    return _is_other(topic, state)


def _is_other(topic: MetadataResponseTopic, state: NewTopicState) -> bool:
    ids = (bytes(topic.topic_id), bytes(state.topic_id))
    return ZERO_TOPIC_ID not in ids and ids[0] != ids[1]


def _is_there(topic: MetadataResponseTopic, state: NewTopicState, brokers: set[int]) -> bool:
    """Return whether all partitions are there, and the new ones have leaders."""
    if topic.error_code:
        code = ErrorCode(topic.error_code)
        return code not in UNKNOWN_TOPIC_CODES and code != ErrorCode.LEADER_NOT_AVAILABLE
    if _is_other(topic, state) or len(topic.partitions) < state.partition_count:
        return False
    return all(
        partition.leader_id in brokers
        for partition in topic.partitions
        if partition.partition_index >= state.first_new
    )
