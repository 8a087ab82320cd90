"""Tests that only the pure package can pass: those that are marked `pure`.

Such a test replaces a function or a method of a compiled module. Calls between compiled modules do
not look it up, so the test would meet the real one. A limit that a test lowers is no `Final` there,
and both packages read it from its module: that needs no mark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from minibroker.compilation import package_kind

if TYPE_CHECKING:
    from collections.abc import Sequence

REASON: Final = "runs on the pure package only: "
"""Start of the reason of such a skip."""


def skip_pure(items: Sequence[pytest.Item]) -> None:
    """Skip the tests that are marked `pure`, where the package is compiled."""
    marked = [(item, item.get_closest_marker("pure")) for item in items]
    if not any(mark for _, mark in marked) or package_kind() == "pure":
        return
    for item, mark in marked:
        if mark is not None:
            (reason,) = mark.args
            item.add_marker(pytest.mark.skip(reason=f"{REASON}{reason}"))
