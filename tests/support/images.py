"""Partitions of the metadata image, as tests need them."""

from __future__ import annotations

from typing import Any

from minibroker.broker.cluster.image import PartitionImage


def partition_image(**fields: Any) -> PartitionImage:
    """Return a partition that broker 0 alone has and leads; `fields` are those that differ."""
    usual: dict[str, Any] = {
        "leader": 0,
        "leader_epoch": 0,
        "replicas": [0],
        "isr": [0],
        "adding": [],
        "removing": [],
        "offline": [],
        "controller_epoch": 1,
        "partition_epoch": 0,
    }
    return PartitionImage(**usual | fields)
