"""`RequestCalls`: a test looks at requests, and waits for them. A `Broker` has these calls, and a
`Proxy`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

from minibroker.rig.faults import api_named, error_named, refuse_in_loop
from minibroker.testing.loop_thread import WAIT_TIMEOUT_S, LoopCalls, is_for_test

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.error_codes import ErrorCode
    from minibroker.rig.names import ApiName, ErrorName
    from minibroker.rig.request_log import RequestLog, SeenRequest

__tracebackhide__ = is_for_test


class RequestCalls(LoopCalls):
    """The requests of clients, for the thread of the test."""

    @property
    @abstractmethod
    def _request_log(self) -> RequestLog:
        """Return the log, for the loop. Raises RuntimeError if nothing runs."""

    @property
    def requests(self) -> list[SeenRequest]:
        """Return the last 10,000 requests since the start or reset, oldest first; in a cluster
        those of the other brokers, too.
        """
        requests: list[SeenRequest] = self.call(lambda: list(self._request_log))
        return requests

    def wait_for_requests(
        self,
        api: ApiName,
        count: int = 1,
        *,
        error: ErrorName | ErrorCode | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[SeenRequest]:
        """Wait until clients have been answered `count` requests of a kind; return all of those.

        `error`: only those answered with it. Raises ValueError for a name that Kafka does not have;
        TimeoutError, which says how many came; RuntimeError in a running event loop, which needs
        `wait_for_requests_async`.
        """
        refuse_in_loop("wait_for_requests")
        is_wanted = _request_filter(api, error, client_id)
        requests: list[SeenRequest] = self._await(
            self._request_log.wait_for(is_wanted, count, timeout_s), timeout_s
        )
        return requests

    async def wait_for_requests_async(
        self,
        api: ApiName,
        count: int = 1,
        *,
        error: ErrorName | ErrorCode | None = None,
        client_id: str | None = None,
        timeout_s: float = WAIT_TIMEOUT_S,
    ) -> list[SeenRequest]:
        """Wait like `wait_for_requests`, for a test that runs in a loop."""
        is_wanted = _request_filter(api, error, client_id)
        requests: list[SeenRequest] = await self._awaited(
            self._request_log.wait_for(is_wanted, count, timeout_s)
        )
        return requests


def _request_filter(
    api: str, error: str | ErrorCode | None, client_id: str | None
) -> Callable[[SeenRequest], bool]:
    """Return a function that tells whether a request is wanted.

    Raises ValueError for a wrong name.
    """
    name = api_named(api).name
    code = None if error is None else error_named(error).name

    def is_wanted(request: SeenRequest) -> bool:
        return (
            request.api == name
            and code in (None, request.error)
            and client_id in (None, request.client_id)
        )

    return is_wanted
