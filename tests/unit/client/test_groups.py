"""Calls about groups, whose answers a broker of the test cuts or leaves empty."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

import pytest

from minibroker.client import groups, transactions
from minibroker.client.coordinators import CoordinatorClient
from minibroker.client.group_details import group_details
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.ids import TopicPartition
from minibroker.kafka.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from minibroker.kafka.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from minibroker.kafka.protocol.messages.find_coordinator import FindCoordinatorResponse
from minibroker.kafka.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from minibroker.kafka.protocol.messages.offset_fetch import OffsetFetchResponse
from minibroker.kafka.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.client.client import Client

PLACE = TopicPartition("t", 0)


class ToldClient:
    """Answers about coordinators, and with the answers of a test one behind the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    def ask_any(self, request: Any, response: Any, versions: tuple[int, int]) -> Any:
        return FindCoordinatorResponse(host="x", port=1)

    def ask(self, address: Any, request: Any, response: Any, versions: tuple[int, int]) -> Any:
        """Return the next answer; the last one is given again and again."""
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return answer if isinstance(answer, response) else response()


def coordinator(*answers: Any) -> CoordinatorClient:
    return CoordinatorClient(cast("Client", ToldClient(*answers)), "g")


def session(answer: Any) -> transactions.ProducerSession:
    return transactions.ProducerSession(cast("Client", ToldClient(answer)), "g", 1_000)


CALLS: list[Callable[[], Any]] = [
    lambda: group_details(coordinator(ConsumerGroupDescribeResponse()), 0),
    lambda: groups.stable_offsets(coordinator(OffsetFetchResponse()), PLACE, 0),
    lambda: groups.commit_offsets(coordinator(OffsetCommitResponse()), {PLACE: 5}, 0),
    lambda: session(AddPartitionsToTxnResponse()).add_partitions([PLACE], 0),
    lambda: session(TxnOffsetCommitResponse()).commit_offset("g", PLACE, 5, "", 0),
]


@pytest.mark.parametrize("call", CALLS)
def test_an_answer_without_what_was_asked_for_is_malformed(call: Callable[[], Any]) -> None:
    """It is not the answer that all went well."""
    with pytest.raises(ProtocolError, match=r"the answer leaves .* out"):
        call()


def test_a_coordinator_is_asked_again_after_an_empty_answer() -> None:
    of_another = DescribedGroup(group_id="another", group_state="Dead")
    description = DescribedGroup(group_id="g", group_state="Stable")
    group = coordinator(
        ConsumerGroupDescribeResponse(),
        ConsumerGroupDescribeResponse(groups=[of_another, description]),
    )
    assert group_details(group, time.monotonic() + 60).state == "Stable"


def test_a_commit_is_over_when_each_partition_is_told() -> None:
    partition = OffsetCommitResponsePartition(partition_index=0, error_code=ErrorCode.NONE)
    topic = OffsetCommitResponseTopic(name="t", partitions=[partition])
    groups.commit_offsets(
        coordinator(OffsetCommitResponse(), OffsetCommitResponse(topics=[topic])),
        {PLACE: 5},
        time.monotonic() + 60,
    )
