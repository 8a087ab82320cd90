"""InitProducerId: ids for many clients, a tree that is away, bugs. Answers: tests/compat."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.cluster.producer_ids import ProducerIds
from minibroker.broker.handlers.common.fenced_producers import known_code
from minibroker.kafka.error_codes import ERROR_CODES, ErrorCode
from minibroker.kafka.errors import CoordinationError
from minibroker.kafka.protocol.messages.init_producer_id import InitProducerIdRequest

if TYPE_CHECKING:
    from tests.support.in_process import InProcessBroker, RawClient


ASKING = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000)


async def test_ids_go_on_over_the_end_of_a_block(client: RawClient) -> None:
    ids = [(await client.call(ASKING, 4)).producer_id for _ in range(2500)]
    assert len(set(ids)) == 2500
    assert ids == sorted(ids)


async def test_several_clients_at_once_get_different_ids(running: InProcessBroker) -> None:
    clients = [await running.connect() for _ in range(5)]
    for _ in range(300):
        for client in clients:
            client.send(ASKING, 4)
    ids = [(await client.receive()).producer_id for _ in range(300) for client in clients]
    assert len(set(ids)) == 1500
    for client in clients:
        await client.close()


async def test_a_tree_that_is_away_is_a_retriable_error(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any) -> Any:
        raise CoordinationError("the tree is away")

    monkeypatch.setattr(type(running.broker.cluster.tree), "set", away)
    answer = await client.call(ASKING, 4)
    assert answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert ErrorCode(answer.error_code).retriable
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


async def test_a_bug_gives_no_epoch_either(
    running: InProcessBroker, client: RawClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_cluster: object) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr(ProducerIds, "next", broken)
    answer = await client.call(ASKING, 4)
    assert answer.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert (answer.producer_id, answer.producer_epoch) == (-1, -1)


def test_only_versions_that_know_it_hear_producer_fenced() -> None:
    fenced = ErrorCode.PRODUCER_FENCED
    assert known_code(fenced, knows_fenced=True) is fenced
    assert known_code(fenced, knows_fenced=False) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_every_other_code_is_itself() -> None:
    for code in ERROR_CODES.values():
        if code is not ErrorCode.PRODUCER_FENCED:
            assert known_code(code, knows_fenced=False) is code
