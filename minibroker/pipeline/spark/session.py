"""The one place that makes a SparkSession, with what every job needs of it.

Time is UTC on every machine, since the date of a record decides its directory. On this machine
workers run this same Python; elsewhere that of `spark.pyspark.python`, PYSPARK_PYTHON or Spark's
default. A job in a session of the caller runs in one of its own beside it, set up alike. Workers of
a cluster get this package as a zip file, so they need only PySpark, PyArrow, confluent-kafka,
crc32c and cramjam, and what docs/pipeline.md names for some jobs. Spark plans reads on this machine
with the Python of the same name.
Spark's log is at ERROR: an error that a person can mend is a `PipelineError`.
"""

from __future__ import annotations

import atexit
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark import SparkContext
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

import minibroker
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import local
from minibroker.pipeline.files.paths import is_on_this_machine, is_remote
from minibroker.pipeline.kafka.data_source import TopicSource
from minibroker.pipeline.kafka.segments.batches import BatchSource
from minibroker.pipeline.kafka.segments.records import SegmentSource
from minibroker.pipeline.spark.spark_home import java_options, quick_home

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

OLDEST_JAVA: Final = 17
JAVA_TIMEOUT_S: Final = 60
SELECT_MAX: Final = 1024
"""Descriptors that `select()` can look at: FD_SETSIZE."""

_OF_FILES: Final = {
    # Spark's default is INT96, which has no zone and which other readers have given up.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
"""Settings of the files that Spark's own writers write."""
_DEFAULTS: Final = {
    **_OF_FILES,
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.sql.streaming.stopTimeout": "60s",
    # Filters on partition and offset reach the source (`source.pushed_filters`).
    "spark.sql.python.filterPushdown.enabled": "true",
    # A repeated micro-batch has the tasks of its first attempt, see `checkpoints.checkpoint_files`.
    "spark.sql.adaptive.streaming.stateless.enabled": "false",
}
_ON_THIS_MACHINE: Final = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # The start of a Python task is two small writes: through TCP the second one waits 40 ms.
    "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
}
_ADDRESS: Final = "SPARK_LOCAL_IP"
_LOOPBACK: Final = "127.0.0.1"
_PYTHON: Final = "spark.pyspark.python"
_NO_CONNECT: Final = (
    "Spark Connect (sc://…, SPARK_REMOTE) is not served: its server has no data sources of this "
    "Python; give a session of SparkSession.builder.master(…), or a master such as spark://host:7077"
)
_PACKAGE_FILE: Final = "minibroker.zip"
_NOT_SHIPPED: Final = frozenset({"__pycache__", "codegen"})


def session(
    *,
    master: str = "local[*]",
    app_name: str = "minibroker",
    jars: Iterable[str] = (),
    packages: Iterable[str] = (),
    conf: Mapping[str, str] | None = None,
    ui: bool = False,
) -> SparkSession:
    """Return a session with the data sources of this package, or the running session if there is
    one.

    Args:
        master: Spark's master URL.
        app_name: what Spark's pages call it.
        jars: paths of jars for driver and workers, as `spark.jars`.
        packages: Maven coordinates, as `spark.jars.packages`.
        conf: Spark's own settings; they win over ours.
        ui: Spark serves its pages, on this machine only.

    Raises:
        PipelineError: no Java that Spark runs on, no such jar, or Spark does not start.
    """
    jars = tuple(jars)
    refuse_connect(master)
    check_java()
    check_jars(jars)
    if ui:
        check_ui(master)
    settings = _settings_of(master, jars, packages, ui=ui) | dict(conf or {})
    if is_on_this_machine(master):
        settings |= java_options(settings, os.environ, os.cpu_count() or 1)
    builder = SparkSession.builder.master(master).appName(app_name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        with (
            _local_address() if ui else nullcontext(),
            quick_home(settings) if is_on_this_machine(master) else nullcontext(),
        ):
            spark = builder.getOrCreate()
    except Exception as error:
        raise PipelineError(
            f"Spark does not start with master {master!r}: {_cause(str(error))}; "
            "check the master, the jars and the settings"
        ) from error
    if (python := spark.sparkContext.getConf().get(_PYTHON)) is not None:
        spark.sparkContext.pythonExec = python  # PySpark looks at PYSPARK_PYTHON alone
    prepare(spark)
    return spark


def _settings_of(
    master: str, jars: Iterable[str], packages: Iterable[str], *, ui: bool
) -> dict[str, str]:
    """Return our settings of a session; tasks on this machine get this Python, where none is set.

    Arguments as of `session`.
    """
    settings = dict(_DEFAULTS)
    settings["spark.pyspark.driver.python"] = os.environ.get(
        "PYSPARK_DRIVER_PYTHON", sys.executable
    )
    if is_on_this_machine(master):
        settings |= _ON_THIS_MACHINE
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if ui:
        settings["spark.ui.enabled"] = "true"
    if text := ",".join(jars):
        settings["spark.jars"] = text
    if text := ",".join(packages):
        settings["spark.jars.packages"] = text
    return settings


def check_ui(master: str) -> None:
    """Raise PipelineError if Spark's pages would be served to other machines.

    Spark binds them to SPARK_LOCAL_IP, which its JVM reads once, when it starts.
    """
    if not is_on_this_machine(master):
        raise PipelineError(
            f"--ui is for a Spark on this machine; with master {master} give --conf "
            "spark.ui.enabled=true, which serves its pages to every machine"
        )
    gateway: Any = SparkContext._gateway
    if gateway is not None and gateway.jvm.System.getenv(_ADDRESS) != _LOOPBACK:
        raise PipelineError(
            "the JVM of this process was started for a Spark without pages, and would serve them "
            "to every machine: run the job with --ui in a new process"
        )


@contextmanager
def _local_address() -> Iterator[None]:
    """Let a JVM that starts meanwhile bind Spark's pages to this machine."""
    address = os.environ.get(_ADDRESS)
    os.environ[_ADDRESS] = _LOOPBACK
    try:
        yield
    finally:
        if address is None:
            del os.environ[_ADDRESS]
        else:
            os.environ[_ADDRESS] = address


def running() -> SparkSession | None:
    """Return the session of the Spark that runs in this process, None if none does."""
    if SparkContext._active_spark_context is None:
        return None
    return SparkSession.builder.getOrCreate()


@contextmanager
def beside(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[SparkSession]:
    """Yield a session for a job in the caller's Spark: with its settings, and ours where they
    decide the result. The caller's session does not change.

    Meanwhile it is the active session of this thread: Spark looks for data sources there.

    Args:
        spark: the caller's.
        conf: settings for the job; those of Spark as a whole have no effect any more.

    Raises PipelineError: the caller's session is one of Spark Connect.
    """
    if type(spark).__module__.startswith("pyspark.sql.connect"):
        raise PipelineError(_NO_CONNECT)
    own = spark.newSession()
    settings = {**_OF_FILES, **spark.conf.getAll, "spark.sql.session.timeZone": "UTC", **conf}
    for name, value in settings.items():
        if own.conf.isModifiable(name) and own.conf.get(name, None) != value:
            own.conf.set(name, value)
    sessions: Any = spark._jvm.SparkSession  # type: ignore[union-attr]
    active = sessions.getActiveSession()
    sessions.setActiveSession(own._jsparkSession)
    try:
        prepare(own)
        yield own
    finally:
        if active.isDefined():
            sessions.setActiveSession(active.get())
        else:
            sessions.clearActiveSession()


def prepare(spark: SparkSession) -> None:
    """Give a session what jobs need: our data sources, and this package on the workers."""
    master = master_of(spark)
    if not master.startswith("local[") and master != "local":
        _ship_package(spark)
    _serve_callbacks(spark)
    register(spark)


def _serve_callbacks(spark: SparkSession) -> None:
    """Start the server for Java's calls into this process: each streaming query that writes with
    Python makes some.

    PySpark would start it with the first such query, when more files may be open. Raises
    PipelineError: as `check_descriptor`.
    """
    gateway: Any = spark.sparkContext._gateway
    ensure_callback_server_started(gateway)
    check_descriptor(gateway)


def check_descriptor(gateway: Any) -> None:
    """Raise PipelineError if PySpark's server for Java's calls has too large a descriptor.

    It accepts with `select()`, and ends with a larger one. The query then waits without an end.
    """
    descriptor = gateway._callback_server.server_socket.fileno()
    if descriptor >= SELECT_MAX:
        raise PipelineError(
            f"Spark cannot call this process: PySpark's server has descriptor {descriptor}, and "
            f"takes only those below {SELECT_MAX}; make the session before so many files are open, "
            "or run the job in a process of its own"
        )


def master_of(spark: SparkSession) -> str:
    """Return the master URL of the Spark of a session."""
    return str(spark.sparkContext.master)


def refuse_connect(master: str) -> None:
    """Raise PipelineError if `master`, or the environment, says Spark Connect."""
    if master.startswith("sc://") or os.environ.get("SPARK_REMOTE"):
        raise PipelineError(_NO_CONNECT)


def _cause(log: str) -> str:
    """Return one line of an error; for an error of the JVM the second line, which has its
    exception.
    """
    lines = log.strip().split("\n")
    return next((line[2:] for line in lines if line.startswith(": ")), lines[0]).rstrip(".")


def register(spark: SparkSession) -> None:
    """Register the data sources of this package with `spark`."""
    for source in (TopicSource, SegmentSource, BatchSource):
        spark.dataSource.register(source)


def check_java() -> None:
    """Raise PipelineError if there is no Java that Spark can use."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None or not Path(java).exists():
        fault = f"JAVA_HOME is {home}, which has no bin/java" if home else "no java in PATH"
        raise PipelineError(
            f"no Java: Spark needs Java {OLDEST_JAVA} or newer and there is {fault}; "
            "install it (Debian: apt install openjdk-17-jre-headless)"
        )
    answer = subprocess.run(
        [java, "-version"], capture_output=True, text=True, check=False, timeout=JAVA_TIMEOUT_S
    )
    match = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    if match is None or int(match[1]) < OLDEST_JAVA:
        version = match[1] if match else "unknown"
        raise PipelineError(
            f"no Java that Spark runs on: {java} is version {version} and Spark needs "
            f"{OLDEST_JAVA} or newer; install it or point JAVA_HOME to it"
        )


def check_jars(jars: Iterable[str]) -> None:
    """Raise PipelineError if a local jar is missing: Spark would only log that."""
    for jar in jars:
        path = local(jar)
        if not is_remote(jar) and not any(path.parent.glob(path.name)):
            raise PipelineError(f"there is no jar {jar}: check its path")


def _ship_package(spark: SparkSession) -> None:
    """Send this package to the workers; they fetch the file from here as long as Spark runs."""
    context = spark.sparkContext
    if any(name.endswith(f"/{_PACKAGE_FILE}") for name in context.listFiles):
        return
    directory = Path(tempfile.mkdtemp(prefix="minibroker-package-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    context.addPyFile(str(zip_package(directory / _PACKAGE_FILE)))


def zip_package(path: Path) -> Path:
    """Write this package as a zip file that Python can import from, and return its path."""
    root = Path(minibroker.__file__).parent
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for source in sorted(root.rglob("*.py")):
            inside = source.relative_to(root.parent)
            if not _NOT_SHIPPED.intersection(inside.parts):
                archive.write(source, inside.as_posix())
    return path
