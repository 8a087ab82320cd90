"""Options of `minibroker serve` besides Kafka's settings; `cli` fills them, `app` follows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence


class UsageError(Exception):
    """The arguments make no command."""


class TopicToCreate(NamedTuple):
    """One `--topic`. `partitions` is -1 for the broker's `num.partitions`."""

    name: str
    partitions: int
    configs: dict[str, str]


class ServeOptions:
    """Options of `serve` that are no settings of Kafka's."""

    __slots__ = (
        "control",
        "control_token",
        "in_memory",
        "log_level",
        "loop",
        "ready_file",
        "ready_lines",
        "topics",
    )

    def __init__(
        self,
        *,
        topics: Sequence[TopicToCreate] = (),
        ready_file: str | None = None,
        in_memory: bool = False,
        loop: str = "uvloop",
        log_level: str = "info",
        control: tuple[str, int] | None = None,
        control_token: str | None = None,
        ready_lines: Sequence[str] = (),
    ) -> None:
        self.topics = tuple(topics)
        self.ready_file = ready_file
        self.ready_lines = tuple(ready_lines)
        """More lines for stdout once it serves: users who start a container wait for them."""
        self.in_memory = in_memory
        """Data live in a temporary directory, which `app` makes and removes."""
        self.loop = loop
        self.log_level = log_level
        self.control = control
        """Host and port of the control API, None: there is none."""
        self.control_token = control_token
        """The token that callers have to show, None for none."""


def parse_topic(text: str) -> TopicToCreate:
    """Return the topic of `NAME[:PARTITIONS[:KEY=VALUE…]]`; a part with `=` may also follow the
    name at once.

    A value may hold colons: a part without `=` belongs to the value before it. Raises UsageError.
    """
    name, *parts = text.split(":")
    partitions = -1
    if parts and "=" not in parts[0]:
        count = parts.pop(0)
        if not count.isdecimal() or int(count) < 1:
            raise UsageError(f"--topic {text}: {count!r} is not a number of partitions from 1 up")
        partitions = int(count)
    configs: dict[str, str] = {}
    key = ""
    for part in parts:
        before, equals, after = part.partition("=")
        if equals:
            key, configs[before] = before, after
        elif key:
            configs[key] += f":{part}"
        if not key:
            raise UsageError(f"--topic {text}: {part!r} is not KEY=VALUE")
    if not name:
        raise UsageError(f"--topic {text}: expected NAME[:PARTITIONS[:KEY=VALUE...]]")
    return TopicToCreate(name, partitions, configs)
