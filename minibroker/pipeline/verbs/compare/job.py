"""`compare`: are two topics, or a topic and its archive, the same?

    ranges, files ─ tasks: digests ─► buckets that differ? ─ none ──────────────────► Comparison
                                                           └ some: read again, ─► one shuffle ┘
                                                             only their records
Equal sides are read once, and no record leaves its task. Of sides that differ, the partitions with
differences are read once more, and the hashes of the records in the buckets that differ are
shuffled once, by key.
"""

from __future__ import annotations

import json
import os
import secrets
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minibroker.cli.errors import EXIT_OK
from minibroker.clock import SystemClock
from minibroker.kafka.foreign_text import key_text
from minibroker.pipeline.cli import page_file
from minibroker.pipeline.cli.dry_run import Lines, operations_lines
from minibroker.pipeline.cli.one_answer import VerbAnswer
from minibroker.pipeline.errors import EXIT_DIFFERENT
from minibroker.pipeline.explain import READ_AGAIN, explained
from minibroker.pipeline.files.file_system import files_of
from minibroker.pipeline.kafka import preflight
from minibroker.pipeline.operations import mask_secret
from minibroker.pipeline.spark import places
from minibroker.pipeline.tables import archived_files
from minibroker.pipeline.verbs.compare import differences as compared
from minibroker.pipeline.verbs.compare import digests as compare_digests
from minibroker.pipeline.verbs.compare import sides as compare_sides
from minibroker.pipeline.verbs.compare import source as compare_source
from minibroker.pipeline.verbs.compare.digests import BucketDigest
from minibroker.pipeline.verbs.compare.facts import (
    DIFFERENCES,
    Comparison,
    Example,
    PartitionComparison,
    SideFacts,
)
from minibroker.pipeline.verbs.compare.page import page
from minibroker.pipeline.verbs.compare.source import EVERYWHERE, KEY_BYTES_SHOWN, Task
from minibroker.pipeline.verbs.compare.text import text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from minibroker.pipeline.verbs.compare.digests import RunDigest
    from minibroker.pipeline.verbs.compare.plan import ComparePlan
    from minibroker.pipeline.verbs.compare.rules import CompareRules
    from minibroker.pipeline.verbs.compare.sides import OpenSide
    from minibroker.pipeline.verbs.compare.source import Buckets

_TASKS_A_CORE = 2
"""Tasks of the shuffle for each core."""

Runs = dict[int, "RunDigest"]
"""Partition → the digest of its records."""


def check(plan: ComparePlan) -> None:
    """Check that both sides are there and that the page can be written.

    Args:
        plan: with its directories where the session has them (`launch.resolve_places`).

    Raises:
        PipelineError: no broker, no such topic, no such archive.
    """
    page_file.check(plan.report)
    for side in plan.sides:
        if side.archive is None:
            preflight.chosen_topics(preflight.ask(side.kafka), [str(side.topic)], None)
        elif (files := files_of(side.archive, None)) is not None:
            archived_files.format_of(files, side.archive)


def describe(plan: ComparePlan) -> Lines:
    """Return what a run would do, for `--dry-run`. Raises PipelineError if it could not run."""
    check(plan)
    a, b = plan.sides
    ignored = ", ".join(plan.rules.ignored)
    return [
        ("A", a.label),
        ("B", b.label),
        ("ignores", ignored or "nothing"),
        ("offsets", "have to be the same" if plan.same_offsets else "are shown, not compared"),
        *operations_lines(plan.operations, None),
        ("report", plan.report or "none: a table here"),
    ]


def run(
    spark: SparkSession, plan: ComparePlan, *, tell: Callable[[str], None] | None = None
) -> Comparison:
    """Compare the sides; write the page if `plan` names one.

    Args:
        plan: both sides, and what counts.
        tell: called with a few words about the current step.

    Raises:
        PipelineError: it cannot be done.
    """
    plan = places.resolve_places(plan, places.default_of_session(spark))
    try:
        comparison = _compare(spark, plan, tell or (lambda _: None))
    except Exception as error:
        raise explained(error, READ_AGAIN) from error
    if plan.report is not None:
        page_file.write(plan.report, page(comparison))
    return comparison


def answer(comparison: Comparison, *, is_terminal: bool) -> VerbAnswer:
    """Return a table for a person, a line of JSON for a script."""
    output = text(comparison) if is_terminal else json.dumps(comparison.as_json()) + "\n"
    return VerbAnswer(output, EXIT_OK if comparison.is_same else EXIT_DIFFERENT)


def _compare(spark: SparkSession, plan: ComparePlan, tell: Callable[[str], None]) -> Comparison:
    clock = SystemClock()
    begun_s = clock.monotonic_s()
    a, b = plan.sides
    secret = mask_secret.secret_of_job(plan.operations, os.environ, None)
    wanted_rows = compare_sides.Rows(plan.rules, plan.operations, secret)
    sides = [
        compare_sides.open_side(spark, a, 0, wanted_rows, b.topic),
        compare_sides.open_side(spark, b, 1, wanted_rows, a.topic),
    ]
    partitions = max(side.partitions for side in sides)
    task = Task(plan.rules, secrets.randbits(64), compare_digests.buckets_for(partitions))
    tell("reading both")
    digests = compare_sides.digests(spark, sides, task)
    runs_of_a, runs_of_b = (
        compare_digests.by_partition(digest for digest in digests if digest.side == number)
        for number in (0, 1)
    )
    buckets = differing(runs_of_a, runs_of_b, plan.rules)
    facts: Mapping[str, Any] = {"counts": [], "fields": {}, "examples": []}
    if buckets:
        tell("reading what differs")
        facts = _differences(spark, sides, task, buckets, plan.examples)
    return Comparison(
        a.label,
        b.label,
        plan.rules.ignored,
        _partitions(sides, runs_of_a, runs_of_b, facts["counts"]),
        dict(facts["fields"]),
        tuple(map(_example, facts["examples"])),
        clock.monotonic_s() - begun_s,
    )


def differing(a: Runs, b: Runs, rules: CompareRules) -> Buckets:
    """Return the buckets whose digests differ, or whose order the digests do not tell."""
    by_place = {
        partition: _differ(a.get(partition), b.get(partition), with_order=rules.order)
        for partition in sorted(a.keys() | b.keys())
    }
    if rules.partition:
        return {place: buckets for place, buckets in by_place.items() if buckets}
    if not any(by_place.values()):
        return {}
    all_of_a, all_of_b = compare_digests.total(a.values()), compare_digests.total(b.values())
    numbers = sorted(all_of_a.keys() | all_of_b.keys())
    nothing = BucketDigest()
    differences = [
        number
        for number in numbers
        if all_of_a.get(number, nothing).unordered != all_of_b.get(number, nothing).unordered
    ]
    if rules.order:
        differences = sorted(
            {*differences, *(number for buckets in by_place.values() for number in buckets)}
        )
    return {EVERYWHERE: differences} if differences else {}


def _differ(a: RunDigest | None, b: RunDigest | None, *, with_order: bool) -> list[int]:
    """Return the buckets in which two runs of a partition differ."""
    of_a, of_b = (({} if digest is None else digest.buckets) for digest in (a, b))
    is_ordered = all(digest is None or digest.is_ordered for digest in (a, b))
    nothing = BucketDigest()
    numbers = []
    for number in sorted(of_a.keys() | of_b.keys()):
        first, second = of_a.get(number, nothing), of_b.get(number, nothing)
        if not with_order:
            first, second = first.unordered, second.unordered
        if first != second or (with_order and not is_ordered):
            numbers.append(number)
    return numbers


def _differences(
    spark: SparkSession, sides: Sequence[OpenSide], task: Task, buckets: Buckets, examples: int
) -> Mapping[str, Any]:
    rows = compare_sides.rows(spark, sides, task, buckets)
    rows_that_differ = compared.differences(
        rows,
        with_order=task.rules.order,
        compared=task.rules.columns,
        tasks=_TASKS_A_CORE * spark.sparkContext.defaultParallelism,
    )
    with tempfile.TemporaryDirectory(prefix="minibroker-compare-") as directory:
        result = Path(directory, "differences.json")
        writer = rows_that_differ.write.format(compare_source.FORMAT).options(
            work=compare_source.DIFFERENCES, examples=str(examples), result=str(result)
        )
        writer.mode("append").save()
        facts: Mapping[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return facts


def _partitions(
    sides: Sequence[OpenSide], a: Runs, b: Runs, counts: Sequence[Sequence[Any]]
) -> tuple[PartitionComparison, ...]:
    numbers = {(kind, partition): number for kind, partition, number in counts}
    partitions = {*a, *b, *range(max(side.partitions for side in sides))}
    return tuple(
        PartitionComparison(
            partition,
            _facts(sides[0], a.get(partition), partition),
            _facts(sides[1], b.get(partition), partition),
            **{kind.field: numbers.get((kind.name, partition), 0) for kind in DIFFERENCES},
        )
        for partition in sorted(partitions)
    )


def _facts(side: OpenSide, digest: RunDigest | None, partition: int) -> SideFacts | None:
    if digest is None:
        # An archive has no word about partitions without records.
        return SideFacts() if side.archived is not None or partition < side.partitions else None
    times = (digest.first_ms, digest.last_ms) if digest.first_ms >= 0 else (None, None)
    return SideFacts(digest.records, digest.first_offset, digest.last_offset, *times)


def _key(key: bytes) -> str:
    return key_text(key[:KEY_BYTES_SHOWN], is_cut=len(key) > KEY_BYTES_SHOWN)


def _example(row: Sequence[Any]) -> Example:
    """Return a difference to show; `row` as `differences` writes it, keys in hexadecimal."""
    kind, partition_a, offset_a, partition_b, offset_b, fields, key = row
    return Example(
        kind,
        None if partition_a < 0 else (partition_a, offset_a),
        None if partition_b < 0 else (partition_b, offset_b),
        None if key == "null" else _key(bytes.fromhex(key)),
        tuple(fields.split(",")) if fields else (),
    )
