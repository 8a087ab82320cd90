"""A node of Apache Kafka with KRaft on directories that somebody else made.

Nothing is formatted: the directories have `meta.properties` and `__cluster_metadata-0`. Start, stop
and kill may follow one another on the same directories and ports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support import java
from tests.support.peers import ONE_NODE, SETTINGS_FILE, KafkaPeer, write_properties

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

JARS: Final = {"3.9": java.KAFKA_39, "4.0": java.KAFKA_40, "4.4": java.KAFKA_44}
"""Release → its jars."""


class KraftKafka(KafkaPeer):
    """One combined node, broker and only controller, of a static quorum."""

    def __init__(
        self,
        release: str,
        directory: Path,
        log_dirs: Sequence[Path],
        *,
        node_id: int = 0,
        settings: Mapping[str, str] | None = None,
        port: int | None = None,
        common: Mapping[str, str] = ONE_NODE,
    ) -> None:
        """Start nothing yet.

        Args:
            release: one of `JARS`.
            directory: for the settings and the log file of the process.
            log_dirs: `log.dirs`; the metadata is in the first.
            node_id: that of the directories' `meta.properties`.
            settings: they win over those made here.
            port: of the listener PLAINTEXT, None for a free one.
            common: settings that every node of the tests has.
        """
        super().__init__(release, directory, settings=settings, port=port, common=common)
        self.jars = JARS[release]
        self.log_dirs = log_dirs
        self.node_id = node_id

    def prepare(self) -> None:
        """Write the settings only."""
        self.directory.mkdir(parents=True, exist_ok=True)
        write_properties(self.directory / SETTINGS_FILE, self._properties())

    def _properties(self) -> dict[str, str]:
        return {
            **super()._properties(),
            "log.dirs": ",".join(map(str, self.log_dirs)),
            "node.id": str(self.node_id),
            "controller.quorum.voters": f"{self.node_id}@127.0.0.1:{self.controller_port}",
            **self.settings,
        }
