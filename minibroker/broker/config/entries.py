"""The entry of one setting in DescribeConfigs: its value, and the layers that could give it.

`describe` makes the entries, `dynamic` remembers those that many ask for.
"""

from __future__ import annotations

from typing import NamedTuple


class Layer(NamedTuple):
    """One place that gives a value: the key's name there, the text (None for a secret)."""

    name: str
    value: str | None
    source: int


class ConfigEntry(NamedTuple):
    """One setting. `type` is a type's name of `definition`, "" for an unknown key."""

    name: str
    value: str | None
    type: str
    source: int
    is_sensitive: bool
    read_only: bool
    layers: list[Layer]
