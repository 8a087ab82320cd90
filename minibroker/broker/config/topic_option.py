"""A topic of the command line: `NAME[:PARTITIONS[:REPLICAS]][:KEY=VALUE…]`, as `--topic` has it."""

from __future__ import annotations

from typing import NamedTuple

from minibroker.kafka.errors import ConfigError


class TopicToCreate(NamedTuple):
    """One `--topic`."""

    name: str
    partitions: int
    """-1: the broker's `num.partitions`."""
    configs: dict[str, str]
    replicas: int = 0
    """0: the broker's `default.replication.factor`."""


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
