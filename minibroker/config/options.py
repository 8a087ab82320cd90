"""What `minibroker serve` is told besides Kafka's settings; `cli` fills it, `app` follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class TopicToCreate(NamedTuple):
    """One `--topic`. `partitions` is -1 for the broker's `num.partitions`."""

    name: str
    partitions: int
    configs: dict[str, str]


class ServeOptions:
    """What `serve` was told that is no setting of Kafka's."""

    __slots__ = ("in_memory", "log_level", "loop", "ready_file", "topics")

    def __init__(
        self,
        *,
        topics: Sequence[TopicToCreate] = (),
        ready_file: str | None = None,
        in_memory: bool = False,
        loop: str = "uvloop",
        log_level: str = "info",
    ) -> None:
        self.topics = tuple(topics)
        self.ready_file = ready_file
        self.in_memory = in_memory
        """Data live in a temporary directory, which `app` makes and removes."""
        self.loop = loop
        self.log_level = log_level
