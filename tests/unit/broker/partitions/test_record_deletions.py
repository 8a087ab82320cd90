"""DeleteRecords requests that wait for the followers."""

from __future__ import annotations

from minibroker.broker.partitions.replicas import INVALID_LOW_WATERMARK, RecordDeletions
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.messages.delete_records import DeleteRecordsPartitionResult

SOON_MS = 1
LATER_MS = 600_000


def result() -> DeleteRecordsPartitionResult:
    """Return an answer made while the followers start at offset 1."""
    return DeleteRecordsPartitionResult(low_watermark=1)


async def test_an_answer_waits_until_the_low_watermark_is_at_its_offset() -> None:
    deletions = RecordDeletions()
    near, far = result(), result()
    later, earlier = (
        deletions.wait(5, far, LATER_MS),
        deletions.wait(3, near, LATER_MS),
    )
    deletions.complete(2)
    assert not earlier.done()
    deletions.complete(4)
    assert earlier.done()
    assert (near.error_code, near.low_watermark) == (0, 4)
    assert not later.done()
    deletions.complete(5)
    assert (far.error_code, far.low_watermark) == (0, 5)
    assert later.done()
    assert not deletions


async def test_an_answer_does_not_wait_longer_than_its_time() -> None:
    deletions = RecordDeletions()
    late = result()
    other = deletions.wait(3, result(), LATER_MS)
    await deletions.wait(3, late, SOON_MS)
    assert (late.error_code, late.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, 1)
    assert not other.done()
    assert len(deletions) == 1
    deletions.complete(3)


async def test_all_answers_are_refused() -> None:
    deletions = RecordDeletions()
    refused = result()
    done = deletions.wait(3, refused, LATER_MS)
    deletions.refuse(ErrorCode.KAFKA_STORAGE_ERROR)
    assert done.done()
    assert refused.error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.low_watermark == INVALID_LOW_WATERMARK
    assert not deletions


async def test_an_answer_that_nobody_waits_for_any_more_holds_nothing() -> None:
    deletions = RecordDeletions()
    deletions.wait(3, result(), LATER_MS).cancel()
    other = deletions.wait(3, result(), LATER_MS)
    deletions.complete(3)
    assert other.done()
