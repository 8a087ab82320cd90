"""UnregisterBroker: a broker that runs keeps its entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.unregister_broker import UnregisterBrokerRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def test_a_broker_that_runs_is_not_unregistered(
    running: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UnregisterBrokerRequest(broker_id=0), 0)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert "broker 0 is running" in answer.error_message
