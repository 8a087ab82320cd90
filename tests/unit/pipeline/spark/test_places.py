"""Paths of a job: where Spark's default file system is, and what becomes of a plan's paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.kafka.cluster import Kafka
from minibroker.pipeline.spark import places
from minibroker.pipeline.verbs.archive.plan import ArchivePlan
from minibroker.pipeline.verbs.replay.plan import ReplayPlan
from minibroker.pipeline.verbs.rollup.plan import RollupPlan

if TYPE_CHECKING:
    from pathlib import Path

NAMENODE = "hdfs://name:8020"
SITE = f"""<?xml version="1.0"?>
<configuration>
  <property><name>io.file.buffer.size</name><value>4096</value></property>
  <property><name>fs.defaultFS</name><value> {NAMENODE} </value></property>
</configuration>
"""


def rollup(to: str) -> RollupPlan:
    return RollupPlan(
        Kafka(), "t", 1000, ["count(*)"], to, dead_letters="./bad", checkpoint_directory="/c"
    )


def test_the_default_is_found_where_spark_finds_it(tmp_path: Path) -> None:
    """The stronger place first: a setting, Spark's file, Hadoop's file, this machine."""
    hadoop, spark = tmp_path / "hadoop", tmp_path / "spark"
    hadoop.mkdir()
    spark.mkdir()
    environment = {"HADOOP_CONF_DIR": str(hadoop), "SPARK_CONF_DIR": str(spark)}
    assert places.default_of({}, environment) == places.LOCAL
    (hadoop / "core-site.xml").write_text(SITE)
    assert places.default_of({}, environment) == NAMENODE
    (spark / "spark-defaults.conf").write_text("# mine\nspark.hadoop.fs.defaultFS  s3a://lake\n")
    assert places.default_of({}, environment) == "s3a://lake"
    assert places.default_of({"spark.hadoop.fs.defaultFS": "file:///"}, environment) == "file:///"
    assert places.default_of({}, {"YARN_CONF_DIR": str(hadoop)}) == NAMENODE


def test_a_file_of_hadoop_that_is_no_xml_is_named(tmp_path: Path) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(PipelineError, match=r"core-site\.xml cannot be read"):
        places.default_of({}, {"HADOOP_CONF_DIR": str(tmp_path)})


def test_paths_go_to_the_default_and_urls_stay() -> None:
    plan = places.resolve_places(ArchivePlan(Kafka(), "/lake/orders"), f"{NAMENODE}/")
    assert isinstance(plan, ArchivePlan)
    assert plan.to == f"{NAMENODE}/lake/orders"
    for url in ("s3a://b/c", "file:///c"):
        replay = places.resolve_places(ReplayPlan(Kafka(), url, "copy"), NAMENODE)
        assert isinstance(replay, ReplayPlan)
        assert (replay.archive, replay.checkpoint_directory) == (url, None)


def test_on_this_machine_paths_become_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    plan = places.resolve_places(rollup("./out"), places.LOCAL)
    assert isinstance(plan, RollupPlan)
    assert (plan.to, plan.dead_letters) == (str(tmp_path / "out"), str(tmp_path / "bad"))
    assert plan.shared_paths == ["/c", plan.to, plan.dead_letters]
    topic = places.resolve_places(rollup("totals"), places.LOCAL)
    assert isinstance(topic, RollupPlan)
    assert topic.to == "totals"
    assert topic.shared_paths == ["/c", str(tmp_path / "bad")]


def test_a_relative_path_elsewhere_is_refused() -> None:
    with pytest.raises(PipelineError, match=rf"^\./bad is a relative path, .* {NAMENODE}: give"):
        places.resolve_places(rollup("/lake/windows"), NAMENODE)
