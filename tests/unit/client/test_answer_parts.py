"""An answer is asked for the part about one thing."""

from __future__ import annotations

import pytest

from minibroker.client.answer_parts import by_partition, part_of
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsTopicResponse,
)


def test_a_part_is_found_among_others_or_is_left_out() -> None:
    first = ListOffsetsTopicResponse(
        name="a", partitions=[ListOffsetsPartitionResponse(partition_index=n) for n in (1, 2)]
    )
    told = by_partition([first, ListOffsetsTopicResponse(name="b", partitions=[])])
    assert part_of(told, ("a", 2)) is first.partitions[1]
    with pytest.raises(ProtocolError, match=r"leaves \('b', 2\) out"):
        part_of(told, ("b", 2))
    with pytest.raises(ProtocolError):
        part_of(by_partition([]), ("a", 1))
