"""The exceptions that cross module borders; what each means and who handles it.

| class             | who is wrong          | handled by                                      |
|-------------------|-----------------------|-------------------------------------------------|
| KafkaError        | the request, timing   | the handler or `server/dispatch`: a code         |
| ProtocolError     | the peer's bytes      | `server/connection`: logged, connection closed   |
| CorruptionError   | bytes on disk         | `storage/recovery`: truncates, refuses to start  |
| StorageError      | the disk              | `partitions`: KAFKA_STORAGE_ERROR                |
| CoordinationError | ZooKeeper, tree file  | the handler: a retriable error                   |
| ConfigError       | the configuration     | `cli`: one sentence, exit 1                      |
| any other         | we                    | `answer_error`: logged, UNKNOWN_SERVER_ERROR     |

Every message names the thing, the value found and what was expected.
"""

import errno
import logging
from typing import Final

from minibroker.error_codes import ErrorCode

logger = logging.getLogger(__name__)


class MinibrokerError(Exception):
    """Base of all of them; never raised itself."""


DETAIL_MAX: Final = 8_000
"""Characters of an error message; each takes up to four bytes."""


def cut_detail(text: str) -> str:
    """Return an error message that its field can hold.

    A message may repeat a client's text of 32,767 bytes, and the field holds no more than that.
    """
    return text if len(text) <= DETAIL_MAX else f"{text[:DETAIL_MAX]}…"


class KafkaError(MinibrokerError):
    """A request that Kafka answers with an error code. `detail` is Kafka's error message field.

    A long one is cut as by `cut_detail`.
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
    """The disk refused: full, gone, no permission, in use by another process.

    `log_directory` is the one of `log.dirs` that refused, where that is known.
    """

    def __init__(self, message: str, *, log_directory: str | None = None) -> None:
        super().__init__(message)
        self.log_directory = log_directory

    @property
    def is_lasting(self) -> bool:
        """Whether the system call that failed will fail again: then the directory is of no use.

        A full disk may have room again, and handles or memory may be free a moment later. Kafka
        takes every IOException for lasting, a full disk as well.
        """
        cause = self.__cause__
        return isinstance(cause, OSError) and cause.errno not in _PASSING


class SyncError(StorageError):
    """An fsync failed. What it was for can still be read and may be gone from the disk, and the
    next fsync may succeed without it: room that comes back mends nothing.
    """

    @property
    def is_lasting(self) -> bool:
        cause = self.__cause__
        is_full = isinstance(cause, OSError) and cause.errno in _FULL
        return is_full or super().is_lasting


class HalfChangedError(StorageError):
    """Of several files that change together some have: nothing can be served out of them before a
    start has brought them in order, whatever refused the others.
    """

    @property
    def is_lasting(self) -> bool:
        return True


_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_PASSING: Final = _FULL | frozenset(
    {
        errno.EFBIG,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.EAGAIN,
    }
)


class CoordinationError(MinibrokerError):
    """The metadata tree cannot be reached now (or its session was lost)."""


class ConfigError(MinibrokerError):
    """A configuration that cannot be served: names the key, the value and what is allowed."""


def as_kafka_error(error: BaseException) -> KafkaError:
    """Return the error that clients get for a request, or a part of it, that ended with `error`.

    Where Kafka's metadata is out of reach it waits until the request has timed out: clients try
    again at this code. Whatever nobody foresaw is UNKNOWN_SERVER_ERROR.
    """
    if isinstance(error, KafkaError):
        return error
    if isinstance(error, CoordinationError):
        return KafkaError(ErrorCode.REQUEST_TIMED_OUT, str(error))
    return KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)


def answer_error(error: BaseException, what: str) -> KafkaError:
    """Return `as_kafka_error`, and log what the client's request alone does not explain.

    A bug of ours is logged with its traceback. `what` names the part that failed: a request, or a
    partition or topic of one.

    Kafka catches so for each partition of Produce, Fetch, ListOffsets and DeleteRecords and for
    each resource of its admin APIs: one bad part leaves the others.
    """
    if isinstance(error, CoordinationError):
        logger.warning("%s: %s", what, error)
    elif not isinstance(error, KafkaError):
        logger.error("%s failed", what, exc_info=error)
    return as_kafka_error(error)


def as_answer(error: Exception, what: str) -> tuple[int, str | None]:
    """`error_code` and `error_message` of `answer_error`."""
    known = answer_error(error, what)
    return int(known.code), known.detail
