"""The transactional batches of a Produce request: verified before anything is appended.

`produce` asks here when a request has a transactional id. Batches of one request belong to one
producer; each partition is judged by itself. What the coordinator answers is put into the words
that producers know: what will be better in a moment is NOT_ENOUGH_REPLICAS, which every client
retries without asking for metadata.

Source: Kafka ReplicaManager.handleProduceAppend, KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.error_codes import ErrorCode
from minibroker.errors import CorruptionError, KafkaError
from minibroker.handlers.produce_checks import topic_name
from minibroker.handlers.transaction_verification import RETRIES_MAX, Protocol, Question, verify
from minibroker.ids import TopicPartition
from minibroker.records.batch import read_header
from minibroker.records.produce_rules import (
    NotVerifiedError,
    check_produce_version,
    is_transactional,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.handlers.context import RequestContext
    from minibroker.handlers.produce import Refusals
    from minibroker.handlers.transaction_verification import Codes
    from minibroker.protocol.messages.produce import ProduceRequest
    from minibroker.records.batch import BatchHeader

_FIRST_WITH_ABORTABLE: Final = 11
_FIRST_ADDING: Final = 12

_WILL_PASS: Final = frozenset(
    (
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    )
)


def verify_batches(
    context: RequestContext, request: ProduceRequest
) -> Refusals | Awaitable[Refusals]:
    """Topic and partition → why its batch may not be appended; nothing for all others.

    Raises KafkaError(INVALID_PRODUCER_ID_MAPPING) where batches come from different producers.
    """
    transactional_id = request.transactional_id
    assert transactional_id is not None
    sequences: dict[TopicPartition, int] = {}
    producers: set[tuple[int, int]] = set()
    for name, header in _transactional(context, request):
        producers.add((header.producer_id, header.producer_epoch))
        sequences[name] = header.base_sequence
    if not producers:
        return {}
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    ((producer_id, epoch),) = producers
    protocol = _protocol_of(context.version)
    is_adding = protocol is Protocol.ADDING
    codes = verify(
        context.services,
        Question(transactional_id, producer_id, epoch, sequences, protocol),
        retries=RETRIES_MAX if is_adding else 0,
    )
    if isinstance(codes, dict):
        return _refusals(codes, is_adding)
    return _when_verified(codes, is_adding)


async def _when_verified(codes: Awaitable[Codes], is_adding: bool) -> Refusals:
    return _refusals(await codes, is_adding)


def _transactional(
    context: RequestContext, request: ProduceRequest
) -> Iterator[tuple[TopicPartition, BatchHeader]]:
    """The batches to verify, without those that will be refused for another reason."""
    image = context.services.cluster.image
    for topic in request.topic_data:
        name = topic_name(context, topic)
        if name not in image.topics:
            continue
        for data in topic.partition_data:
            records = data.records
            if records is None or not is_transactional(records):
                continue
            try:
                check_produce_version(records, context.version)
                header = read_header(records)
            except (KafkaError, CorruptionError):
                continue
            if header.producer_id >= 0:
                yield TopicPartition(name, data.index), header


def _protocol_of(version: int) -> Protocol:
    if version >= _FIRST_ADDING:
        return Protocol.ADDING
    return Protocol.VERIFIED if version >= _FIRST_WITH_ABORTABLE else Protocol.OLD


def _refusals(codes: Codes, is_adding: bool) -> Refusals:
    return {name: _refusal(code, is_adding) for name, code in codes.items()}


def _refusal(code: ErrorCode, is_adding: bool) -> KafkaError:
    """The coordinator's code as producers know it; some with Kafka's words."""
    if code == ErrorCode.INVALID_TXN_STATE:
        return NotVerifiedError(code, "Partition was not added to the transaction")
    if code in _WILL_PASS or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not is_adding):
        return NotVerifiedError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
