"""The rules for the records of a Produce request by its version, and the errors of refused records.

The handler calls `check_produce_version` before the records go to the log; the log's own checks
(`storage/validator`) raise `InvalidRecordsError`, which the handler turns into the `record_errors`
of Produce v8 and later.

Source: Kafka ProduceRequest.validateRecords, RecordValidationException; KIP-467.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CorruptionError, KafkaError
from minibroker.kafka.records.batch import (
    ATTRIBUTES_AT,
    MAGIC_AT,
    TRANSACTIONAL_FLAG,
    BatchHeader,
    batch_size_at,
    read_header,
)
from minibroker.kafka.records.compression import ZSTD

FIRST_VERSION_OF_V2: Final = 3
"""From this Produce version on: exactly one batch per partition, and of format v2."""
FIRST_VERSION_OF_ZSTD: Final = 7


class RecordError(NamedTuple):
    """One refused record: its index in the batch, and why."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """INVALID_RECORD or INVALID_TIMESTAMP for single records; nothing of the batch was appended.

    Only this refusal and the next tell their `detail` to the client (`error_message`); Kafka leaves
    it null for others.
    """

    def __init__(self, code: ErrorCode, detail: str, record_errors: list[RecordError]) -> None:
        super().__init__(code, detail)
        self.record_errors = record_errors


class NotVerifiedError(KafkaError):
    """The batch is transactional, and its coordinator does not know of it (yet)."""


class LargeBatchError(Exception):
    """The check of the batch would hold the loop and has to be done beside it. Nothing changed."""


def is_transactional(records: bytes | bytearray | memoryview, header: BatchHeader | None) -> bool:
    """Return the flag of a v2 batch. `header`: as read, None where the bytes end inside of it."""
    if header is not None:
        return header.is_transactional
    return (
        len(records) > ATTRIBUTES_AT + 1
        and records[MAGIC_AT] == 2
        and records[ATTRIBUTES_AT + 1] & TRANSACTIONAL_FLAG != 0
    )


def is_nothing(records: bytes | bytearray | memoryview) -> bool:
    """Return whether `records` have no whole batch or message, which Produce v0-2 may send."""
    try:
        return batch_size_at(records, 0) is None
    except CorruptionError:
        return False


def check_produce_version(
    records: bytes | bytearray | memoryview | None, header: BatchHeader | None, version: int
) -> None:
    """Check that Produce `version` may carry `records` (all bytes of one partition), which begin
    with `header` (`batch.read_produced_header`).

    Raises KafkaError: INVALID_RECORD for no batch, several, or one of format 0 or 1 from v3 on;
    UNSUPPORTED_COMPRESSION_TYPE for zstd before v7; CORRUPT_MESSAGE where a length or magic is
    none. Before v3 anything goes, as in Kafka: the log decides.
    """
    if version < FIRST_VERSION_OF_V2:
        return
    if header is None or records is None or header.size_bytes != len(records):
        _check_is_one_batch(records, version)
    elif version < FIRST_VERSION_OF_ZSTD and header.codec == ZSTD:
        raise _no_zstd(version)


def _check_is_one_batch(records: bytes | bytearray | memoryview | None, version: int) -> None:
    """Do the rest of `check_produce_version` where the bytes are not exactly one v2 batch."""
    size_bytes = None
    try:
        if records is not None:
            size_bytes = batch_size_at(records, 0)
        if records is None or size_bytes is None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "there is no whole record batch")
        if records[MAGIC_AT] != 2:
            raise KafkaError(
                ErrorCode.INVALID_RECORD,
                f"Produce v{version} carries batches of format v2 only, not v{records[MAGIC_AT]}",
            )
        if version < FIRST_VERSION_OF_ZSTD and read_header(records).codec == ZSTD:
            raise _no_zstd(version)
        if size_bytes < len(records) and batch_size_at(records, size_bytes) is not None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "there is more than one record batch")
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error


def _no_zstd(version: int) -> KafkaError:
    return KafkaError(
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        f"Produce v{version} cannot carry zstd, which came with v{FIRST_VERSION_OF_ZSTD}",
    )
