"""The counts of a cluster's metadata, in one line for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from minibroker.tools.kraft.metadata import Metadata


def summary(metadata: Metadata) -> str:
    """Return the counts of what is not empty: `3 topics with 12 partitions, 2 ACLs`."""
    partitions = sum(len(topic.partitions) for topic in metadata.topics.values())
    parts = [
        f"{_count(len(metadata.topics), 'topic')} with {_count(partitions, 'partition')}",
        _count(len(metadata.configs), "resource with settings", "resources with settings"),
        _count(len(metadata.quotas), "entity with quotas", "entities with quotas"),
        _count(len(metadata.credentials), "SCRAM credential"),
        _count(len(metadata.acls), "ACL"),
        _count(len(metadata.tokens), "delegation token"),
    ]
    return ", ".join(part for part in parts if not part.startswith("0 "))


def _count(number: int, noun: str, plural: str = "") -> str:
    return f"{number} {noun if number == 1 else plural or noun + 's'}"
