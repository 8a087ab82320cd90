"""Charging a client for a request, and holding its connection still when it is over a quota.

While some quota is set, `dispatch.py` comes here between a request's handler and its answer.
The answer goes out at once and says how long (`throttle_time_ms`): `encode` of any answer is given
the delay. Then the connection is not read until the time is over, whatever version the client
speaks (KIP-219). Handlers that charge themselves (Fetch; the APIs that change topics) put their
delay into the response; the longest counts.

Source: Kafka RequestHandlerHelper, KafkaApis.handleProduceRequest.
Differs from Kafka: a Fetch over `request_percentage` keeps its records, Kafka empties it. The
delay is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.metrics import LONGEST_US
from minibroker.broker.server.answers import Answer
from minibroker.kafka.protocol.api_keys import (
    ALTER_PARTITION,
    CONTROLLED_SHUTDOWN,
    LEADER_AND_ISR,
    PRODUCE,
    STOP_REPLICA,
    UPDATE_METADATA,
    WRITE_TXN_MARKERS,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.server.answers import AnyAnswer


EXEMPT_APIS: Final = frozenset(
    {
        ALTER_PARTITION,
        CONTROLLED_SHUTDOWN,
        LEADER_AND_ISR,
        STOP_REPLICA,
        UPDATE_METADATA,
        WRITE_TXN_MARKERS,
    }
)
"""Requests between brokers that no quota delays, as in Kafka."""


def charge(
    context: RequestContext, answers: Sequence[AnyAnswer], size_bytes: int, local_ns: int
) -> int:
    """Charge the client for one request; return how long (ms) it has to wait, 0 for not at all.

    `answers` holds the answer to the request. The bytes of a silent one (Produce with acks=0) are
    counted, its time is not. `size_bytes` is the request, header and body; `local_ns` is how long
    the loop was busy with it.
    """
    if context.api_key in EXEMPT_APIS:
        return 0
    quotas = context.services.quotas
    client = context.quota_client
    delay_ms = 0
    if context.api_key == PRODUCE:
        delay_ms = quotas.record_produce(client, size_bytes)
    if not answers:
        return delay_ms
    (answer,) = answers
    if isinstance(answer, Answer):
        if answer.is_silent:
            return delay_ms
        delay_ms = max(delay_ms, getattr(answer.response, "throttle_time_ms", 0))
    delay_ms = max(delay_ms, quotas.record_request_time(client, local_ns))
    if delay_ms:
        answer.handler.times.throttle.add(min(delay_ms * 1000, LONGEST_US))
    return delay_ms
