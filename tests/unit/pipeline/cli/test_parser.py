"""Words of the command line → plans, wrong usage, and help pages."""

from __future__ import annotations

import pytest

from minibroker.cli import parser
from minibroker.cli.declaration import help_text, option_of, options_of
from minibroker.cli.errors import UsageError
from minibroker.cli.help_page import help_of, overview
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.options.declaration import Arguments
from minibroker.pipeline.options.shared import Engine
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.inspect.plan import InspectPlan
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.rollup.plan import RollupPlan
from minibroker.pipeline.verbs.table import VERB, VERBS

OVERVIEW = overview(VERB, VERBS)


def parse(verb: str, words: list[str]) -> Arguments:
    return VERBS[verb].arguments(parser.parse(VERBS[verb], words))


def test_every_option_is_in_the_help_of_its_verb() -> None:
    for verb in VERBS.values():
        page = help_of(verb)
        for field in verb.fields():
            assert f"\n  {option_of(field).flag}" in page, (verb.name, field.name)
        assert page.startswith(f"minibroker pipeline {verb.name}: {verb.does}\n")
        assert "\n  --dry-run" in page


def test_help_fits_a_terminal_of_a_hundred_columns() -> None:
    for text in (OVERVIEW, *map(help_of, VERBS.values())):
        assert max(len(line) for line in text.splitlines()) <= 100


def test_a_help_page_has_groups_and_its_examples_at_the_end() -> None:
    page = help_of(VERBS["archive"])
    titles = [line for line in page.splitlines() if line.endswith(":") and line[0].isupper()]
    assert titles == [
        "Topics and files:",
        "Records:",
        "Values as columns:",
        "Batches and files:",
        "Reactions:",
        "Connection:",
        "Spark:",
        "This command:",
    ]
    assert page.endswith("--schema-registry http://localhost:8081\n")
    assert "  --batch-rows N           records of a batch, at most (default: 2000000)\n" in page


@pytest.mark.parametrize(
    ("verb", "option", "default"),
    [
        ("archive", "--bootstrap", "bootstrap.servers of --kafka-config, or 127.0.0.1:9092"),
        ("archive", "--every", "1m"),
        ("archive", "--batch-bytes", "512MB"),
        ("copy", "--to-bootstrap", "bootstrap.servers of --to-kafka-config, or that of the source"),
        ("copy", "--to-kafka", "another cluster takes those only if it has none"),
        ("copy", "--to-kafka-config", "as --to-kafka"),
        ("copy", "--to-topic", "the name of the topic behind --prefix"),
        ("compare", "--with-bootstrap", "bootstrap.servers of --with-kafka-config, or that of A"),
        ("compare", "--with-kafka", "another cluster takes those only if it has none"),
        ("compare", "--with-kafka-config", "as --with-kafka"),
        ("replay", "--checkpoint", "FROM/_minibroker/replays/TOPIC"),
        ("rollup", "--checkpoint", "TO/_minibroker/checkpoint"),
        ("rollup", "--slide", "the length of a window"),
        ("rollup", "--time", "the record's timestamp"),
        ("lag", "--group", "all, but none beside --checkpoint"),
    ],
)
def test_a_default_that_depends_on_another_option_is_said(
    verb: str, option: str, default: str
) -> None:
    [field] = [field for field in options_of(VERBS[verb].plan) if option_of(field).flag == option]
    assert default in help_text(field)


def test_the_overview_names_every_verb() -> None:
    for verb in VERBS.values():
        assert f"\n  {verb.name} " in OVERVIEW
        assert f"\n  minibroker pipeline {verb.name} " in OVERVIEW


def test_archive() -> None:
    words = (
        "--topic=a,b --topic c --to d --follow --format=json --batch-rows=5 --on-data-loss continue"
    )
    arguments = parse("archive", words.split())
    assert arguments.plan == ArchivePlan(
        Kafka(),
        "d",
        ("a", "b", "c"),
        None,
        "json",
        follow=True,
        batch_rows=5,
        fail_on_data_loss=False,
    )
    assert (arguments.engine, arguments.dry_run) == (Engine(), False)


def test_an_archive_as_a_table() -> None:
    words = (
        "--topic a --to d --format iceberg --follow --every 5m --target-file-size 64MB "
        "--catalog type=rest --catalog uri=http://h --table logs.orders"
    )
    assert parse("archive", words.split()).plan == ArchivePlan(
        Kafka(),
        "d",
        ("a",),
        format="iceberg",
        follow=True,
        target_bytes=64 << 20,
        every_ms=300_000,
        catalog={"type": "rest", "uri": "http://h"},
        table="logs.orders",
    )


def test_arguments_of_all_commands() -> None:
    words = (
        "--bootstrap h:1,g:2 --kafka kafka.a=b --kafka c=d=e --source minibroker --jars x,y "
        "--jars z --packages p:q:1 --master local[2] --conf s.t=u --dry-run --topic a"
    )
    arguments = parse("inspect", words.split())
    kafka = Kafka("h:1,g:2", {"a": "b", "c": "d=e"})
    assert arguments.plan == InspectPlan(kafka, ("a",))
    assert arguments.engine == Engine("local[2]", ("x", "y", "z"), ("p:q:1",), {"s.t": "u"})
    assert arguments.dry_run


def test_replay() -> None:
    words = "--from d --to-topic t --topic a --speed 2x --keep-timestamps --keep-partitions"
    assert parse("replay", words.split()).plan == ReplayPlan(
        Kafka(), "d", "t", ("a",), 2.0, keep_timestamps=True, keep_partitions=True
    )
    assert parse("replay", ["--from", "d", "--to-topic", "t"]).plan == ReplayPlan(Kafka(), "d", "t")


def test_rollup() -> None:
    words = [
        *("--topic", "t", "--window", "1m", "--slide", "30s", "--by", "a", "--by", "lower(b) AS b"),
        *("--agg", "sum(x) AS s", "--agg", "count(*)", "--watermark", "5s", "--time", "at"),
        *("--example", "e.json", "--to", "out", "--checkpoint", "c", "--dead-letters", "bad"),
    ]
    assert parse("rollup", words).plan == RollupPlan(
        kafka=Kafka(),
        topic="t",
        window_ms=60_000,
        aggregates=("sum(x) AS s", "count(*)"),
        to="out",
        by=("a", "lower(b) AS b"),
        slide_ms=30_000,
        watermark_ms=5_000,
        time="at",
        example="e.json",
        dead_letters="bad",
        checkpoint_directory="c",
    )


@pytest.mark.parametrize(
    ("command", "words", "sentence"),
    [
        ("archive", "--nope", "unknown argument '--nope'"),
        ("archive", "orders", "unknown argument 'orders'"),
        ("archive", "--speed 1x", "unknown argument '--speed'"),
        ("archive", "--topic a", "--to is missing: for instance --to archive"),
        ("archive", "--to d", "either --topic or --pattern"),
        ("archive", "--topic a --pattern b --to d", "either --topic or --pattern"),
        ("archive", "--topic", "--topic needs a value"),
        ("archive", "--topic --to d", "--topic needs a value"),
        ("archive", "--topic a --to d --to e", "--to is given 2 times"),
        ("archive", "--topic a --to d --follow=yes", "--follow takes no value"),
        (
            "archive",
            "--topic a --to d --format xml",
            "expected parquet, json, csv, iceberg or delta",
        ),
        ("archive", "--topic a --to d --source zk", "'zk': expected minibroker"),
        ("archive", "--topic a --to d --source connector", "leave --source out"),
        ("archive", "--topic a --to d --batch-rows 0", "expected a number from 1 up"),
        ("archive", "--topic a --to d --batch-rows x", "expected a number from 1 up"),
        ("archive", "--topic a/b --to d", "'a/b' cannot be a topic"),
        ("archive", "--topic a --to d --bootstrap here", "expected HOST:PORT"),
        ("archive", "--topic a --to d --bootstrap h:1,g", "expected HOST:PORT"),
        ("archive", "--tpic a --to d", "unknown argument '--tpic' (did you mean --topic?)"),
        ("archive", "--topic a --to d --kafka k", "--kafka 'k': expected KEY=VALUE"),
        ("archive", "--topic a --to d --on-data-loss no", "expected fail or continue"),
        ("replay", "--to-topic t", "--from is missing"),
        ("replay", "--from d", "--to-topic is missing"),
        ("replay", "--from d --to-topic t --speed soon", "expected 1x"),
        ("rollup", "--topic a --topic b", "--topic is given 2 times"),
        ("rollup", "--topic a --window 1m --schema s", "instance --agg 'count("),
        ("rollup", "--topic a --agg x --window 1m --to ./d", "either --schema or --example"),
        ("rollup", "--topic a --agg x --schema s --window 1x --to ./d", "'1x' is no duration"),
        ("rollup", "--topic a --agg x --schema s --window 1m --to t", "with --checkpoint"),
        ("inspect", "--report r", "--topic or --log-dir"),
    ],
)
def test_wrong_usage(command: str, words: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(command, words.split())
    assert sentence in str(caught.value)
