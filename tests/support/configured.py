"""minibroker with the `server.properties` of an Apache Kafka: what that would be, it is."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tests.support.broker import Minibroker
from tests.support.peers import SETTINGS_FILE

if TYPE_CHECKING:
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
