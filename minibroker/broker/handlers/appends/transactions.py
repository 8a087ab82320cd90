"""The transactional batches of a Produce request: verified before anything is appended.

`produce` asks here when a request has a transactional id. Batches of one request belong to one
producer; each partition is judged by itself. The coordinator's code becomes one that producers
know: an error that passes soon is NOT_ENOUGH_REPLICAS, which every client retries without asking
for metadata.

Source: Kafka ReplicaManager.handleProduceAppend, KIP-890.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.broker.handlers.common.transaction_verification import (
    Protocol,
    Question,
    check_again,
    verify,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.records.produce_rules import NotVerifiedError, check_produce_version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Iterator

    from minibroker.broker.handlers.appends.batches import ReceivedTopic, Refusals
    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.handlers.common.transaction_verification import Codes
    from minibroker.broker.partitions.checking import AnyBatch
    from minibroker.broker.slices import Steps
    from minibroker.kafka.records.batch import BatchHeader

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


class Verdict(NamedTuple):
    """The batches that may not be appended, and how to look again right before an append."""

    refused: Refusals
    question: Question | None
    """None where the request has nothing to verify."""

    def check_still_open(self, context: RequestContext, name: TopicPartition) -> None:
        """Check that no marker came since the verification: others may have had the loop.

        Does nothing for a partition whose batch was not verified. Raises KafkaError as a producer
        knows it (`transaction_verification.check_again`).
        """
        question = self.question
        if question is None or name not in question.sequences:
            return
        try:
            check_again(context.services, question, name)
        except KafkaError as error:
            raise _refusal(error.code, question.protocol is Protocol.ADDING) from error


def verify_batches(
    context: RequestContext, transactional_id: str, topics: list[ReceivedTopic]
) -> Steps[Verdict | Awaitable[Verdict]]:
    """Return the verdict on the request's batches.

    Raises KafkaError(INVALID_PRODUCER_ID_MAPPING) where batches come from different producers.
    """
    sequences: dict[TopicPartition, int] = {}
    producers: set[tuple[int, int]] = set()
    for transactional in _transactional(context, topics):
        yield
        if transactional is not None:
            name, header = transactional
            producers.add((header.producer_id, header.producer_epoch))
            sequences[name] = header.base_sequence
    if not producers:
        return Verdict({}, None)
    if len(producers) > 1:
        raise KafkaError(
            ErrorCode.INVALID_PRODUCER_ID_MAPPING,
            "Transactional records contained more than one producer ID",
        )
    ((producer_id, epoch),) = producers
    protocol = _protocol_of(context.version)
    is_adding = protocol is Protocol.ADDING
    question = Question(transactional_id, producer_id, epoch, sequences, protocol, {})
    codes = verify(context.services, question, is_retried=is_adding)
    if isinstance(codes, dict):
        return Verdict(_refusals(codes, is_adding), question)
    return _when_verified(codes, question, is_adding)


async def _when_verified(codes: Awaitable[Codes], question: Question, is_adding: bool) -> Verdict:
    return Verdict(_refusals(await codes, is_adding), question)


def _transactional(
    context: RequestContext, topics: list[ReceivedTopic]
) -> Iterator[tuple[TopicPartition, BatchHeader] | None]:
    """Yield the batches to verify; None for one that will be refused for another reason."""
    image = context.services.cluster.image
    for name, _, batches, _ in topics:
        if name not in image.topics:
            yield None
            continue
        for data, batch in batches:
            header = None if batch is None else batch.header
            if batch is not None and header is not None and _is_to_verify(context, batch, header):
                yield TopicPartition(name, data.index), header
            else:
                yield None


def _is_to_verify(context: RequestContext, batch: AnyBatch, header: BatchHeader) -> bool:
    if not header.is_transactional or header.producer_id < 0:
        return False
    try:
        check_produce_version(batch.records, header, context.version)
    except KafkaError:
        return False
    return True


def _protocol_of(version: int) -> Protocol:
    if version >= _FIRST_ADDING:
        return Protocol.ADDING
    return Protocol.VERIFIED if version >= _FIRST_WITH_ABORTABLE else Protocol.OLD


def _refusals(codes: Codes, is_adding: bool) -> Refusals:
    return {name: _refusal(code, is_adding) for name, code in codes.items()}


def _refusal(code: ErrorCode, is_adding: bool) -> KafkaError:
    """Return the error of the coordinator's code as producers know it, some with Kafka's words."""
    if code == ErrorCode.INVALID_TXN_STATE:
        return NotVerifiedError(code, "Partition was not added to the transaction")
    if code in _WILL_PASS or (code == ErrorCode.CONCURRENT_TRANSACTIONS and not is_adding):
        return NotVerifiedError(
            ErrorCode.NOT_ENOUGH_REPLICAS,
            "Unable to verify the partition has been added to the transaction. "
            f"Underlying error: {code.name}",
        )
    return KafkaError(code)
