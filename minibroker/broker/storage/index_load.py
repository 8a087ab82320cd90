"""The indexes of a segment that are missing or damaged, made again on the worker.

Batch headers of the whole `.log` are read for that, up to 1 GiB of them. The worker writes the
indexes under other names, and the loop puts them in their place, if nobody has opened the indexes
meanwhile. A start removes what a crash leaves.

Source: Kafka LogSegment.sanityCheck, LogSegment.recover.
"""

import logging
from collections.abc import Callable
from typing import Final

from minibroker.broker.storage import names
from minibroker.broker.storage.disk import Disk
from minibroker.broker.storage.files import Files
from minibroker.broker.storage.header_walk import walk_headers
from minibroker.broker.storage.segment_indexes import SegmentIndexes
from minibroker.kafka.errors import CorruptionError

logger = logging.getLogger(__name__)

UNFINISHED: Final = names.DELETED
"""A start removes files with this suffix."""


class IndexLoad:
    """A worker calls it, then the loop calls `apply`."""

    __slots__ = ("_base_offset", "_files", "_is_done", "_is_wanted", "_paths", "_size_bytes")

    def __init__(
        self,
        files: Files,
        paths: tuple[str, str, str],
        base_offset: int,
        size_bytes: int,
        is_wanted: Callable[[], bool],
    ) -> None:
        """`paths`: of `.log`, offset index and time index. `size_bytes`: of `.log`. `is_wanted` is
        asked on the loop: is the segment in service, and has nobody opened its indexes?
        """
        self._files = files
        self._paths = paths
        self._base_offset = base_offset
        self._size_bytes = size_bytes
        self._is_wanted = is_wanted
        # Set by the worker, read by the loop in `apply`.
        self._is_done = False

    def __call__(self) -> None:
        """Make them. Raises nothing: the next reader finds them missing, and tells why."""
        log_path, *index_paths = self._paths
        disk = Disk(self._files)
        try:
            offset_path, time_path = (path + UNFINISHED for path in index_paths)
            indexes = SegmentIndexes(disk, offset_path, time_path, self._base_offset)
            indexes.rebuild(walk_headers(disk, log_path, 0, self._size_bytes))
            self._is_done = True
        except (OSError, CorruptionError) as error:
            logger.warning("cannot make the indexes of %s again: %s", log_path, error)
        finally:
            disk.close()

    def apply(self) -> None:
        """Put them in their place. On the loop."""
        if not self._is_done or not self._is_wanted():
            return
        try:
            for path in self._paths[1:]:
                self._files.replace(path + UNFINISHED, path)
        except OSError as error:
            logger.warning("cannot put %s in its place: %s", path, error)
