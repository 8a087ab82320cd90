"""AllocateProducerIds, as a broker sends it to the controller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    import pytest

    from tests.support.in_process import InProcessBroker


async def ask(
    broker: InProcessBroker, broker_id: int = 2, epoch: int | None = None
) -> AllocateProducerIdsResponse:
    if epoch is None:
        epoch = broker.broker.cluster.image.brokers[2].epoch
    request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
    async with await broker.connect() as client:
        answer: AllocateProducerIdsResponse = await client.call(request, 0)
        return answer


async def test_no_two_brokers_get_the_same_ids(controller: InProcessBroker) -> None:
    first, second = await ask(controller), await ask(controller)
    assert (first.error_code, first.producer_id_start, first.producer_id_len) == (0, 0, 1000)
    assert (second.error_code, second.producer_id_start) == (0, 1000)
    own = controller.broker.cluster.producer_ids.next()
    assert not isinstance(own, int)
    assert await own == 2000


async def test_it_is_refused(controller: InProcessBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = controller.broker.cluster
    assert (await ask(controller, 9)).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert (await ask(controller, 2, 1)).error_code == ErrorCode.STALE_BROKER_EPOCH

    async def away(_path: str) -> tuple[bytes, object]:
        raise CoordinationError("the tree is away")

    with monkeypatch.context() as patched:
        patched.setattr(cluster.tree, "get", away)
        assert (await ask(controller)).error_code == ErrorCode.REQUEST_TIMED_OUT
    cluster._election.lose()
    assert (await ask(controller, 9)).error_code == ErrorCode.NOT_CONTROLLER
