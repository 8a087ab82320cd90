"""How much of a conversation the proxy looks into, and holds in memory."""

from typing import Final

FRAME_BYTES_MAX: Final = 1 << 30
"""A size beyond this is no size. Kafka's own limit is socket.request.max.bytes, 100 MB."""
LOOKED_AT_BYTES_MAX: Final = 128 << 20
"""The largest frame that a rule looks into, or whose addresses are rewritten; larger ones pass."""
HINTED_BYTES_MAX: Final = 16 << 20
"""The largest answer of Fetch that is collected for the address of another leader in it."""
SMALL_BYTES: Final = 16 << 10
"""A frame that may be decoded on the loop at once; larger ones beside it, unless records are most
of them."""
ITEMS_MAX: Final = 256
"""Items of the lists in a frame that is decoded on the loop; one with more is decoded, judged and
written beside it."""
SHOWN_BYTES_MAX: Final = 1 << 20
"""A frame larger than this is shown without its content."""
SHOWN_HEAD_BYTES: Final = 4096
"""So much of it is."""
PENDING_MAX: Final = 1_000
"""Requests of one connection without their answer; with more, those behind them wait."""
UNREAD_MAX: Final = 1_000
"""Exchanges that wait to be shown; of those behind them only the start of the request is kept."""
