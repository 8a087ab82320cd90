"""Words in, exit codes and sentences out; jobs on brokers are in tests/pipeline."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from minibroker import cli
from minibroker.cli.errors import EXIT_FAILED, EXIT_OK, EXIT_USAGE
from minibroker.cli.help_page import help_of, overview
from minibroker.cli.program import run_words
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark import launch, session
from minibroker.pipeline.verbs.inspect import job as inspect
from minibroker.pipeline.verbs.table import VERB, VERBS

if TYPE_CHECKING:
    from pathlib import Path

OVERVIEW = overview(VERB, VERBS)


def run(*words: str) -> tuple[int, str, str]:
    out, errors = io.StringIO(), io.StringIO()
    code = run_words(["pipeline", *words], out, errors)
    return code, out.getvalue(), errors.getvalue()


def test_help() -> None:
    for word in ("--help", "-h", "help"):
        assert run(word) == (EXIT_OK, OVERVIEW, "")
    for verb in VERBS.values():
        assert run(verb.name, "--topic", "--help") == (EXIT_OK, help_of(verb), "")


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, errors = run("archive", "--nope")
    assert (code, out) == (EXIT_USAGE, "")
    assert errors == (
        "minibroker pipeline archive: unknown argument '--nope'; "
        "see minibroker pipeline archive --help\n"
    )
    assert run() == (EXIT_USAGE, "", OVERVIEW)
    assert "unknown verb 'archve' (did you mean archive?); see" in run("archve")[2]
    assert cli.main(["pipeline", "replay"]) == EXIT_USAGE
    assert capsys.readouterr().err.count("\n") == 1


def test_a_setting_that_the_client_does_not_know_is_wrong_usage(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("bootstrap.server=127.0.0.1:1\n")
    code, _, errors = run("lag", "--once", "--kafka-config", str(file))
    assert code == EXIT_USAGE
    assert errors.startswith(
        "minibroker pipeline lag: the Kafka settings (--kafka, --kafka-config)"
    )
    assert "bootstrap.server is no setting that this client knows; bootstrap.servers is" in errors


def test_an_address_under_its_name_in_librdkafka_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("metadata.broker.list=127.0.0.1:1\n")
    code, _, errors = run("lag", "--once", "--kafka-config", str(file))
    assert code == EXIT_FAILED
    assert "no broker answers at 127.0.0.1:1 " in errors


def test_maintain_takes_no_flag_that_would_change_nothing() -> None:
    """It asks neither a broker nor Spark."""
    for flag in ("--bootstrap", "--master"):
        code, _, errors = run("maintain", "--to", "./orders-table", flag, "127.0.0.1:1")
        assert (code, f"unknown argument '{flag}'" in errors) == (EXIT_USAGE, True)


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_broker_s_directory_is_on_the_default_file_system_as_every_directory(
    monkeypatch: pytest.MonkeyPatch, more: tuple[str, ...]
) -> None:
    """It is refused before Spark starts, since no broker keeps its files there."""
    monkeypatch.setattr(session, "running", lambda: None)
    default = "spark.hadoop.fs.defaultFS=hdfs://name:8020"
    code, out, errors = run("inspect", "--log-dir", "/logs", "--conf", default, *more)
    assert (code, out) == (EXIT_FAILED, "")
    sentence = errors.splitlines()[-1]
    assert sentence.startswith(
        "minibroker pipeline inspect: hdfs://name:8020/logs is not a directory"
    )


@pytest.mark.slow
def test_nobody_there_is_one_sentence() -> None:
    words = ("--topic", "t", "--to", "nowhere", "--bootstrap", "127.0.0.1:1")
    for more, lines in (((), 1), (("--dry-run",), 0)):
        code, out, errors = run("archive", *words, *more)
        assert (code, out.count("\n")) == (EXIT_FAILED, lines)
        assert errors.startswith("minibroker pipeline archive: no broker answers at 127.0.0.1:1 ")
        assert errors.count("\n") == 1


def test_without_the_extra_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    code, _, errors = run("archive", "--topic", "t", "--to", "nowhere")
    assert code == EXIT_FAILED
    assert errors == (
        "minibroker pipeline archive: pyspark and pyarrow are not installed: "
        "pip install 'minibroker[pipeline]'\n"
    )


def test_help_and_wrong_usage_import_no_spark_and_no_client() -> None:
    code = (
        "import sys; from minibroker.cli import main; "
        "main(['pipeline', '--help']); main(['pipeline', 'archive', '--nope']); "
        "print([m for m in sys.modules if m.split('.')[0] in "
        "('pyspark', 'pyarrow', 'confluent_kafka') or m.startswith('minibroker.client')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert result.stdout.endswith("[]\n")


def test_ctrl_c_cancels_an_inspection(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark says of each job that it was cancelled; a person is told that nothing was written."""
    is_cancelled = threading.Event()
    spark = SimpleNamespace(sparkContext=SimpleNamespace(cancelAllJobs=is_cancelled.set))

    def run(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert is_cancelled.wait(60)
        raise PipelineError("Spark stopped: the job was cancelled")

    monkeypatch.setattr(inspect, "check", lambda plan: None)
    monkeypatch.setattr(inspect, "run", run)
    monkeypatch.setattr(launch, "started", lambda *_, **__: nullcontext(spark))
    errors = io.StringIO()
    assert run_words(["pipeline", "inspect", "--topic", "t"], io.StringIO(), errors) == 130
    _, sentence = errors.getvalue().splitlines()
    assert sentence == "minibroker pipeline inspect: interrupted; nothing was written"
