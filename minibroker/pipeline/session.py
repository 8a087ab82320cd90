"""The address of `session` for users: a SparkSession that reads and writes topics."""

from __future__ import annotations

from minibroker.pipeline.spark.session import session

__all__ = ["session"]
