"""The choice of exchanges."""

from __future__ import annotations

import pytest

from minibroker.kafka.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from minibroker.trace.selection import Selection
from tests.support.trace_frames import EXCHANGE

REQUEST_OF_A = EXCHANGE._replace(request=MetadataRequest(topics=[MetadataRequestTopic(name="a")]))
FAILED = EXCHANGE._replace(error="NOT_LEADER_OR_FOLLOWER")
FAULTY = EXCHANGE._replace(fault="delay")


@pytest.mark.parametrize(
    ("selection", "chosen", "other"),
    [
        (Selection(apis=("produce", "Fetch")), EXCHANGE, EXCHANGE._replace(api="Metadata")),
        (Selection(client="sho"), EXCHANGE, EXCHANGE._replace(client_id=None)),
        (Selection(client=":50000"), EXCHANGE, EXCHANGE._replace(client_address="b:1")),
        (Selection(errors=True), FAILED, EXCHANGE),
        (Selection(errors=True), FAULTY, EXCHANGE),
        (Selection(slower_than_ms=3), EXCHANGE, EXCHANGE._replace(duration_ms=2.9)),
        (Selection(topic="a"), REQUEST_OF_A, EXCHANGE),
        (Selection(topic="a"), REQUEST_OF_A, REQUEST_OF_A._replace(request=MetadataRequest())),
    ],
)
def test_each_field_chooses(selection: Selection, chosen: object, other: object) -> None:
    assert selection.takes(chosen, {})  # type: ignore[arg-type]
    assert not selection.takes(other, {})  # type: ignore[arg-type]


def test_a_selection_without_fields_takes_all() -> None:
    assert Selection().takes(EXCHANGE._replace(duration_ms=None), {})
