"""A cluster of a plan: where it is and how to connect to it. Nothing here asks it anything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.cli.connection import DEFAULT_BOOTSTRAP, merged_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

REGISTRY_PREFIX: Final = "schema.registry."
"""Begin of the names of a schema registry's settings, among those of a Kafka client."""


class Kafka(NamedTuple):
    """The cluster that holds the topics, and how to connect to it."""

    bootstrap: str = DEFAULT_BOOTSTRAP
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
        from minibroker.pipeline.kafka.client_settings import (  # noqa: PLC0415  not for a help page
            writer_settings,
        )

        settings = writer_settings({**self.settings, "bootstrap.servers": self.bootstrap})
        return {f"kafka.{key}": value for key, value in settings.items()}


def kafka_of(
    bootstrap: str | None,
    config_file: str | None,
    settings: Mapping[str, str],
    *,
    elsewhere: str = DEFAULT_BOOTSTRAP,
) -> Kafka:
    """Return a cluster from what the user gave.

    Args:
        bootstrap: its address; None: the one among the settings, or `elsewhere`.
        config_file: a properties file with settings of a client, None: none.
        settings: more of them, which win; `kafka.` may stand before the names.
        elsewhere: its address if nothing says one.

    Raises:
        UsageError: the file cannot be read.
    """
    address, merged = merged_settings(bootstrap, config_file, settings)
    of_registry = [name for name in merged if name.startswith(REGISTRY_PREFIX)]
    registry = {name.removeprefix(REGISTRY_PREFIX): merged.pop(name) for name in of_registry}
    return Kafka(address or elsewhere, merged, registry)


def without_password(url: str) -> str:
    """Return a URL without the login in it."""
    scheme, mark, rest = url.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
