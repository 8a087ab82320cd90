"""A home for Spark on this machine, whose Python processes import PySpark as it is installed.

Spark starts a Python process for every query that reads or writes with Python. It puts
SPARK_HOME/python/lib/pyspark.zip before the installed packages, and Python compiles every module of
a zip file anew: that is more than half of the start of such a process. So SPARK_HOME is a directory
of links to what is installed, without `python`. `session` starts Spark with it.
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
    try:
        yield
    finally:
        del os.environ[_HOME]


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
