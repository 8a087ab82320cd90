"""Paths and the encoding of entity names (expected text printed by Kafka 3.9.1's Sanitizer)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minibroker.broker.cluster import paths
from minibroker.broker.cluster.tree import check_path


def test_paths_are_kafkas() -> None:
    assert paths.broker(3) == "/brokers/ids/3"
    assert paths.partition_state("t", 2) == "/brokers/topics/t/partitions/2/state"
    assert paths.partition("t", 2) == "/brokers/topics/t/partitions/2"
    assert paths.config("users", "a/clients/b") == "/config/users/a/clients/b"
    assert paths.delete_topic("t") == "/admin/delete_topics/t"


def test_sanitize_equals_kafkas() -> None:
    assert paths.sanitize("al ice/ü*~<default>+%") == "al%20ice%2F%C3%BC%2A%7E%3Cdefault%3E%2B%25"
    assert paths.sanitize("a_b-c.d") == "a_b-c.d"


@given(st.text())
def test_desanitize_reverses_sanitize(name: str) -> None:
    encoded = paths.sanitize(name)
    assert paths.desanitize(encoded) == name
    if name not in {"", ".", ".."}:
        check_path(f"/config/users/{encoded}")


def test_desanitize_refuses_broken_encoding() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        paths.desanitize("a%zz")
