"""Lines of dump-log that a small log does not show."""

from __future__ import annotations

import io

from minibroker.broker.storage.producer_state import ProducerEntry, RecentBatch
from minibroker.tools.dump_text import TextOutput


def test_producers_with_and_without_a_batch() -> None:
    out = io.StringIO()
    text = TextOutput(out, out)
    text.producer(5, ProducerEntry(1, 2, 30, -1, ()))
    text.producer(6, ProducerEntry(1, 2, 30, 7, (RecentBatch(0, 9, 3, 30),)))
    first, second = out.getvalue().splitlines()
    assert first == (
        "producerId: 5 producerEpoch: 1 coordinatorEpoch: 2 "
        "currentTxnFirstOffset: OptionalLong.empty lastTimestamp: 30 "
    )
    assert second.endswith(
        "currentTxnFirstOffset: OptionalLong[7] lastTimestamp: 30 firstSequence: 2147483645 "
        "lastSequence: 0 lastOffset: 9 offsetDelta: 3 timestamp: 30"
    )
