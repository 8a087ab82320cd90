"""Texts about requests and their answers, for the request log while somebody watches it.

`FaultInterceptor` has them made: that of the request before it is handled, while its bytes are in
the buffer, and that of the answer when it is encoded. The words are those of a trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.server.decoder import LARGE_FRAME_BYTES
from minibroker.broker.server.handling import read_call
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.message import Message
from minibroker.kafka.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from minibroker.trace.subject import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.server.call import Call

_PARTS_MAX: Final = 8
"""Most partitions of an answer by the short way that are described."""


class RequestTexts:
    """Describes the requests of one broker. Belongs to its loop."""

    def __init__(self, cluster: Cluster) -> None:
        self._names = _TopicNames(cluster)

    def question(self, call: Call) -> str:
        """Return the subject of a request; nothing for a large one, whose decoding takes long."""
        if len(call.frame) > LARGE_FRAME_BYTES:
            return ""
        try:
            request = read_call(call)
        except ProtocolError:
            return ""  # its handler refuses it, with the reason
        return describe(request, self._names)

    def exchange(self, call: Call, answer: Any) -> str:
        """Return the subject of the request, and behind an arrow that of its answer.

        `answer`: a message, or an answer of Produce by a short way.
        """
        message = answer if isinstance(answer, Message) else _message_of(answer)
        reply = "" if message is None else describe(message, self._names)
        if not reply or reply == call.subject:
            return call.subject
        return f"{call.subject} → {reply}" if call.subject else f"→ {reply}"


class _TopicNames(Mapping[bytes, str]):
    """Topic id → name, as the broker knows them now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def __getitem__(self, topic_id: bytes) -> str:
        return self._cluster.image.topic_by_id[topic_id].name

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._cluster.image.topic_by_id)

    def __len__(self) -> int:
        return len(self._cluster.image.topic_by_id)


def _message_of(answer: Any) -> Message | None:
    """Return an answer of Produce by a short way as a message, None for no answer."""
    if answer is None:
        return None
    topics: dict[str, list[PartitionProduceResponse]] = {}
    for part in answer.parts[:_PARTS_MAX]:
        partition = part.partition
        topics.setdefault(partition.topic, []).append(
            part.refusal  # a batch that was refused has no offset
            or PartitionProduceResponse(
                index=partition.index,
                error_code=part.error_code,
                base_offset=part.base_offset,
            )
        )
    return ProduceResponse(
        responses=[
            TopicProduceResponse(name=name, partition_responses=partitions)
            for name, partitions in topics.items()
        ]
    )
