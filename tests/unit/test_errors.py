"""What each exception tells, and that one base catches them all."""

from __future__ import annotations

import errno
import inspect

import pytest

from minibroker import errors
from minibroker.error_codes import ErrorCode
from minibroker.errors import (
    CoordinationError,
    KafkaError,
    MinibrokerError,
    StorageError,
    SyncError,
    as_answer,
)


def test_a_kafka_error_tells_its_code_by_name() -> None:
    assert str(KafkaError(ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"
    error = KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")
    assert str(error) == "INVALID_TOPIC_EXCEPTION: no dots"
    assert (error.code, error.detail) == (ErrorCode.INVALID_TOPIC_EXCEPTION, "no dots")


def test_what_ends_a_request_is_an_error_of_its_answer() -> None:
    refused = KafkaError(ErrorCode.INVALID_CONFIG, "why")
    assert as_answer(refused) == (int(ErrorCode.INVALID_CONFIG), "why")
    assert as_answer(CoordinationError("away")) == (int(ErrorCode.REQUEST_TIMED_OUT), "away")


def test_all_errors_have_one_base_and_a_line_that_says_what_they_are() -> None:
    classes = [found for _, found in inspect.getmembers(errors, inspect.isclass)]
    ours = [found for found in classes if found.__module__ == errors.__name__]
    assert len(ours) == 9
    for found in ours:
        assert issubclass(found, MinibrokerError)
        assert found.__doc__


def test_the_table_of_the_module_names_every_class() -> None:
    ours = [
        found for found in MinibrokerError.__subclasses__() if found.__module__ == errors.__name__
    ]
    for found in ours:
        assert found.__name__ in (errors.__doc__ or "")


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
    error = StorageError("cannot append", log_directory="/data")
    error.__cause__ = cause
    assert error.is_lasting == is_lasting
    assert error.log_directory == "/data"


@pytest.mark.parametrize(
    ("code", "is_lasting"),
    [(errno.EIO, True), (errno.ENOSPC, True), (errno.EDQUOT, True), (errno.EMFILE, False)],
)
def test_a_full_disk_that_fails_an_fsync_is_not_trusted_again(code: int, is_lasting: bool) -> None:
    error = SyncError("cannot flush", log_directory="/data")
    assert not error.is_lasting
    error.__cause__ = OSError(code, "refused")
    assert error.is_lasting == is_lasting
