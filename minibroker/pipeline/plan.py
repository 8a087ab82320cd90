"""Parts of the plans of all verbs: the cluster, and paths that may be URLs.

The plans themselves are declared in `verbs`. Nothing here needs Spark or a broker.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.pipeline.kafka.client_settings import read_file, writer_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

SOURCES: Final = ("minibroker", "connector")
TABLE_FORMATS: Final = ("iceberg", "delta")
DEFAULT_BOOTSTRAP: Final = "127.0.0.1:9092"

REGISTRY_PREFIX: Final = "schema.registry."
"""Begin of the names of a schema registry's settings, among those of a Kafka client."""

JOB_DIRECTORY: Final = "_minibroker"
"""Name of the directory beside a job's results; Spark and other readers skip names with `_`."""

_REMOTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/")


class Kafka(NamedTuple):
    """The cluster that holds the topics, and how to connect to it."""

    bootstrap: str = DEFAULT_BOOTSTRAP
    source: str = SOURCES[0]
    settings: Mapping[str, str] = {}
    """Settings of the client, without the prefix `kafka.` of Spark's options."""
    registry: Mapping[str, str] = {}
    """Settings of a schema registry beside it, without their prefix."""

    def options(self) -> dict[str, str]:
        """Return Spark's Kafka options; jobs read committed records unless a setting says
        otherwise.
        """
        settings = {"isolation.level": "read_committed", **self.settings}
        return {
            "kafka.bootstrap.servers": self.bootstrap,
            **{f"kafka.{key}": value for key, value in settings.items()},
        }

    def writer_options(self) -> dict[str, str]:
        """Return the options of the sink: without the settings of consumers alone."""
        settings = writer_settings({**self.settings, "bootstrap.servers": self.bootstrap})
        return {f"kafka.{key}": value for key, value in settings.items()}


def kafka_of(
    bootstrap: str | None,
    source: str,
    config_file: str | None,
    settings: Mapping[str, str],
    *,
    elsewhere: str = DEFAULT_BOOTSTRAP,
) -> Kafka:
    """Return a cluster from what the user gave.

    Args:
        bootstrap: where it is; None: `bootstrap.servers` among the settings, or `elsewhere`.
        source: one of SOURCES.
        config_file: a properties file with settings of a client, None: none.
        settings: more of them, which win; `kafka.` may stand before the names.
        elsewhere: its address if nothing says one.

    Raises:
        PipelineError: the file cannot be read.
    """
    given = {} if config_file is None else read_file(config_file)
    given |= {name.removeprefix("kafka."): value for name, value in settings.items()}
    address = given.pop("bootstrap.servers", elsewhere)
    of_registry = [name for name in given if name.startswith(REGISTRY_PREFIX)]
    registry = {name.removeprefix(REGISTRY_PREFIX): given.pop(name) for name in of_registry}
    return Kafka(bootstrap or address, source, given, registry)


def without_password(url: str) -> str:
    """Return a URL without the login in it."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def is_remote(path: str) -> bool:
    """Return whether `path` is a URL (`s3a://…`, `hdfs:/…`) and not a local path."""
    return bool(_REMOTE.match(path)) and not path.startswith("file:/")


def is_on_this_machine(master: str) -> bool:
    """Return whether every worker of `master` runs here, so that a loopback address works."""
    return master.startswith("local")


def has_scheme(path: str) -> bool:
    """Return whether `path` is a URL, `file:/…` too."""
    return bool(_REMOTE.match(path))


def absolute(path: str) -> str:
    """Return a local path as an absolute one: Spark's JVM may run in another directory."""
    return path if _REMOTE.match(path) else str(Path(path).absolute())


def join(directory: str, *names: str) -> str:
    """Return a path below `directory`, which may be a URL."""
    if _REMOTE.match(directory):
        return "/".join((directory.rstrip("/"), *names))
    return str(PurePath(directory, *names))
