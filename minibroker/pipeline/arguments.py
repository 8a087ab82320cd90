"""From the words behind `minibroker pipeline COMMAND` to a plan, and to the place where Spark runs.

Hand-written, as the rest of the command line is; a flag's value stands behind it or behind `=`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.plan import (
    ARCHIVE_FORMATS,
    DEFAULT_BATCH_ROWS,
    DEFAULT_KEEP_MS,
    DEFAULT_MASTER,
    DEFAULT_TARGET_BYTES,
    FAIL,
    FORMATS,
    ON_RECREATED,
    REPLAY_BATCH_ROWS,
    SOURCES,
    ArchivePlan,
    Engine,
    InspectPlan,
    JobUsageError,
    MaintainPlan,
    ReplayPlan,
    RollupPlan,
    bytes_of,
    check_choice,
    check_topic,
    checked,
    duration_ms,
    kafka_of,
    speed_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from minibroker.pipeline.plan import Kafka, Plan

ON_DATA_LOSS: Final = ("fail", "continue")

_COMMON: Final = frozenset(
    {
        *("--bootstrap", "--kafka", "--kafka-config", "--source", "--jars", "--packages"),
        *("--master", "--conf", "--dry-run"),
    }
)
"""Flags of every command that asks the broker and runs Spark."""
_SWITCHES: Final = frozenset({"--dry-run", "--follow", "--keep-timestamps", "--keep-partitions"})
_REPEATED: Final = frozenset(
    {"--topic", "--by", "--agg", "--kafka", "--conf", "--jars", "--packages", "--catalog"}
)


class Arguments(NamedTuple):
    """A command line, parsed."""

    plan: Plan
    engine: Engine
    dry_run: bool


class Given:
    """The flags of a command line, with their values in order."""

    def __init__(self, words: Sequence[str], allowed: frozenset[str]) -> None:
        self._values: dict[str, list[str]] = {}
        remaining = iter(words)
        for word in remaining:
            flag, equals, value = word.partition("=")
            if flag not in allowed:
                raise JobUsageError(f"unknown argument {word!r}")
            if flag in _SWITCHES:
                if equals:
                    raise JobUsageError(f"{flag} takes no value")
            elif not equals:
                value = _value_of(flag, remaining)
            self._values.setdefault(flag, []).append(value)
        for flag, values in self._values.items():
            if len(values) > 1 and flag not in _REPEATED | _SWITCHES:
                raise JobUsageError(f"{flag} is given {len(values)} times")

    def has(self, flag: str) -> bool:
        """Return whether the flag was given."""
        return flag in self._values

    def one(self, flag: str) -> str | None:
        """Return the value of a flag, None if it was not given."""
        return self._values[flag][-1] if flag in self._values else None

    def needed(self, flag: str, example: str) -> str:
        """Return the value of a flag that the command needs. Raises UsageError."""
        value = self.one(flag)
        if not value:
            raise JobUsageError(f"{flag} is missing: for instance {flag} {example}")
        return value

    def many(self, flag: str) -> tuple[str, ...]:
        """Return all values of a flag."""
        return tuple(self._values.get(flag, ()))

    def listed(self, flag: str) -> tuple[str, ...]:
        """Return all values of a flag, each split at its commas."""
        return tuple(
            part.strip() for value in self.many(flag) for part in value.split(",") if part.strip()
        )

    def pairs(self, flag: str) -> dict[str, str]:
        """Return the values of a flag, each `KEY=VALUE`, as a dict. Raises UsageError."""
        pairs = {}
        for value in self.many(flag):
            key, equals, text = value.partition("=")
            if not equals or not key.strip():
                raise JobUsageError(f"{flag} {value}: expected KEY=VALUE")
            pairs[key.strip()] = text
        return pairs

    def rows(self, default: int) -> int:
        """Return the value of `--batch-rows`. Raises UsageError."""
        text = self.one("--batch-rows")
        if text is None:
            return default
        if not text.isdecimal() or int(text) < 1:
            raise JobUsageError(f"--batch-rows {text}: expected a number from 1 up")
        return int(text)


def parse(command: str, words: Sequence[str]) -> Arguments:
    """Parse the words behind `minibroker pipeline COMMAND`. Raises UsageError."""
    flags, make = _COMMANDS[command]
    given = Given(words, flags)
    kafka = kafka_of(
        _bootstrap(given),
        check_choice("--source", given.one("--source") or SOURCES[0], SOURCES),
        given.one("--kafka-config"),
        given.pairs("--kafka"),
    )
    engine = Engine(
        master=given.one("--master") or DEFAULT_MASTER,
        jars=given.listed("--jars"),
        packages=given.listed("--packages"),
        conf=given.pairs("--conf"),
    )
    plan = make(given, kafka)
    if not isinstance(plan, InspectPlan | MaintainPlan):
        checked(plan)
    return Arguments(plan, engine, given.has("--dry-run"))


def _archive(given: Given, kafka: Kafka) -> ArchivePlan:
    topics, pattern = _topics(given), given.one("--pattern")
    if bool(topics) == bool(pattern):
        raise JobUsageError("what to archive: either --topic T or --pattern P")
    size, every = given.one("--target-file-size"), given.one("--every")
    return ArchivePlan(
        kafka=kafka,
        to=given.needed("--to", "archive"),
        topics=topics,
        pattern=pattern,
        format=_format(given, ARCHIVE_FORMATS),
        follow=given.has("--follow"),
        batch_rows=given.rows(DEFAULT_BATCH_ROWS),
        fail_on_data_loss=_fails_on_data_loss(given),
        on_recreated=_on_recreated(given),
        target_bytes=bytes_of(size) if size else DEFAULT_TARGET_BYTES,
        every_ms=duration_ms(every) if every else None,
        catalog=given.pairs("--catalog"),
        table=given.one("--table"),
    )


def _replay(given: Given, kafka: Kafka) -> ReplayPlan:
    return ReplayPlan(
        kafka=kafka,
        archive=given.needed("--from", "archive"),
        to_topic=check_topic(given.needed("--to-topic", "orders-copy")),
        topics=_topics(given),
        speed=speed_of(given.one("--speed") or "max"),
        keep_timestamps=given.has("--keep-timestamps"),
        keep_partitions=given.has("--keep-partitions"),
        batch_rows=given.rows(REPLAY_BATCH_ROWS),
        checkpoint_directory=given.one("--checkpoint"),
    )


def _rollup(given: Given, kafka: Kafka) -> RollupPlan:
    topics = _topics(given)
    if len(topics) != 1:
        raise JobUsageError("what to roll up: one --topic T")
    schema, example = given.one("--schema"), given.one("--example")
    if bool(schema) == bool(example):
        raise JobUsageError("the fields of a value: either --schema FILE or --example FILE")
    aggregates = given.many("--agg")
    if not aggregates:
        raise JobUsageError("--agg is missing: for instance --agg 'count(*) AS records'")
    slide, every = given.one("--slide"), given.one("--every")
    return RollupPlan(
        kafka=kafka,
        topic=topics[0],
        window_ms=duration_ms(given.needed("--window", "1m")),
        aggregates=aggregates,
        to=given.needed("--to", "./windows"),
        by=given.many("--by"),
        slide_ms=duration_ms(slide) if slide else None,
        watermark_ms=duration_ms(given.one("--watermark") or "10m"),
        time=given.one("--time"),
        schema=schema,
        example=example,
        bad_records=given.one("--bad-records"),
        format=_format(given),
        follow=given.has("--follow"),
        batch_rows=given.rows(DEFAULT_BATCH_ROWS),
        fail_on_data_loss=_fails_on_data_loss(given),
        on_recreated=_on_recreated(given),
        checkpoint_directory=given.one("--checkpoint"),
        every_ms=duration_ms(every) if every else None,
    )


def _inspect(given: Given, kafka: Kafka) -> InspectPlan:
    topics, log_dir = _topics(given), given.one("--log-dir")
    if not topics and not log_dir:
        raise JobUsageError("what to inspect: --topic T, or --log-dir DIR")
    return InspectPlan(kafka=kafka, topics=topics, log_dir=log_dir, report=given.one("--report"))


def _maintain(given: Given, kafka: Kafka) -> MaintainPlan:
    size, keep = given.one("--target-file-size"), given.one("--keep")
    return MaintainPlan(
        to=given.needed("--to", "archive"),
        target_bytes=bytes_of(size) if size else DEFAULT_TARGET_BYTES,
        keep_ms=duration_ms(keep) if keep else DEFAULT_KEEP_MS,
        catalog=given.pairs("--catalog"),
        table=given.one("--table"),
    )


def _topics(given: Given) -> tuple[str, ...]:
    return tuple(dict.fromkeys(check_topic(name) for name in given.listed("--topic")))


def _bootstrap(given: Given) -> str | None:
    value = given.one("--bootstrap")
    if value is None:
        return None
    for address in value.split(","):
        host, colon, port = address.strip().rpartition(":")
        if not (host and colon and port.isdecimal() and 0 < int(port) <= 65535):
            raise JobUsageError(f"--bootstrap {value}: expected HOST:PORT, such as 127.0.0.1:9092")
    return value


def _format(given: Given, allowed: Sequence[str] = FORMATS) -> str:
    return check_choice("--format", given.one("--format") or allowed[0], allowed)


def _fails_on_data_loss(given: Given) -> bool:
    chosen = given.one("--on-data-loss") or ON_DATA_LOSS[0]
    return check_choice("--on-data-loss", chosen, ON_DATA_LOSS) == "fail"


def _on_recreated(given: Given) -> str:
    return check_choice("--on-recreated", given.one("--on-recreated") or FAIL, ON_RECREATED)


def _value_of(flag: str, remaining: Iterator[str]) -> str:
    value = next(remaining, None)
    if value is None or value.startswith("--"):
        raise JobUsageError(f"{flag} needs a value")
    return value


_COMMANDS: Final[dict[str, tuple[frozenset[str], Callable[[Given, Kafka], Plan]]]] = {
    "archive": (
        frozenset(
            {
                *("--topic", "--pattern", "--to", "--follow", "--format", "--batch-rows"),
                *(
                    "--on-data-loss",
                    "--on-recreated",
                    "--target-file-size",
                    "--every",
                    "--catalog",
                    "--table",
                ),
            }
        )
        | _COMMON,
        _archive,
    ),
    "replay": (
        frozenset(
            {
                *("--from", "--to-topic", "--topic", "--speed", "--keep-timestamps"),
                *("--keep-partitions", "--batch-rows", "--checkpoint"),
            }
        )
        | _COMMON,
        _replay,
    ),
    "rollup": (
        frozenset(
            {
                *("--topic", "--window", "--slide", "--by", "--agg", "--time", "--watermark"),
                *("--schema", "--example", "--to", "--format", "--bad-records", "--checkpoint"),
                *("--follow", "--batch-rows", "--on-data-loss", "--on-recreated"),
                "--every",
            }
        )
        | _COMMON,
        _rollup,
    ),
    "maintain": (
        frozenset({"--to", "--target-file-size", "--keep", "--catalog", "--table", "--dry-run"}),
        _maintain,
    ),
    "inspect": (frozenset({"--topic", "--log-dir", "--report"}) | _COMMON, _inspect),
}
"""Command → its flags, and the function that makes its plan."""
