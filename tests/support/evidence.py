"""The evidence of a deletion that a test asks for."""

from __future__ import annotations

from typing import Final

from minibroker.broker.evidence import marked_topic

MARKED: Final = marked_topic("/admin/delete_topics/t")
