"""A home for Spark on this machine, whose Python processes import PySpark as it is installed.

Spark starts a Python process for every query that reads or writes with Python. It puts
SPARK_HOME/python/lib/pyspark.zip before the installed packages, and Python compiles every module of
a zip file anew: that is more than half of the start of such a process. So SPARK_HOME is a directory
of links to what is installed, without `python`. `session` starts Spark with it, and with options of
Java for a quick start.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import sysconfig
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyspark
from pyspark import SparkContext

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_HOME: Final = "SPARK_HOME"
_DECIDED_ELSEWHERE: Final = (_HOME, "SPARK_CONF_DIR", "PYSPARK_GATEWAY_PORT")
"""Variables that say where Spark and its settings are."""
_OF_LAUNCHER: Final = "SPARK_LAUNCHER_OPTS"
"""Options of a second Java, which only finds the command of the first one."""
_SERIAL: Final = "-XX:+UseSerialGC"
_SERIAL_CORES: Final = 4
"""Cores up to which one thread collects garbage: more threads cost more there than they bring."""
_LATE_COMPILER: Final = (
    "-XX:Tier4InvocationThreshold=50000",
    "-XX:Tier4MinInvocationThreshold=6000",
    "-XX:Tier4CompileThreshold=150000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""Ten times Java's numbers: its second compiler takes code that is really hot.

A start of Spark runs much code some thousand times, and compiling that took a third of the CPU time
of a small job. A long job has the second compiler as before.
"""
_QUICK_LAUNCHER: Final = f"{_SERIAL} -XX:TieredStopAtLevel=1"
_JAVA_SETTING: Final = "spark.driver.defaultJavaOptions"
_CHOSEN_IN_SETTINGS: Final = (
    _JAVA_SETTING,
    "spark.driver.extraJavaOptions",
    "spark.driver.memory",
)
_CHOSEN_OUTSIDE: Final = ("SPARK_SUBMIT_OPTS", "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS")
_PYTHON_VARIABLE: Final = "PYSPARK_PYTHON"
_PYTHON_SETTINGS: Final = ("spark.pyspark.python", "spark.pyspark.driver.python")


@contextmanager
def quick_home(conf: Mapping[str, str]) -> Iterator[None]:
    """Let a Spark that starts meanwhile find such a home, until this process ends.

    Nothing changes where the workers may have another Python than this one, or where the
    environment says which Spark it is.

    Args:
        conf: all settings of the session.
    """
    if not _is_ours(conf):
        yield
        return
    directory = tempfile.mkdtemp(prefix="minibroker-spark-home-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    link_all(Path(pyspark.__file__).resolve().parent, Path(directory))
    os.environ[_HOME] = directory
    has_own = _OF_LAUNCHER in os.environ
    if not has_own:
        os.environ[_OF_LAUNCHER] = _QUICK_LAUNCHER
    try:
        yield
    finally:
        del os.environ[_HOME]
        if not has_own:
            del os.environ[_OF_LAUNCHER]


def java_options(
    conf: Mapping[str, str], environment: Mapping[str, str], cores: int
) -> dict[str, str]:
    """Return settings with options for the Java of a Spark on this machine.

    None where somebody has chosen options, or a larger heap: Java refuses two collectors.

    Args:
        conf: the settings of the session so far.
        environment: variables of this process.
        cores: of this machine.
    """
    is_chosen = any(name in conf for name in _CHOSEN_IN_SETTINGS) or any(
        environment.get(name) for name in (*_CHOSEN_OUTSIDE, *_DECIDED_ELSEWHERE)
    )
    if is_chosen:
        return {}
    collector = [_SERIAL] if cores <= _SERIAL_CORES else []
    return {_JAVA_SETTING: " ".join([*collector, *_LATE_COMPILER])}


def link_all(installed: Path, home: Path) -> None:
    """Link everything of an installed PySpark into `home`, but for its zip files for Python."""
    for entry in installed.iterdir():
        if entry.name != "python":
            (home / entry.name).symlink_to(entry)


def _is_ours(conf: Mapping[str, str]) -> bool:
    """Return whether Spark starts now, from this Python's packages and with this Python."""
    pythons = {os.environ.get(_PYTHON_VARIABLE)}
    pythons |= {conf[name] for name in _PYTHON_SETTINGS if name in conf}
    installed = Path(pyspark.__file__).resolve().parent
    return (
        SparkContext._gateway is None
        and os.name == "posix"
        and not any(name in os.environ for name in _DECIDED_ELSEWHERE)
        and pythons == {sys.executable}
        and installed.parent == Path(sysconfig.get_path("purelib")).resolve()
        and (installed / "jars").is_dir()
    )
