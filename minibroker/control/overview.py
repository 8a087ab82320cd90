"""`/` for programs: what there is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from minibroker import __version__
from minibroker.control.bodies import answer
from minibroker.control.shapes import Overview, PathView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.control.messages import Response
    from minibroker.control.operations import ControlOperation


def overview_of(operations: Sequence[ControlOperation]) -> Response:
    """Return the list of operations."""
    paths = [PathView(method=row.method, path=row.path, summary=row.summary) for row in operations]
    return answer(Overview(version=__version__, paths=paths))
