"""The exceptions that cross module borders; what each means and who handles it.

| class             | who is wrong          | handled by                                      |
|-------------------|-----------------------|-------------------------------------------------|
| KafkaError        | the request, timing   | the handler or `server/dispatch`: a code         |
| ProtocolError     | the peer's bytes      | `server/connection`: logged, connection closed   |
| CorruptionError   | bytes on disk         | `storage/recovery`: truncates, refuses to start  |
| StorageError      | the disk              | `partitions`: KAFKA_STORAGE_ERROR                |
| CoordinationError | ZooKeeper, tree file  | the handler: a retriable error                   |
| ConfigError       | the configuration     | `cli`: one sentence, exit 1                      |

Every message names the thing, the value found and what was expected.
"""

from minibroker.error_codes import ErrorCode


class MinibrokerError(Exception):
    """Base of all of them; never raised itself."""


class KafkaError(MinibrokerError):
    """A request that Kafka answers with an error code. `detail` is Kafka's error message field."""

    def __init__(self, code: ErrorCode, detail: str | None = None) -> None:
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
    """The disk refused: full, gone, no permission, in use by another process."""


class CoordinationError(MinibrokerError):
    """The metadata tree cannot be reached now (or its session was lost)."""


class ConfigError(MinibrokerError):
    """A configuration that cannot be served: names the key, the value and what is allowed."""
