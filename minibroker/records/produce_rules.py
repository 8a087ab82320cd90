"""What a Produce request may carry, by its version, and how refused records are named to the
client.

The handler calls `check_produce_version` before the records go to the log; the log's own checks
(`storage/validator`) raise `InvalidRecordsError`, which the handler turns into the `record_errors`
of Produce v8 and later.

Source: Kafka ProduceRequest.validateRecords, RecordValidationException; KIP-467.
"""

from typing import Final, NamedTuple

from minibroker.error_codes import ErrorCode
from minibroker.errors import CorruptionError, KafkaError
from minibroker.records.batch import (
    ATTRIBUTES_AT,
    MAGIC_AT,
    TRANSACTIONAL_FLAG,
    batch_size_at,
    read_header,
)
from minibroker.records.compression import ZSTD

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
    """The batch is transactional, and its coordinator does not (yet) know of it."""


class LargeBatchError(Exception):
    """To check the batch would hold the loop: it is to be checked beside it. Nothing changed."""


def is_transactional(records: bytes | bytearray | memoryview) -> bool:
    """The flag of a format 2 batch, read without parsing the header: this is the hot path."""
    return (
        len(records) > ATTRIBUTES_AT + 1
        and records[MAGIC_AT] == 2
        and records[ATTRIBUTES_AT + 1] & TRANSACTIONAL_FLAG != 0
    )


def is_nothing(records: bytes | bytearray | memoryview) -> bool:
    """Whether there is no whole batch or message in `records`, which Produce v0-2 may send."""
    try:
        return batch_size_at(records, 0) is None
    except CorruptionError:
        return False


def check_produce_version(records: bytes | bytearray | memoryview | None, version: int) -> None:
    """Whether Produce `version` may carry `records` (all bytes of one partition).

    Raises KafkaError: INVALID_RECORD for no batch, several, or one of format 0 or 1 from v3 on;
    UNSUPPORTED_COMPRESSION_TYPE for zstd before v7; CORRUPT_MESSAGE where a length or magic is
    none. Before v3 anything goes, as in Kafka: the log decides.
    """
    if version < FIRST_VERSION_OF_V2:
        return
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
            raise KafkaError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"Produce v{version} cannot carry zstd, which came with v{FIRST_VERSION_OF_ZSTD}",
            )
        if size_bytes < len(records) and batch_size_at(records, size_bytes) is not None:
            raise KafkaError(ErrorCode.INVALID_RECORD, "there is more than one record batch")
    except CorruptionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, str(error)) from error
