"""An API of operations over HTTP: from a request to the work of its operation.

    HttpRequest ─► RestApi.begin: Access.check, the operation, its query
                ─► Work: the body ─► a function of `paths` ─► Response or EventStream

The control API of a broker is one (`api`), and so is that of a proxy.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from minibroker.control import bodies
from minibroker.control.messages import HttpError, Work
from minibroker.control.operations import ControlCall, Routes
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.control.access import Access
    from minibroker.control.messages import EventStream, HttpRequest, Response
    from minibroker.control.operations import ControlOperation

_STATUSES: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: HTTPStatus.NOT_FOUND,
    ErrorCode.GROUP_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: HTTPStatus.NOT_FOUND,
    ErrorCode.OFFSET_OUT_OF_RANGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_TOPIC_EXCEPTION: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_GROUP_ID: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_RECORD: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_TIMESTAMP: HTTPStatus.BAD_REQUEST,
    ErrorCode.MESSAGE_TOO_LARGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.RECORD_LIST_TOO_LARGE: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_CONFIG: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_PARTITIONS: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_REPLICATION_FACTOR: HTTPStatus.BAD_REQUEST,
    ErrorCode.INVALID_REQUEST: HTTPStatus.BAD_REQUEST,
    ErrorCode.REQUEST_TIMED_OUT: HTTPStatus.GATEWAY_TIMEOUT,
}
"""Status of an error of Kafka; one that may pass by itself is a conflict."""


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
            status = _STATUSES.get(error.code, HTTPStatus.CONFLICT)
            raise HttpError(status, _sentence_of(error, operation, part)) from None


def _sentence_of(error: KafkaError, operation: ControlOperation, part: str) -> str:
    """Return the text of an error. Kafka's own answers do not name a topic that is not there."""
    if (
        error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        and error.detail is None
        and operation.path.startswith("/topics/{topic}")
    ):
        return f"there is no topic {part!r:.300}"
    return str(error)
