"""Settings of a job's Kafka client: `client.given_settings` with the pipeline's errors.

settings ──for_reader──► source.options ──┐
         └─for_writer──► sink.options   ──┴─connection_settings─► client
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

from minibroker.client import given_settings
from minibroker.client.given_settings import writer_settings
from minibroker.client.settings import client_settings
from minibroker.kafka.errors import ConfigError
from minibroker.pipeline.errors import JobUsageError, PipelineError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.client.settings import ClientSettings

__all__ = ["writer_settings"]

_PACKAGES: Final = ("crc32c", "cramjam")
"""Packages that the client cannot do without on a worker."""


def for_reader(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a consumer, with Java's names. Raises PipelineError."""
    try:
        return given_settings.for_reader(settings)
    except ConfigError as error:
        raise PipelineError(f"the Kafka settings: {error}") from None


def for_writer(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a producer, with Java's names. Raises PipelineError."""
    try:
        return given_settings.for_writer(settings)
    except ConfigError as error:
        raise PipelineError(f"the Kafka settings: {error}") from None


def check_installed(package: str) -> None:
    """Raise PipelineError if a package is not where this process runs."""
    if importlib.util.find_spec(package) is None:
        raise PipelineError(
            f"the package {package} is not installed where the task runs: install it there"
        )


def connection_settings(settings: Mapping[str, Any]) -> ClientSettings:
    """Return the values of `for_reader` or `for_writer` that a client works with.

    Raises:
        JobUsageError: the client does not know a setting.
        PipelineError: its packages are not here.
    """
    for package in _PACKAGES:
        check_installed(package)
    try:
        return client_settings({name: str(value) for name, value in settings.items()})
    except ConfigError as error:
        raise JobUsageError(f"the Kafka settings (--kafka, --kafka-config): {error}") from None
