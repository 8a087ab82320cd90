"""UpdateFeatures where another broker is the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.update_features import UpdateFeaturesRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


async def test_only_the_controller_changes_levels(
    deposed: InProcessBroker, client: RawClient
) -> None:
    answer = await client.call(UpdateFeaturesRequest(), 2)
    assert answer.error_code == ErrorCode.NOT_CONTROLLER
