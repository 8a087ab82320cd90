"""Options of `minibroker serve` besides Kafka's settings; `verbs.serve` fills them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from minibroker.kafka.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.config.control import ControlOptions
    from minibroker.broker.config.registry import RegistryOptions


class TopicToCreate(NamedTuple):
    """One `--topic`."""

    name: str
    partitions: int
    """-1: the broker's `num.partitions`."""
    configs: dict[str, str]
    replicas: int = 0
    """0: the broker's `default.replication.factor`."""


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


def parse_topic(text: str) -> TopicToCreate:
    """Return the topic of `NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE…]`.

    A value may hold colons: a part without `=` belongs to the value before it. Raises ConfigError.
    """
    name, *parts = text.split(":")
    counts = [-1, 0]
    for place, part_name in enumerate(("partitions", "replicas")):
        if not parts or "=" in parts[0]:
            break
        count = parts.pop(0)
        if not count.isdecimal() or int(count) < 1:
            raise ConfigError(f"{text}: {count!r} is not a number of {part_name} from 1 up")
        counts[place] = int(count)
    configs: dict[str, str] = {}
    key = ""
    for part in parts:
        part_key, equals, value = part.partition("=")
        if equals:
            key, configs[part_key] = part_key, value
        elif key:
            configs[key] += f":{part}"
        if not key:
            raise ConfigError(f"{text}: {part!r} is not KEY=VALUE")
    if not name:
        raise ConfigError(f"{text}: expected NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE...]")
    return TopicToCreate(name, counts[0], configs, counts[1])
