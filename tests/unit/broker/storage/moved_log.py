"""A small log on its way into another directory, round by round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker.broker.storage.files import REAL_FILES, Files
from minibroker.broker.storage.log_move import LogMove
from minibroker.broker.storage.partition_log import PartitionLog
from tests.support.logs import TOPIC_ID, append, config, open_manager

if TYPE_CHECKING:
    from pathlib import Path

SMALL = config(segment_bytes=300)


class Move:
    """A log of three records a segment in `a`, on its way to `b`."""

    def __init__(self, directory: Path, files: Files = REAL_FILES) -> None:
        self.manager = open_manager(str(directory / "a"), str(directory / "b"), files=files)
        self.log = self.manager.create_log("t", 0, TOPIC_ID, SMALL)
        self.append(10)
        self.move = LogMove(self.log, str(directory / "b"))

    def append(self, count: int) -> None:
        for _ in range(count):
            append(self.log, b"v%d" % self.log.log_end_offset)

    def rounds(self) -> int:
        """Copy until only the rest is left; how many rounds that took."""
        count = 0
        while (task := self.move.next_round()) is not None:
            task()
            count += 1
        self.move.sync()()
        return count

    def finish(self) -> PartitionLog:
        recovery_point = self.move.finish()
        assert recovery_point is not None
        log, remove_old = self.manager.complete_move(self.move, recovery_point)
        log.write_staged()
        remove_old()
        return log


def expected(count: int, first: int = 0) -> list[bytes]:
    return [b"v%d" % offset for offset in range(first, count)]
