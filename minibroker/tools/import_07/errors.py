"""The errors of an import that a person can mend."""

from __future__ import annotations

from minibroker.kafka.errors import MinibrokerError


class ImportRefusedError(MinibrokerError):
    """Logs, a topic, a table or stored positions that cannot be used; names what to do."""
