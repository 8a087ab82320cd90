"""`InnerClient`: asks the handlers of a broker without a connection, as one who may do everything.

So a look inside, and a change from outside, take the way of a client's request: the same checks,
the same answers, the same errors. No fault meets them, no quota counts, and no log of requests has
them.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.handlers.common.context import RequestContext
from minibroker.broker.handlers.registry import load_handler
from minibroker.broker.metrics import Metrics
from minibroker.broker.server.answers import Answer, response_of
from minibroker.broker.server.handling import attempt
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError

if TYPE_CHECKING:
    from minibroker.broker.app import Broker
    from minibroker.broker.cluster.cluster import Cluster
    from minibroker.broker.handlers.common.handler import Handler

NAME: Final = "minibroker-control"
"""The client id: groups and logs have it."""


class InnerClient:
    """Asks one broker. Belongs to its loop."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        """Constant."""
        self._metrics = Metrics()
        """Not the broker's: nobody sent these requests."""
        self._handlers: dict[int, Handler] = {}

    @property
    def metadata(self) -> Cluster:
        """Return the metadata as the broker knows them."""
        return self.broker.cluster

    async def ask(self, api_key: int, version: int | None = None, **fields: Any) -> Any:
        """Return the broker's answer to a request with these fields; `version` None: the newest.

        Raises KafkaError.
        """
        handler = self._handler(api_key)
        context = self._context(handler)
        if version is not None:
            context.version = version
        outcome = attempt(context, handler, handler.request(**fields))
        self.broker.partitions.commit()  # a journal may have staged records
        if isinstance(outcome, Answer):
            return outcome.response
        response = await response_of(outcome.awaitable)
        self.broker.partitions.commit()
        return response

    def _handler(self, api_key: int) -> Handler:
        handler = self._handlers.get(api_key)
        if handler is None:
            versions = self.broker.services.supported_apis.get(api_key)
            if versions is None:
                raise KafkaError(
                    ErrorCode.UNSUPPORTED_VERSION, f"this broker does not serve API {api_key}"
                )
            handler = self._handlers[api_key] = load_handler(api_key, versions, self._metrics)
        return handler

    def _context(self, handler: Handler) -> RequestContext:
        services = copy(self.broker.services)
        services.authorizer = None
        context = RequestContext(
            services=services,
            listener=self.broker.config.listeners[0],
            client_address="127.0.0.1:0",
            close_connection=_ignore_reason,
        )
        context.api_key, context.version = handler.api_key, handler.max_version
        context.client_id = NAME
        return context


def _ignore_reason(_: str) -> None:
    """Do nothing: there is no connection to close."""


def check_code(code: int, detail: str | None) -> None:
    """Raise KafkaError for an error code of an answer that is not 0."""
    if code:
        raise KafkaError(ErrorCode(code), detail or None)
