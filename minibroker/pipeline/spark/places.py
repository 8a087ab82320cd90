"""Places of the paths of a job: this machine, Spark's default file system, or their URL.

Spark resolves a path without a scheme on `fs.defaultFS`. So do the jobs, before anything looks at a
path: with another default than this machine, `/lake/orders` becomes `hdfs://name:8020/lake/orders`.
The default is in the settings of the session; before there is one it is read where Spark will
read it: `--conf spark.hadoop.fs.defaultFS`, `spark-defaults.conf`, `core-site.xml`.

    plan ──placed──► the same plan, each path absolute or a URL

A path of this machine is of no use to the workers of a cluster, unless it is shared (NFS). Spark
would leave a part of the files on each of them; `check_shared` asks them first.
"""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from xml.etree import ElementTree

from minibroker.cli.declaration import Option, fields_of
from minibroker.kafka.errors import ConfigError
from minibroker.kafka.java_formats.properties import read_properties
from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.files.file_system import LocalFiles, local
from minibroker.pipeline.files.paths import JOB_DIRECTORY, absolute, has_scheme, is_remote, join
from minibroker.pipeline.options.kinds import Directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import SparkSession


Plan = TypeVar("Plan")
"""A NamedTuple of a verb's options."""

SETTING: Final = "fs.defaultFS"
LOCAL: Final = "file:///"
ASKS_AT_LEAST: Final = 8
"""Tasks that look for a file: two for each core of the cluster, so that every machine has one."""
_SITE_BYTES_MAX: Final = 16 << 20


def default_of(conf: Mapping[str, str], environment: Mapping[str, str]) -> str:
    """Return the default file system that a session with these settings will have.

    Raises PipelineError: a file of settings cannot be read.
    """
    name = f"spark.hadoop.{SETTING}"
    if name in conf:
        return conf[name]
    home = environment.get("SPARK_HOME")
    spark = environment.get("SPARK_CONF_DIR") or (f"{home}/conf" if home else None)
    if spark is not None and Path(spark, "spark-defaults.conf").exists():
        try:
            defaults = read_properties(str(Path(spark, "spark-defaults.conf")))
        except ConfigError as error:
            raise PipelineError(str(error)) from None
        if name in defaults:
            return defaults[name].strip()
    for variable in ("HADOOP_CONF_DIR", "YARN_CONF_DIR"):
        directory = environment.get(variable)
        if directory and (of_site := _of_site(Path(directory, "core-site.xml"))):
            return of_site
    return LOCAL


def default_of_session(spark: SparkSession) -> str:
    """Return the default file system of a session."""
    jsc: Any = spark._jsc
    return str(jsc.hadoopConfiguration().get(SETTING, LOCAL))


def resolve_places(plan: Plan, default: str) -> Plan:
    """Return the plan with directories that need no default any more.

    Raises PipelineError: a relative path, and the default is not this machine.
    """
    paths: dict[str, Any] = {}
    for field in fields_of(type(plan)):
        value = getattr(plan, field.name)
        if not isinstance(field.declared, Option) or value is None:
            continue
        kind = field.declared.kind
        if isinstance(kind, Directory) and kind.is_placed(value):
            paths[field.name] = _resolve(value, default)
    whole: Any = plan
    replaced: Plan = whole._replace(**paths)
    return replaced


def is_here(default: str) -> bool:
    """Return whether a default file system is this machine."""
    return default.startswith("file:")


def check_shared(spark: SparkSession, paths: Iterable[str]) -> None:
    """Check that the workers see what this machine writes.

    Raises:
        PipelineError: a path of this machine that a worker does not see.
    """
    for path in paths:
        if not is_remote(path):
            _check_shared(spark, path)


def _check_shared(spark: SparkSession, path: str) -> None:
    mark = join(path, JOB_DIRECTORY, f"seen-{uuid.uuid4()}")
    files = LocalFiles()
    files.write(mark, "")
    try:
        context = spark.sparkContext
        tasks = max(ASKS_AT_LEAST, 2 * context.defaultParallelism)
        looked_for = str(local(mark))

        def look(_: Iterable[int]) -> Iterable[str]:
            import os  # noqa: PLC0415  in a worker, which need not have this package
            import socket  # noqa: PLC0415

            return () if os.path.exists(looked_for) else (socket.gethostname(),)  # noqa: PTH110

        blind = sorted(set(context.parallelize(range(tasks), tasks).mapPartitions(look).collect()))
    finally:
        files.remove(mark)
    if blind:
        raise PipelineError(
            f"{path} is a directory of this machine, which the worker on {blind[0]} does not see: "
            "files would be scattered; give a directory that all machines share (NFS), or a URL "
            "such as hdfs://…/dir or s3a://bucket/dir"
        )


def _resolve(path: str, default: str) -> str:
    if has_scheme(path) or is_here(default):
        return absolute(path)
    if not path.startswith("/"):
        raise PipelineError(
            f"{path} is a relative path, and Spark's default file system is {default}: give a path "
            "that begins with / there, a URL, or file:/… for this machine"
        )
    return f"{default.rstrip('/')}{path}"


def _of_site(file: Path) -> str | None:
    """Return the default file system in a file of Hadoop's settings. Raises PipelineError."""
    if not file.exists():
        return None
    try:
        if file.stat().st_size > _SITE_BYTES_MAX:
            raise PipelineError(f"{file} is too large for a file of settings")
        root = ElementTree.fromstring(file.read_bytes())
    except (OSError, ElementTree.ParseError) as error:
        raise PipelineError(f"{file} cannot be read: {error}") from error
    for entry in root.iter("property"):
        if (entry.findtext("name") or "").strip() in (SETTING, "fs.default.name"):
            return (entry.findtext("value") or "").strip() or None
    return None
