"""The error of the way between the tree and KRaft."""

from __future__ import annotations

from minibroker.kafka.errors import MinibrokerError


class TransferError(MinibrokerError):
    """Metadata of one side that the other side cannot hold; the message names them, and the way
    out.
    """
