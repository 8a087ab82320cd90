"""Starts a standalone cluster of Spark: a master and two workers, each a process on 127.0.0.1.

Each worker has a working directory, a directory of work and a Python of its own. These Pythons
have what docs/pipeline.md asks of a worker, and neither minibroker nor anything else.
"""

from __future__ import annotations

import json
import os
import tarfile
import urllib.request
import venv
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyspark

from tests.pipeline.spark_classes import spark_options
from tests.support.processes import ManagedProcess, free_port

if TYPE_CHECKING:
    from collections.abc import Callable

WORKERS: Final = 2
START_SECONDS: Final = 240.0
HOST: Final = "127.0.0.1"
SITE: Final = Path(pa.__file__).parents[1]
SPARK: Final = Path(pyspark.__file__).parent
NEEDED: Final = ("pyarrow", "crc32c", "cramjam", "xxhash")
"""A worker needs these, besides the pyspark that Spark's own directory has."""
_DEPLOY: Final = "org.apache.spark.deploy"


class StandaloneCluster:
    """A master and its workers; `start` returns when the master knows all workers."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = free_port()
        self.ui_port = free_port()
        self.processes: list[ManagedProcess] = []

    @property
    def master(self) -> str:
        """Return the master URL."""
        return f"spark://{HOST}:{self.port}"

    def home(self, worker: int) -> Path:
        """Return the directory of a worker, with its `python` and `work`."""
        return self.directory / f"worker-{worker}"

    def start(self) -> None:
        """Start all processes. Raises StartError."""
        ui = str(self.ui_port)
        self._start("master", "master.Master", ["--port", str(self.port), "--webui-port", ui], {})
        for worker in range(WORKERS):
            home = self.home(worker)
            make_python(home / "python", lambda inside, package: inside.symlink_to(package))
            words = ["--port", str(free_port()), "--webui-port", str(free_port())]
            words += ["--cores", "1", "--memory", "600m", "--work-dir", str(home / "work")]
            # An executor starts `python3`, and finds it as its worker would.
            path = f"{home / 'python' / 'bin'}{os.pathsep}{os.environ['PATH']}"
            own = {"PATH": path, "SPARK_LOCAL_DIRS": str(home / "local")}
            self._start(f"worker-{worker}", "worker.Worker", [*words, self.master], own)
        self.processes[0].wait_until(self._has_all, START_SECONDS, "Spark's master and workers")

    def stop(self) -> None:
        """Stop the workers, then the master."""
        for process in reversed(self.processes):
            process.stop()

    def _start(self, name: str, program: str, words: list[str], own: dict[str, str]) -> None:
        home = self.directory / name
        home.mkdir(exist_ok=True)
        command = [str(SPARK / "bin" / "spark-class"), f"{_DEPLOY}.{program}", "--host", HOST]
        environment = {
            "SPARK_HOME": str(SPARK),
            "SPARK_LOCAL_IP": HOST,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": spark_options(),
            **own,
        }
        log = self.directory / f"{name}.log"
        self.processes.append(
            ManagedProcess([*command, *words], log, environment=environment, directory=home)
        )

    def _has_all(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.ui_port}/json/", timeout=5) as answer:
                return bool(json.load(answer)["aliveworkers"] == WORKERS)
        except (OSError, json.JSONDecodeError):  # until its pages are all there, it answers nothing
            return False


def make_python(directory: Path, put: Callable[[Path, Path], None]) -> None:
    """Make a virtual environment, and call `put(inside, package)` for each package it needs."""
    venv.create(directory, symlinks=True)
    inside = next((directory / "lib").glob("python*")) / "site-packages"
    for name in NEEDED:
        put(inside / name, SITE / name)


def packed_python(directory: Path) -> Path:
    """Return a virtual environment as a file for `spark.archives`."""
    environment = directory / "environment"
    make_python(environment, lambda inside, package: inside.symlink_to(package))
    packed = directory / "environment.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
        for path in sorted(environment.rglob("*")):
            inside = path.relative_to(environment).as_posix()
            is_package = path.parent.name == "site-packages"
            archive.add(path.resolve() if is_package else path, inside, recursive=is_package)
    return packed
