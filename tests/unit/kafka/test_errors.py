"""The text of each exception, and the one base class of all."""

from __future__ import annotations

import errno
import inspect
from typing import TYPE_CHECKING, Any

import pytest

from minibroker.broker.partitions.partition import Partition
from minibroker.kafka import errors
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import (
    CoordinationError,
    KafkaError,
    MinibrokerError,
    StorageError,
    SyncError,
    as_answer,
)
from minibroker.kafka.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from minibroker.kafka.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from minibroker.kafka.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from tests.support.in_process import InProcessBroker

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_a_kafka_error_tells_its_code_by_name() -> None:
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")
    assert str(error) == "INVALID_TOPIC_EXCEPTION: no dots"
    assert (error.code, error.detail) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")


def test_an_exception_in_a_request_is_an_error_of_its_answer() -> None:
    refused = KafkaError(ErrorCode.INVALID_CONFIG, "why")
    assert as_answer(refused, "t") == (int(ErrorCode.INVALID_CONFIG), "why")
    assert as_answer(CoordinationError("away"), "t") == (int(ErrorCode.REQUEST_TIMED_OUT), "away")


def test_all_errors_have_one_base_and_a_line_that_says_what_they_are() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass)]
    ours = [cls for cls in classes if cls.__module__ == errors.__name__]
    assert len(ours) == 13
    for cls in ours:
        assert issubclass(cls, MinibrokerError)
        assert cls.__doc__


def test_the_table_of_the_module_names_every_class() -> None:
    ours = [cls for cls in MinibrokerError.__subclasses__() if cls.__module__ == errors.__name__]
    for cls in ours:
        assert cls.__name__ in (errors.__doc__ or "")


@pytest.mark.parametrize(
    ("cause", "is_lasting"),
    [
        (OSError(errno.EIO, "I/O error"), True),
        (OSError(errno.EROFS, "read-only"), True),
        (FileNotFoundError(errno.ENOENT, "gone"), True),
        (OSError(errno.ENOSPC, "full"), False),
        (OSError(errno.EMFILE, "too many"), False),
        (OSError(errno.EFBIG, "too large"), False),
        (ValueError("no system call"), False),
        (None, False),
    ],
)
def test_a_disk_that_is_full_or_busy_may_take_the_next_write(
    cause: Exception | None, is_lasting: bool
) -> None:
    error = StorageError("cannot append", log_directory="/data", cause=cause)
    assert error.is_lasting == is_lasting
    assert error.log_directory == "/data"


@pytest.mark.parametrize(
    ("code", "is_lasting"),
    [(errno.EIO, True), (errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EMFILE, False)],
)
def test_a_full_disk_that_fails_an_fsync_is_not_trusted_again(code: int, is_lasting: bool) -> None:
    assert not SyncError("cannot flush", log_directory="/data").is_lasting
    error = SyncError("cannot flush", log_directory="/data", cause=OSError(code, "refused"))
    assert error.is_lasting == is_lasting


def test_a_bug_is_answered_as_kafka_answers_one_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    answered = as_answer(ZeroDivisionError("a bug"), "appending to t-3")
    assert answered == (int(ErrorCode.UNKNOWN_SERVER_ERROR), None)
    (record,) = caplog.records
    assert record.getMessage() == "appending to t-3 failed"
    assert record.exc_info is not None


# A bug at one partition of several: where Kafka catches per partition.

FETCH = FetchRequest(
    max_bytes=1000,
    topics=[
        FetchTopic(
            topic="t",
            partitions=[FetchPartition(partition=index, partition_max_bytes=1) for index in (0, 1)],
        )
    ],
)
LIST_OFFSETS = ListOffsetsRequest(
    topics=[
        ListOffsetsTopic(
            name="t",
            partitions=[ListOffsetsPartition(partition_index=i, timestamp=0) for i in (0, 1)],
        )
    ]
)
DELETE_RECORDS = DeleteRecordsRequest(
    topics=[
        DeleteRecordsTopic(
            name="t", partitions=[DeleteRecordsPartition(partition_index=i) for i in (0, 1)]
        )
    ]
)


def of_fetch(answer: Any) -> dict[int, int]:
    partitions = answer.responses[0].partitions
    return {part.partition_index: part.error_code for part in partitions}


def of_topics(answer: Any) -> dict[int, int]:
    return {part.partition_index: part.error_code for part in answer.topics[0].partitions}


@pytest.mark.parametrize(
    ("method", "request_", "version", "codes_of"),
    [
        pytest.param(
            *("bounds", FETCH, 11, of_fetch),
            marks=pytest.mark.pure("replaces Partition.bounds"),
        ),
        ("offset_for_timestamp", LIST_OFFSETS, 5, of_topics),
        ("delete_records", DELETE_RECORDS, 1, of_topics),
    ],
)
async def test_the_other_partitions_are_served(  # noqa: PLR0917
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    method: str,
    request_: Any,
    version: int,
    codes_of: Callable[[Any], dict[int, int]],
) -> None:
    real = getattr(Partition, method)

    def fail_at_0(self: Partition, *arguments: Any, **options: Any) -> Any:
        if self.index == 0:
            raise ZeroDivisionError("a bug")
        return real(self, *arguments, **options)

    monkeypatch.setattr(Partition, method, fail_at_0)
    async with InProcessBroker(tmp_path) as running:
        await running.create_topic("t", 2)
        async with await running.connect() as client:
            answer = await client.call(request_, version)
    assert codes_of(answer) == {0: ErrorCode.UNKNOWN_SERVER_ERROR, 1: 0}
    (record,) = [record for record in caplog.records if record.exc_info]
    assert "t-0" in record.getMessage()


def test_a_message_that_its_field_could_not_hold_is_cut() -> None:
    """A client's text of 32,767 bytes with words around it was an answer that could not be sent."""
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"no such name: {'ä' * 32_767}")
    assert error.detail is not None
    assert error.detail.startswith("no such name: ä")
    assert error.detail.endswith("ä…")
    assert len(error.detail.encode()) < 32_767
