"""The producers of one log on their way from the disk into memory.

A snapshot of 200,000 producers takes half a second to read and to parse. So the loop has the worker
of the log's directory do it when the first one asks (`cold`). The worker reads the files by itself
and changes nothing that belongs to the loop.

Source: Kafka ProducerStateManager.truncateAndReload, which Kafka calls at the start.
"""

import logging
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from minibroker.broker.storage import names, producer_files
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.producer_state import Producers, ProducerState
from minibroker.broker.storage.segment import Segment
from minibroker.broker.storage.segments import Segments
from minibroker.kafka.errors import CorruptionError
from minibroker.kafka.ids import TopicPartition

logger = logging.getLogger(__name__)

_TRIES_MAX: Final = 3
"""Retention may take a snapshot or a segment while it is read. The next try does not find it."""


class ProducersLoad:
    """One load. Any thread may call it, more than once: it loads once. The loop calls `apply`."""

    __slots__ = (
        "_active_bytes",
        "_base_offsets",
        "_directory",
        "_end_offset",
        "_expiration_ms",
        "_files",
        "_lock",
        "_log_start_offset",
        "_name",
        "_now_ms",
        "_on_loaded",
        "_producers",
        "failure",
        "state",
    )

    def __init__(
        self,
        files: Files,
        name: TopicPartition,
        directory: str,
        segments: Segments,
        *,
        log_start_offset: int,
        end_offset: int,
        now_ms: int,
        expiration_ms: int,
        on_loaded: "Callable[[ProducersLoad], None]",
    ) -> None:
        """`end_offset`: the producers are those below it. `on_loaded` is called by `apply`.

        Raises OSError.
        """
        # Constant after construction.
        self._files = files
        self._name = name
        self._directory = directory
        self._base_offsets: Sequence[int] = segments.base_offsets
        self._active_bytes = segments.last.size_bytes
        self._log_start_offset = log_start_offset
        self._end_offset = end_offset
        self._now_ms = now_ms
        self._expiration_ms = expiration_ms
        self._on_loaded = on_loaded
        self._lock = Lock()
        # Held by the thread that loads. It sets what follows, once.
        self._producers: Producers | None = None
        self.state: ProducerState | None = None
        """The result. Nobody uses it before the loop has taken it."""
        self.failure: OSError | CorruptionError | None = None

    def __call__(self) -> None:
        """Load, unless it is done already. Raises nothing: `failure` says what went wrong. After a
        failure the next call tries again.
        """
        with self._lock:
            if self.state is None:
                self._load()

    def _load(self) -> None:
        for _ in range(_TRIES_MAX):
            try:
                state = self._read()
            except FileNotFoundError as error:
                self.failure = error
            except (OSError, CorruptionError) as error:
                self.failure = error
                return
            else:
                self.failure = None
                self._producers = dict(state.producers)
                self.state = state
                return

    def _read(self) -> ProducerState:
        """Read with files and indexes of its own. Raises OSError, CorruptionError."""
        disk = Disk(self._files)
        segments = Segments()
        there = set(self._files.list_files(self._directory))
        active = self._base_offsets[-1]
        for base_offset in self._base_offsets:
            if base_offset != active and names.segment_file(base_offset, names.LOG) not in there:
                continue  # retention took it since
            segments.add(Segment(disk, self._directory, base_offset, created_ms=self._now_ms))
        segments.last.assume_size(self._active_bytes)
        state = ProducerState(self._name)
        try:
            producer_files.load_state(
                self._files,
                self._directory,
                segments,
                state=state,
                log_start_offset=self._log_start_offset,
                end_offset=self._end_offset,
                now_ms=self._now_ms,
                expiration_ms=self._expiration_ms,
            )
        finally:
            disk.close()
        return state

    def producers(self) -> Producers:
        """Return the producers that were found, loaded now if need be; they do not change. Raises
        OSError, CorruptionError.
        """
        self()
        if self.failure is not None:
            raise self.failure
        assert self._producers is not None
        return self._producers

    def apply(self) -> None:
        """Hand over the result. On the loop."""
        self._on_loaded(self)
