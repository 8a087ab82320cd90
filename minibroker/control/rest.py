"""An API of operations over HTTP: from a request to the work of its operation.

    HttpRequest ─► RestApi.begin: Access.check, the operation, its query
                ─► Work: the body ─► a function of `paths` ─► Response or EventStream

The control API of a broker is one (`api`), and so is that of a proxy.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from minibroker.control import bodies
from minibroker.control.failures import as_http
from minibroker.control.messages import Work
from minibroker.control.operations import ControlCall, Routes
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.control.access import Access
    from minibroker.control.messages import EventStream, HttpRequest, Response
    from minibroker.control.operations import ControlOperation


class RestApi:
    """Finds and runs operations. The loop owns it."""

    def __init__(self, operations: Sequence[ControlOperation], access: Access, scope: Any) -> None:
        """`scope`: the parts that the operations work on; each of them gets it."""
        self._routes = Routes(operations)
        self._access = access
        self._scope = scope

    def begin(self, request: HttpRequest) -> Work:
        """Return the work for a request whose body is not read yet. Raises HttpError."""
        self._access.check(request)
        operation, part = self._routes.find(request)
        if operation.has_data:
            self._access.check_data(request)
        query = bodies.parse_query(request.query, operation.query)
        return Work(operation.body_bytes_max, partial(self._run, operation, request, part, query))

    async def _run(
        self,
        operation: ControlOperation,
        request: HttpRequest,
        part: str,
        query: Any,
        body: bytearray,
    ) -> Response | EventStream:
        checked: Any = body
        if operation.raw_body is not None:
            checked = bodies.parse_raw_body(body, operation.raw_body)
        elif operation.body not in (None, str):
            checked = bodies.parse_body(body, operation.body)
        try:
            return await operation.run(self._scope, ControlCall(request, part, query, checked))
        except KafkaError as error:
            raise as_http(error) from None
