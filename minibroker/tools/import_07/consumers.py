"""The positions that consumers of Kafka 0.7 have stored, and a file of them.

A group has a node for each partition that it reads, with the position of its next message as text:

    /consumers/GROUP/offsets/TOPIC/BROKER-PARTITION

`zookeeper` reads the nodes. Kafka's ExportZkOffsets writes each as a line, the path, a colon and
the position; such a file is read here.

Source: Kafka 0.7 ZKGroupTopicDirs, ExportZkOffsets.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.tools.import_07.errors import ImportRefusedError

if TYPE_CHECKING:
    from pathlib import Path

_LINE_CHARACTERS_MAX: Final = 10_000
_LINE: Final = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/([0-9]{1,9})-([0-9]{1,9}):(.*)")
_POSITION: Final = re.compile(r"[0-9]{1,19}")


class StoredPosition(NamedTuple):
    """The next message of a group in a partition."""

    group: str
    topic: str
    broker: int
    number: int
    position: int

    @property
    def name(self) -> str:
        """Return `TOPIC/BROKER-PARTITION`."""
        return f"{self.topic}/{self.broker}-{self.number}"


def positions_in_file(path: Path) -> list[StoredPosition]:
    """Return the positions in a file of ExportZkOffsets; lines without one (`null`) are left out.

    Raises ImportRefusedError for a line of another form; OSError.
    """
    positions = []
    with path.open(encoding="utf-8", errors="surrogateescape") as file:
        lines = iter(lambda: file.readline(_LINE_CHARACTERS_MAX), "")
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not text:
                continue
            match = _LINE.fullmatch(text)
            if match is None or not text.isprintable():
                raise ImportRefusedError(
                    f"{path}, line {number}: {text[:200]!r} is not of ExportZkOffsets, expected "
                    "/consumers/GROUP/offsets/TOPIC/BROKER-PARTITION:POSITION"
                )
            group, topic, broker, partition, position = match.groups()
            if position != "null":
                place = f"{path}, line {number}"
                at = position_of(position, place)
                positions.append(StoredPosition(group, topic, int(broker), int(partition), at))
    return positions


def position_of(text: str, place: str) -> int:
    """Return the position that a text says. Raises ImportRefusedError, with its `place`."""
    if not _POSITION.fullmatch(text):
        raise ImportRefusedError(f"{place} has {text[:100]!r}: expected a position in bytes")
    return int(text)
