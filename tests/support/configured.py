"""minibroker with the `server.properties` of an Apache Kafka: what that would be, it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.broker import Minibroker
from tests.support.peers import SETTINGS_FILE
from tests.support.wire import WireClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.support.peers import KafkaPeer


class ConfiguredMinibroker(Minibroker):
    """A process on the address, the id and the directory of a Kafka that does not run."""

    def __init__(self, kafka: KafkaPeer, log_path: Path) -> None:
        super().__init__(kafka.log_dir, log_path, listen=kafka.address)
        self._kafka = kafka

    def command(self) -> list[str]:
        """Return the command line of the next start."""
        self._kafka.prepare()
        config = str(self._kafka.directory / SETTINGS_FILE)
        return [sys.executable, "-m", "minibroker", "serve", "--config", config]


# Alterations of a broker's configuration, by IncrementalAlterConfigs, on any broker.


def alter(
    port: int, values: Mapping[str, str | None], broker: str = "0", *, validate_only: bool = False
) -> tuple[int, str | None]:
    """Return code and message of an alteration; None takes a value away."""
    with WireClient("127.0.0.1", port) as client:
        return alter_by(client, values, broker, validate_only=validate_only)


def alter_by(
    client: WireClient,
    values: Mapping[str, str | None],
    broker: str = "0",
    *,
    validate_only: bool = False,
) -> tuple[int, str | None]:
    """Alter by a connection that is open, as `alter` does."""
    configs = [
        {"name": name, "config_operation": 0 if value is not None else 1, "value": value}
        for name, value in values.items()
    ]
    resource = {"resource_type": 4, "resource_name": broker, "configs": configs}
    answer = client.call(
        "incremental_alter_configs", 1, resources=[resource], validate_only=validate_only
    )
    (result,) = answer["responses"]
    return result["error_code"], result["error_message"]
