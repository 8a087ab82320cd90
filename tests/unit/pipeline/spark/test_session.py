"""Work before Spark starts: the search for Java, and the zip file of the package."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.spark import session


def java_home(directory: Path, version: str) -> Path:
    """Return the directory with a program that answers as Java of this version does."""
    java = directory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return directory


def test_no_java_in_path_is_one_sentence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(PipelineError, match=r"^no Java: .* install it"):
        session.check_java()


def test_a_java_home_without_java_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(PipelineError, match=f"JAVA_HOME is {tmp_path}"):
        session.check_java()


def test_an_old_java_is_named_with_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "11.0.2")))

    with pytest.raises(PipelineError, match="is version 11 and Spark needs 17"):
        session.check_java()


def test_a_jar_that_is_not_there_is_named(tmp_path: Path) -> None:
    present_jar = tmp_path / "there.jar"
    present_jar.touch()
    session.check_jars(
        (str(present_jar), f"file://{present_jar}", f"{tmp_path}/*.jar", "s3a://jars/a.jar")
    )

    for jar in ("nowhere.jar", f"file://{tmp_path}/no.jar", f"{tmp_path}/*.zip"):
        with pytest.raises(PipelineError, match=r"there is no jar .*: check its path"):
            session.check_jars((str(present_jar), jar))


@pytest.mark.parametrize(
    ("master", "is_local"),
    [
        ("local[*]", True),
        ("local", True),
        ("local-cluster[2,1,512]", True),
        ("spark://host:7077", False),
        ("yarn", False),
    ],
)
def test_only_masters_of_this_machine_use_the_loopback_address(master: str, is_local: bool) -> None:
    assert session.is_on_this_machine(master) is is_local


def test_the_package_travels_whole_and_imports_from_its_file(tmp_path: Path) -> None:
    """A Python that sees nothing but the file finds the modules in it, and no caches."""
    path = session.zip_package(tmp_path / "package.zip")
    program = (
        "import sys; sys.path[:] = [p for p in sys.path if 'site-packages' not in p];"
        f"sys.path.insert(0, {str(path)!r});"
        "from minibroker.pipeline import errors; from minibroker.pipeline import __file__ as f;"
        "assert f.startswith(sys.path[0]), f"
    )

    done = subprocess.run(
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert b"__pycache__" not in path.read_bytes()


@pytest.mark.parametrize(
    ("sentence", "cause"),
    [
        (
            "An error occurred while calling None.JavaSparkContext.\n"
            ": org.apache.spark.SparkException: Could not parse Master URL: 'nowhere'\n\tat a.B",
            "org.apache.spark.SparkException: Could not parse Master URL: 'nowhere'",
        ),
        ("[JAVA_GATEWAY_EXITED] Java gateway process exited", "[JAVA_GATEWAY_EXITED] Java"),
    ],
)
def test_a_spark_that_does_not_start_says_why(
    sentence: str, cause: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, "17.0.1")))

    def fail(_: object) -> None:
        raise RuntimeError(sentence)

    monkeypatch.setattr(session.SparkSession.Builder, "getOrCreate", fail)

    with pytest.raises(PipelineError) as refused:
        session.session(master="nowhere")
    assert f"Spark does not start with master 'nowhere': {cause}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_spark_connect_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before Java is looked for: Spark Connect needs none on this machine."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=r"^Spark Connect .* is not served: .* spark://host"):
        session.session(master="sc://host:15002")
    monkeypatch.setenv("SPARK_REMOTE", "sc://host:15002")
    with pytest.raises(PipelineError, match=r"^Spark Connect .* is not served"):
        session.session()
    connected = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})()
    with (
        pytest.raises(PipelineError, match=r"^Spark Connect .* is not served"),
        session.beside(connected, {}),
    ):
        raise AssertionError("it was taken")


def test_a_process_with_too_many_open_files_is_told_so() -> None:
    """The server of py4j takes no descriptor above 1,023: a streaming query waits for ever."""
    session.check_descriptor(_gateway(session.SELECT_MAX - 1))

    with pytest.raises(PipelineError, match=r"has descriptor 1024, .* a process of its own"):
        session.check_descriptor(_gateway(session.SELECT_MAX))


def _gateway(descriptor: int) -> SimpleNamespace:
    """Return what is looked at of PySpark's gateway."""
    listening = SimpleNamespace(fileno=lambda: descriptor)
    return SimpleNamespace(_callback_server=SimpleNamespace(server_socket=listening))
