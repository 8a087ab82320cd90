"""`/`: what there is, as JSON for programs, and as a plain page for a browser."""

from __future__ import annotations

from html import escape
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from minibroker import __version__
from minibroker.control.bodies import answer
from minibroker.control.messages import Response
from minibroker.control.shapes import Overview, PathView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.control.operations import ControlOperation

_PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>minibroker</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 60em; padding: 0 1em }}
td {{ padding: .2em 1.2em .2em 0; vertical-align: top }} code {{ white-space: nowrap }}
</style></head><body><h1>minibroker {version}</h1>
<p>The control API. <a href="/openapi.json">openapi.json</a> describes it for programs.</p>
<table>{rows}</table></body></html>
"""
_ROW: Final = (
    "<tr><td><code>{method}</code></td><td><code>{path}</code></td><td>{summary}</td></tr>\n"
)


def overview_of(operations: Sequence[ControlOperation], accept: str) -> Response:
    """Return the list of operations; `accept`: the request's header of this name."""
    if "text/html" not in accept:
        paths = [
            PathView(method=row.method, path=row.path, summary=row.summary) for row in operations
        ]
        return answer(Overview(version=__version__, paths=paths))
    rows = "".join(
        _ROW.format(method=row.method, path=_linked(row), summary=escape(row.summary))
        for row in operations
    )
    page = _PAGE.format(version=escape(__version__), rows=rows)
    return Response(HTTPStatus.OK, page.encode(), "text/html; charset=utf-8")


def _linked(operation: ControlOperation) -> str:
    """Return a path, as a link where a browser can follow it."""
    path = escape(operation.path)
    is_page = operation.method == "GET" and "{" not in path
    return f'<a href="{path}">{path}</a>' if is_page else path
