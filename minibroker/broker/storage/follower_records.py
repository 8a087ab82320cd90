"""May a follower append these records? The records of a leader's Fetch answer, batch by batch.

First station of `PartitionLog.append_as_follower`. The leader has checked and numbered the records;
a follower keeps its offsets and leader epochs. So only this is looked at, before anything is
appended:

| check                                                       | outcome                         |
|-------------------------------------------------------------|---------------------------------|
| the last batch is not whole                                 | it is left for the next fetch   |
| a batch of a later epoch than the follower knows, and those | left for the next fetch         |
| behind it (KAFKA-18723)                                     |                                 |
| length or magic that no format has, wrong CRC               | CORRUPT_MESSAGE                 |
| last offsets do not ascend                                  | OffsetsOutOfOrderError          |
| the first batch begins before the log's end                 | UnexpectedOffsetError           |
| a batch is larger than `segment.bytes`                      | RECORD_LIST_TOO_LARGE           |

Source: Kafka UnifiedLog.append, analyzeAndValidateRecords (3.9 and 4.4). Differs from Kafka, which
compares all of one fetch with `segment.bytes`: here each batch goes by itself, as on the leader.
"""

from __future__ import annotations

from typing import NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError, UnexpectedOffsetError
from minibroker.kafka.records.batch import BatchHeader, crc_is_valid, iterate_headers


class OffsetsOutOfOrderError(KafkaError):
    """The batches of one append do not ascend. Kafka: OffsetsOutOfOrderException."""

    def __init__(self, detail: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, detail)


class ReplicatedBatch(NamedTuple):
    """One batch or one message of an old format, as the leader stored it."""

    records: memoryview
    header: BatchHeader


def batches_to_append(
    records: memoryview,
    *,
    leader_epoch: int,
    log_end_offset: int,
    segment_bytes: int,
    partition: object,
) -> list[ReplicatedBatch]:
    """Return the batches of `records` that a follower appends; they may be none.

    `leader_epoch`: the latest that the follower knows. `partition` only names it in messages.
    Raises KafkaError as in the table above; then nothing may be appended.
    """
    batches: list[ReplicatedBatch] = []
    last_offset = -1
    try:
        for position, header in iterate_headers(records):
            if header.leader_epoch > leader_epoch:
                break
            batch = records[position : position + header.size_bytes]
            _check_sound(batch, header, partition)
            if header.last_offset <= last_offset:
                raise OffsetsOutOfOrderError(
                    f"a batch for {partition} ends at offset {header.last_offset}, "
                    f"the one before it at {last_offset}"
                )
            if header.size_bytes > segment_bytes:
                raise KafkaError(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"the batch for {partition} has {header.size_bytes} bytes, "
                    f"segment.bytes is {segment_bytes}",
                )
            last_offset = header.last_offset
            batches.append(ReplicatedBatch(batch, header))
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{partition}: {error}") from error
    if batches:
        first_offset = batches[0].header.base_offset
        if first_offset < log_end_offset:
            raise UnexpectedOffsetError(
                f"an append to {partition} begins at offset {first_offset}, "
                f"the log ends at {log_end_offset}",
                first_offset=first_offset,
                last_offset=last_offset,
            )
    return batches


def _check_sound(batch: memoryview, header: BatchHeader, partition: object) -> None:
    """Raises KafkaError(CORRUPT_MESSAGE) for a wrong CRC, and for a batch that ends before it
    begins."""
    if header.magic < 2:
        from minibroker.kafka.records import message_set  # noqa: PLC0415  few brokers ever see one

        is_sound = message_set.crc_is_valid(batch, 0, header.size_bytes)
    else:
        is_sound = crc_is_valid(batch, 0, header.size_bytes) and header.last_offset_delta >= 0
    if not is_sound:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"the batch at offset {header.base_offset} for {partition} is damaged, "
            f"its CRC says {header.crc}",
        )
