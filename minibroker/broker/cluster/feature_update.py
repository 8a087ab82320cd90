"""A change of a feature's level, as UpdateFeatures asks for it."""

from __future__ import annotations

from typing import NamedTuple


class FeatureUpdate(NamedTuple):
    """One change that a client asks for."""

    name: str
    level: int
    """0 takes the feature out of force."""
    kind: int
