"""Paths of the page, and of what there is. A proxy serves them, too: they need no broker."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker import __version__
from minibroker.control import shapes
from minibroker.control.bodies import answer
from minibroker.control.messages import Response
from minibroker.control.operations import ControlOperation
from minibroker.control.page_files import INDEX, is_page, page_file

if TYPE_CHECKING:
    from minibroker.control.operations import ControlCall


def with_overview(rows: tuple[ControlOperation, ...]) -> tuple[ControlOperation, ...]:
    """Return the operations, with one before them that lists them all."""

    async def overview(_: Any, call: ControlCall) -> Response:
        """List the operations, or return the page."""
        if is_page(call.request):
            return await page_file(INDEX, call.request)
        views = [
            shapes.PathView(method=row.method, path=row.path, summary=row.summary)
            for row in all_rows
        ]
        return answer(shapes.Overview(version=__version__, paths=views))

    all_rows = (
        ControlOperation(
            "overview",
            "GET",
            "/",
            "What there is; the console for a browser",
            overview,
            shapes.Overview,
        ),
        *rows,
    )
    return all_rows


async def console_file(_: Any, call: ControlCall) -> Response:
    """Return a file of the page."""
    return await page_file(call.part, call.request)


OPERATIONS: Final = (
    ControlOperation(
        "console_file",
        "GET",
        "/console/{file}",
        "A file of the console's page",
        console_file,
        None,
        failures=(HTTPStatus.NOT_FOUND,),
        media_type="text/html",
        is_open=True,
    ),
)
