"""Options of `minibroker serve` besides Kafka's settings; `verbs.serve` fills them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.config.control import ControlOptions
    from minibroker.broker.config.registry import RegistryOptions
    from minibroker.broker.config.topic_option import TopicToCreate


class ServeOptions:
    """Options of `serve` that are no settings of Kafka's."""

    __slots__ = (
        "brokers",
        "control",
        "in_memory",
        "log_level",
        "loop",
        "ready_file",
        "ready_lines",
        "registry",
        "seeds",
        "topics",
    )

    def __init__(
        self,
        *,
        topics: Sequence[TopicToCreate] = (),
        ready_file: str | None = None,
        in_memory: bool = False,
        loop: str = "auto",
        log_level: str = "info",
        control: ControlOptions | None = None,
        registry: RegistryOptions | None = None,
        ready_lines: Sequence[str] = (),
        brokers: int = 1,
        seeds: Sequence[str] = (),
    ) -> None:
        self.topics = tuple(topics)
        self.seeds = tuple(seeds)
        """Files and directories to load before the broker says that it is ready."""
        self.brokers = brokers
        """How many brokers this process runs."""
        self.ready_file = ready_file
        self.ready_lines = tuple(ready_lines)
        """More lines for stdout once it serves: users who start a container wait for them."""
        self.in_memory = in_memory
        """Data live in a temporary directory, which `app` makes and removes."""
        self.loop = loop
        """`uvloop`, `asyncio`, or `auto`: uvloop where it is installed."""
        self.log_level = log_level
        self.control = control
        """The control API, None: there is none."""
        self.registry = registry
        """The schema registry, None: there is none."""
