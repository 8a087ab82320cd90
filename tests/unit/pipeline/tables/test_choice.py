"""The choice of a table's library, and what is refused before Spark starts."""

from __future__ import annotations

import importlib.util

import pytest

from minibroker.pipeline.errors import PipelineError
from minibroker.pipeline.tables import choice as tables


def test_a_library_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PipelineError, match=r"deltalake is not installed.*minibroker\[tables\]"):
        tables.check("delta", "d")


def test_a_url_is_one_of_a_store() -> None:
    for directory in ("d", "s3://bucket/d", "s3a://bucket/d"):
        tables.check("iceberg", directory)
    with pytest.raises(PipelineError, match="iceberg tables cannot be at hdfs://name/d: give"):
        tables.check("iceberg", "hdfs://name/d")
