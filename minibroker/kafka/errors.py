"""The exceptions that cross the borders of packages, with their meaning and their handler.

| class             | at fault              | handled by                                      |
|-------------------|-----------------------|-------------------------------------------------|
| KafkaError        | the request, timing   | the handler or `server/dispatch`: a code         |
| ProtocolError     | the peer's bytes      | `server/dispatch`: logged, connection closed     |
| CorruptionError   | bytes on disk         | `storage/recovery`: truncates, refuses to start  |
| StorageError      | the disk              | `partitions`: KAFKA_STORAGE_ERROR                |
| CoordinationError | ZooKeeper, tree file  | the handler: a retriable error                   |
| ForeignTreeError  | ZooKeeper's operator  | `cluster/follow`: the broker stops, one sentence |
| ConfigError       | the configuration     | `cli`: one sentence, exit 1                      |
| any other         | minibroker (a bug)    | `answer_error`: logged, UNKNOWN_SERVER_ERROR     |

Every message names the thing, the value found and what was expected.
"""

import errno
import logging
from typing import Final

from minibroker.kafka.error_codes import ErrorCode

logger = logging.getLogger(__name__)


class MinibrokerError(Exception):
    """Base class of all of them; never raised itself."""


DETAIL_MAX: Final = 8_000
"""Most characters of an error message; a character takes up to four bytes."""


def cut_detail(text: str) -> str:
    """Return the error message, shortened to the length that its field can hold.
    A message may repeat a text of the client, which may have 32,767 bytes; the field holds no more.
    """
    return text if len(text) <= DETAIL_MAX else f"{text[:DETAIL_MAX]}…"


class KafkaError(MinibrokerError):
    """A request that Kafka answers with an error code. `detail` is the text of Kafka's error
    message.
    A long text is shortened as by `cut_detail`.
    """

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
        if detail is not None:
            detail = cut_detail(detail)
        super().__init__(code, detail)
        self.code = code
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.code.name}: {self.detail}" if self.detail else self.code.name


class ProtocolError(MinibrokerError):
    """Bytes from a peer that no Kafka client sends."""


class CorruptionError(MinibrokerError):
    """Bytes on disk that break the format; the message names file and position."""


class StorageError(MinibrokerError):
    """A disk that refused an operation: full, gone, no permission, in use by another process.
    `log_directory` is the entry of `log.dirs` that refused, None if it is not known. `cause` is
    the error of the system call, as a `from` gives it: compiled code loses the `from` of a `raise`.
    """

    def __init__(
        self, message: str, *, log_directory: str | None = None, cause: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.log_directory = log_directory
        if cause is not None:
            self.__cause__ = cause

    @property
    def is_full(self) -> bool:
        """Return whether the disk has no room, which may be over at any moment."""
        cause = self.__cause__
        return isinstance(cause, OSError) and cause.errno in _FULL

    @property
    def is_lasting(self) -> bool:
        """Return whether the failed system call would fail again, so that the directory is
        unusable.
        A full disk may have room again, and handles or memory may be free a moment later. Kafka
        treats every IOException as lasting, also that of a full disk.
        """
        cause = self.__cause__
        return isinstance(cause, OSError) and cause.errno not in _TEMPORARY


class SyncError(StorageError):
    """An fsync that failed. The bytes can still be read, but may be lost from the disk.
    The next fsync may succeed without them, so free space later does not repair the loss.
    """

    @property
    def is_lasting(self) -> bool:
        return self.is_full or super().is_lasting


class FullLeaderError(StorageError):
    """A full disk of a leader, while another replica is in sync and could lead in its place."""


class HalfChangedError(StorageError):
    """A group of files that change together, of which only some have changed.
    They cannot be served until a start has repaired them, whatever the reason of the failure.
    """

    @property
    def is_lasting(self) -> bool:
        return True


class UnexpectedOffsetError(KafkaError):
    """An append begins before the log's end. Kafka: UnexpectedAppendOffsetException.

    An empty log may begin again at `first_offset` where `last_offset` is beyond its end: its start
    is inside a batch, after DeleteRecords.
    """

    def __init__(self, detail: str, *, first_offset: int, last_offset: int) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, detail)
        self.first_offset = first_offset
        """First offset; of formats 0 and 1 the offset of the first batch's last record."""
        self.last_offset = last_offset
        """Last offset of the last batch."""


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_TEMPORARY: Final = _FULL | frozenset(
    {
        errno.EFBIG,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
    }
)


class CoordinationError(MinibrokerError):
    """The metadata tree cannot be reached now, or its session was lost."""


class AwayError(CoordinationError):
    """The metadata tree does not answer at this moment; the same call may succeed in a moment."""


class ForeignTreeError(MinibrokerError):
    """The metadata tree is another cluster's than this broker's, or is empty now."""


class ConfigError(MinibrokerError):
    """A configuration that cannot be served; the message names the key, the value and what is
    allowed.
    """


def as_kafka_error(error: BaseException) -> KafkaError:
    """Return the error that a client gets for a request, or a part of it, that ended with `error`.
    If the metadata cannot be reached, Kafka waits until the request times out; here the client gets
    a code after which it asks again. An unforeseen error is UNKNOWN_SERVER_ERROR.
    """
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, CoordinationError):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error))
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def answer_error(error: BaseException, subject: str) -> KafkaError:
    """Return `as_kafka_error`, and log an error that the request alone does not explain.
    A bug of minibroker is logged with its traceback. `subject` names the part that failed: a
    request, or a partition or topic in it.
    Kafka catches errors for each partition of Produce, Fetch, ListOffsets and DeleteRecords and for
    each resource of its admin APIs, so a bad part leaves the others alone.
    """
    if isinstance(error, CoordinationError):
        logger.warning("%s: %s", subject, error)
    elif not isinstance(error, KafkaError):
        logger.error("%s failed", subject, exc_info=error)
    return as_kafka_error(error)


def as_answer(error: Exception, subject: str) -> tuple[int, str | None]:
    """Return the `error_code` and `error_message` of `answer_error`."""
    answer = answer_error(error, subject)
    return int(answer.code), answer.detail
