"""From the plan of `serve` to the configuration: file, environment and flags, merged."""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING

from minibroker.broker.config.broker import BrokerConfig
from minibroker.broker.config.options import ServeOptions
from minibroker.broker.config.sources import gather
from minibroker.broker.log_lines import LogLines
from minibroker.kafka.errors import ConfigError
from minibroker.verbs.serve.plan import (
    CONSOLE_READ_ONLY,
    CONTROL_TLS,
    REGISTRY_TLS,
    REGISTRY_USER,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from minibroker.broker.config.control import ControlOptions
    from minibroker.broker.config.registry import RegistryOptions
    from minibroker.verbs.serve.plan import ServePlan

logger = logging.getLogger(__name__)


def build(plan: ServePlan, environment: Mapping[str, str]) -> tuple[BrokerConfig, ServeOptions]:
    """Merge file, environment and flags, and check the result. Raises ConfigError."""
    file_settings: Mapping[str, str] = {}
    if plan.config_file:
        from minibroker.kafka.java_formats.properties import read_properties  # noqa: PLC0415  for --config

        file_settings = read_properties(plan.config_file)
    settings = list(plan.settings)
    if plan.security is not None and plan.security.upper().endswith("SSL"):
        settings = [*_certificates(plan), *settings]
    config = BrokerConfig(gather(file_settings, environment, settings))
    if config.unknown_keys:
        logger.warning("unknown configuration keys are ignored: %s", ", ".join(config.unknown_keys))
    if config.without_effect:
        logger.warning("these settings have no effect: %s", ", ".join(config.without_effect))
    options = ServeOptions(
        topics=plan.topics,
        seeds=plan.seeds,
        ready_file=plan.ready_file,
        in_memory=plan.in_memory,
        loop=plan.loop,
        log_level=plan.log_level,
        control=_control(plan, environment),
        registry=_registry(plan, config),
        brokers=plan.brokers,
    )
    return config, options


def _certificates(plan: ServePlan) -> list[tuple[str, str]]:
    """Return the settings of a certificate that is made for this broker. The directory beside the
    data keeps the CA; with `--memory` it goes at exit. Raises ConfigError.
    """
    from pathlib import Path  # noqa: PLC0415  for --security SSL only

    from minibroker.testing.security import Security  # noqa: PLC0415  as above

    settings = dict(plan.settings)
    if plan.in_memory:
        import atexit  # noqa: PLC0415  as above
        import shutil  # noqa: PLC0415
        import tempfile  # noqa: PLC0415

        directory = Path(tempfile.mkdtemp(prefix="minibroker-tls-"))
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    else:
        directory = Path(settings.get("log.dirs", "minibroker-data").split(",")[0] + "-tls")
    assert plan.security is not None
    security = Security(plan.security, directory, plan.users)
    ca_file = security.ca_file.absolute()
    logger.info("clients have to trust the CA in %s", ca_file)
    listeners = settings.get("listeners", "")
    host = plan.host or listeners.partition("://")[2].rpartition(":")[0].strip("[]")
    return list(security.tls_settings(host).items())


def _control(plan: ServePlan, environment: Mapping[str, str]) -> ControlOptions | None:
    """Return the options of the control API, None without `--control`. Raises ConfigError."""
    if plan.control is None:
        flags = [
            *plan.control_tokens,
            *([CONTROL_TLS] if plan.control_tls else []),
            *([CONSOLE_READ_ONLY] if plan.console_read_only else []),
        ]
        if flags:
            raise ConfigError(f"{flags[0]} needs --control HOST:PORT")
        return None
    from minibroker.broker.config.control import control_options  # noqa: PLC0415  for --control only

    options = control_options(plan.control, plan.control_tokens, plan.control_tls, environment)
    return options._replace(page_only_reads=plan.console_read_only)


def _registry(plan: ServePlan, config: BrokerConfig) -> RegistryOptions | None:
    """Return the options of the schema registry, None without `--registry`. Raises ConfigError."""
    if plan.registry is None:
        if plan.registry_users or plan.registry_tls is not None:
            flag = REGISTRY_USER if plan.registry_users else REGISTRY_TLS
            raise ConfigError(f"{flag} needs --registry HOST:PORT")
        return None
    from minibroker.broker.config.registry import registry_options  # noqa: PLC0415  for --registry only

    return registry_options(
        plan.registry, plan.registry_users, plan.registry_tls, is_secured=config.is_secured
    )


def configure_logging(level: str) -> None:
    """Write each event as a line on stderr: time, level, logger, message."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines())
    logging.basicConfig(handlers=[handler], level=level.upper())
