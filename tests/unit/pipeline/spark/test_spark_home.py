"""Spark's home of links: it has what is installed, and is left alone where somebody chose one."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from minibroker.pipeline.spark.spark_home import java_options, link_all, quick_home

VARIABLES = ("SPARK_HOME", "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT")


@pytest.fixture(autouse=True)
def nothing_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    monkeypatch.setattr("pyspark.SparkContext._gateway", None)


def test_everything_is_linked_but_the_zip_files_for_python(tmp_path: Path) -> None:
    installed, home = tmp_path / "installed", tmp_path / "home"
    for name in ("bin", "jars", "python"):
        (installed / name).mkdir(parents=True)
    home.mkdir()
    link_all(installed, home)
    assert {entry.name: entry.readlink() for entry in home.iterdir()} == {
        "bin": installed / "bin",
        "jars": installed / "jars",
    }


@pytest.mark.pure("wants PySpark among the packages of this environment")
def test_spark_finds_the_home_while_it_starts() -> None:
    with quick_home({"spark.pyspark.driver.python": sys.executable}):
        home = Path(os.environ["SPARK_HOME"])
        assert (home / "bin" / "spark-submit").exists()
        assert (home / "jars").is_dir()
        assert not (home / "python").exists()
    assert "SPARK_HOME" not in os.environ


def test_java_starts_quickly_unless_somebody_has_chosen_its_options() -> None:
    [(name, options)] = java_options({}, {}, cores=2).items()
    assert name == "spark.driver.defaultJavaOptions"
    assert options.startswith("-XX:+UseSerialGC -XX:Tier4InvocationThreshold=50000 ")
    [many] = java_options({}, {}, cores=16).values()
    assert "UseSerialGC" not in many
    for conf, environment in (
        ({"spark.driver.memory": "8g"}, {}),
        ({"spark.driver.extraJavaOptions": "-XX:+UseG1GC"}, {}),
        ({name: ""}, {}),
        ({}, {"JAVA_TOOL_OPTIONS": "-XX:+UseZGC"}),
        ({}, {"SPARK_CONF_DIR": "/etc/spark"}),
    ):
        assert java_options(conf, environment, cores=2) == {}


@pytest.mark.pure("wants PySpark among the packages of this environment")
def test_options_of_the_launcher_are_those_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    with quick_home({}):
        assert "UseSerialGC" in os.environ["SPARK_LAUNCHER_OPTS"]
    assert "SPARK_LAUNCHER_OPTS" not in os.environ
    monkeypatch.setenv("SPARK_LAUNCHER_OPTS", "-Dmine=1")
    with quick_home({}):
        assert os.environ["SPARK_LAUNCHER_OPTS"] == "-Dmine=1"
    assert os.environ["SPARK_LAUNCHER_OPTS"] == "-Dmine=1"


@pytest.mark.parametrize("name", [*VARIABLES, "PYSPARK_PYTHON"])
def test_a_choice_in_the_environment_stays(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "/chosen")
    environment = os.environ.copy()
    with quick_home({}):
        assert os.environ == environment


def test_workers_with_another_python_keep_the_zip_file() -> None:
    with quick_home({"spark.pyspark.python": "/usr/bin/python3"}):
        assert "SPARK_HOME" not in os.environ
