"""`copy`: names of copies, both clusters, and what does not go together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.cli.errors import UsageError
from minibroker.pipeline.verbs.table import VERBS
from tests.support.plans import plan_from

if TYPE_CHECKING:
    from pathlib import Path

    from minibroker.pipeline.verbs.copy.plan import CopyPlan


def plan(words: str) -> CopyPlan:
    copy_plan: CopyPlan = plan_from(VERBS["copy"], f"--checkpoint ./c {words}".split())
    return copy_plan


def test_copies_have_names() -> None:
    assert plan("--topic a --to-topic b").target_of("a") == "b"
    assert plan("--topic a,b --prefix west.").target_of("b") == "west.b"
    assert plan("--pattern .*").target_of("b") == "b"
    assert plan("--topic a").keeps_partitions
    assert not plan("--topic a --by-key").keeps_partitions


def test_the_target_is_the_source_unless_something_is_said() -> None:
    copy_plan = plan("--topic a --bootstrap here:1 --kafka client.id=x")
    assert copy_plan.target == copy_plan.kafka
    moved = plan("--topic a --bootstrap here:1 --kafka client.id=x --to-bootstrap there:2").target
    assert (moved.bootstrap, moved.settings) == ("there:2", {"client.id": "x"})
    other = plan("--topic a --to-bootstrap there:2 --to-kafka client.id=y").target
    assert (other.bootstrap, other.settings) == ("there:2", {"client.id": "y"})


def test_a_setting_of_the_target_does_not_say_where_it_is() -> None:
    source = "--topic a --bootstrap here:1 --kafka sasl.mechanism=PLAIN --kafka client.id=x"
    target_cluster = plan(
        f"{source} --to-kafka compression.type=zstd --to-kafka client.id=y"
    ).target
    assert target_cluster.bootstrap == "here:1"
    assert target_cluster.settings == {
        "sasl.mechanism": "PLAIN",
        "client.id": "y",
        "compression.type": "zstd",
    }
    moved = plan(f"{source} --to-kafka bootstrap.servers=there:2").target
    assert (moved.bootstrap, moved.settings["client.id"]) == ("there:2", "x")


def test_a_file_of_settings_says_where_the_target_is(tmp_path: Path) -> None:
    file = tmp_path / "target.properties"
    file.write_text("bootstrap.servers=there:2\ncompression.type=zstd\n")
    target_cluster = plan(
        f"--topic a --bootstrap here:1 --kafka client.id=x --to-kafka-config {file}"
    )
    assert target_cluster.target.bootstrap == "there:2"
    assert target_cluster.target.settings == {"compression.type": "zstd"}
    file.write_text("compression.type=zstd\n")
    assert target_cluster.target.bootstrap == "here:1"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "what to copy: give either --topic or --pattern"),
        ("--topic a --pattern b", "give either --topic or --pattern"),
        ("--topic a,b --to-topic c", "for several give --prefix"),
        ("--topic a --to-topic c --prefix d", "for several give --prefix"),
        ("--topic a --by-key --groups g", "leave out --by-key, or --groups"),
        ("--topic a --every 5m", "--every is for a job with --follow"),
        ("--topic a --groups-pattern (", "--groups-pattern '(' is no regular expression"),
    ],
)
def test_wrong_usage(words: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        plan(words)
    assert sentence in str(caught.value)
