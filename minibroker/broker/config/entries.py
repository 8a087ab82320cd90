"""Settings as DescribeConfigs answers them. `describe` makes them; no start needs them."""

from __future__ import annotations

from typing import NamedTuple


class Layer(NamedTuple):
    """One place that gives a value: the key's name there, the text (None for a secret)."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One setting in an answer of DescribeConfigs; `describe` makes it.

    `type` is a type's name of `keys`, "" for an unknown key.
    """

    name: str
    value: str | None
    type: str
    source: int
    is_sensitive: bool
    read_only: bool
    layers: list[Layer]
