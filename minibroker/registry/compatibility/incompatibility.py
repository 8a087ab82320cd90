"""A reason why data cannot be read, with Confluent's three parts."""

from __future__ import annotations

from typing import Final, NamedTuple

REASONS_MAX: Final = 100
"""Reasons of one comparison: more help nobody, and a schema of 1 MB has a million."""


class Incompatibility(NamedTuple):
    """One reason; `str` of it is an item of the `messages` of a verbose answer."""

    kind: str
    """Confluent's name, such as TYPE_MISMATCH."""
    path: str
    """Place in the reader's schema, such as `/fields/1/type`."""
    description: str
    detail: str = ""

    def __str__(self) -> str:
        """Return the reason as text in Confluent's shape."""
        detail = f", additionalInfo:'{self.detail}'" if self.detail else ""
        return (
            f"{{errorType:'{self.kind}', description:'{self.description} (path '{self.path}')'"
            f"{detail}}}"
        )
