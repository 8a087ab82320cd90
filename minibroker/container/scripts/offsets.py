"""`kafka-get-offsets`, and `kafka-run-class kafka.tools.GetOffsetShell`: offsets of partitions.

Source: Kafka GetOffsetShell (3.9).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TextIO

from minibroker.client import admin
from minibroker.container.scripts.connecting import OPTIONS as CONNECTION
from minibroker.container.scripts.connecting import reader_of
from minibroker.container.scripts.options import ScriptError, ScriptOption
from minibroker.kafka.ids import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.container.scripts.options import Words

_NAME: Final = "kafka-get-offsets"
DOES: Final = {_NAME: "show offsets of partitions"}
OPTIONS: Final = {
    _NAME: {
        **CONNECTION,
        "broker-list": ScriptOption("HOST:PORT[,…]", "old name of --bootstrap-server"),
        "topic": ScriptOption("TOPIC", "the topic, or a pattern"),
        "partitions": ScriptOption("N,…", "the partitions"),
        "topic-partitions": ScriptOption(
            "TOPIC:N,…", "patterns of topics and ranges of partitions"
        ),
        "time": ScriptOption(
            "TIME", "latest (-1), earliest (-2), max-timestamp (-3), or milliseconds"
        ),
        "exclude-internal-topics": ScriptOption("", "without internal topics"),
        "offsets": ScriptOption("N", "without effect"),
        "max-wait-ms": ScriptOption("N", "without effect"),
    }
}
_TIMES: Final = {
    "latest": -1,
    "earliest": -2,
    "max-timestamp": -3,
    "earliest-local": -4,
    "latest-tiered": -5,
}
_RULE: Final = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
_PARTITIONS_MAX: Final = 1 << 31


def run(_: str, words: Words, out: TextIO, errors: TextIO) -> int:
    """Show the offsets; return the exit code. Raises ScriptError, KafkaError, OSError …"""
    words.require("bootstrap-server" if not words.has("broker-list") else "broker-list")
    time_text = words.value("time", default="latest")
    client = reader_of(words)
    is_meant = _filter_of(words)
    places = [
        TopicPartition(name, partition.number)
        for name, topic in admin.describe(client).topics.items()
        if not (topic.is_internal and words.has("exclude-internal-topics"))
        for partition in topic.partitions
        if is_meant(name, partition.number)
    ]
    if not places:
        raise ScriptError(
            "Error occurred: Could not match any topic-partitions with the specified filters"
        )
    answers = admin.list_offsets(
        client, dict.fromkeys(places, _time(time_text)), is_committed=False
    )
    for place in sorted(places, key=str):
        if place in answers.failed:
            errors.write(
                f"Skip getting offsets for topic-partition {place} due to error:"
                f" {answers.failed[place]}\n"
            )
        elif answers.offsets[place] >= 0:
            out.write(f"{place.topic}:{place.partition}:{answers.offsets[place]}\n")
    return 0


def _time(text: str) -> int:
    try:
        return _TIMES[text] if text in _TIMES else int(text)
    except ValueError:
        raise ScriptError(
            f"Error occurred: Malformed time argument {text}. Please use -1 or latest / -2 or"
            " earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered, or a"
            " specified long format timestamp"
        ) from None


def _filter_of(words: Words) -> Callable[[str, int], bool]:
    """Return whether a partition is meant, as a function. Raises ScriptError."""
    rules = words.value("topic-partitions")
    if rules:
        if words.has("topic", "partitions"):
            raise ScriptError(
                "Error occurred: --topic-partitions cannot be used with --topic or --partitions"
            )
        ranges = [_range(rule) for rule in rules.split(",")]
        return lambda name, number: any(
            pattern.fullmatch(name) is not None and number in span for pattern, span in ranges
        )
    pattern = re.compile(words.value("topic", default=".*").replace(",", "|"))
    numbers = words.value("partitions")
    try:
        chosen_indexes = {int(number) for number in numbers.split(",") if number}
    except ValueError:
        raise ScriptError(
            "Error occurred: --partitions expects a comma separated list of numeric partition ids,"
            f" but received: {numbers}"
        ) from None
    return lambda name, number: (
        pattern.fullmatch(name) is not None and (not chosen_indexes or number in chosen_indexes)
    )


def _range(rule: str) -> tuple[re.Pattern[str], range]:
    """Return topics and partitions of `orders:0-3`. Raises ScriptError."""
    match = _RULE.fullmatch(rule)
    if match is None:
        raise ScriptError(f"Error occurred: Invalid rule specification: {rule}")
    name, single, low, high = match.groups()
    pattern = re.compile(name or ".*")
    if single:
        return pattern, range(int(single), int(single) + 1)
    return pattern, range(int(low or 0), int(high or _PARTITIONS_MAX))
