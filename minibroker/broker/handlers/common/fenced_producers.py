"""A producer that a newer one has fenced off, in the words of its version.

PRODUCER_FENCED came with KIP-588; a client that is older knows INVALID_PRODUCER_EPOCH, which meant
both. The APIs of transactions ask here for the code of a refusal.

Source: Kafka KafkaApis.handleEndTxnRequest and its siblings.
"""

from __future__ import annotations

from minibroker.kafka.error_codes import ErrorCode


def known_code(code: ErrorCode, *, knows_fenced: bool) -> ErrorCode:
    """`code` as the client knows it; `knows_fenced`: its version of the API has PRODUCER_FENCED."""
    if code == ErrorCode.PRODUCER_FENCED and not knows_fenced:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
