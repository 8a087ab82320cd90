"""A loaded API: what the server asks to answer its requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.handlers.common.permissions import check_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.metrics import RequestMetrics
    from minibroker.kafka.protocol.api_keys import Api

    ShortWayOf = Callable[[RequestContext, "Handler", memoryview, int], Any]
    """(context, handler, frame, body position) → answer or response; None: call `handle`."""


class Handler:
    """A loaded API: its message classes and the functions that answer it. Constant once
    `open_short_way` is called.
    """

    __slots__ = (
        "_short_way_for",
        "api_key",
        "check",
        "error_response",
        "fast",
        "handle",
        "has_failed",
        "is_silent",
        "max_version",
        "min_version",
        "name",
        "request",
        "response",
        "times",
    )

    def __init__(
        self, api: Api, versions: tuple[int, int], module: Any, messages: Any, times: RequestMetrics
    ) -> None:
        self.api_key = api.key
        self.name = api.name
        self.min_version, self.max_version = versions
        self.request, self.response = messages
        self.handle: Callable[..., Any] = module.handle
        """(context, request) → response, or an awaitable of it, or steps to it."""
        self.check: Callable[..., None] | None = check_of(api.key)
        """(context, request) → raises KafkaError if the client lacks a permission that the whole
        request needs; None if it needs none."""
        self.error_response: Callable[..., Any] | None = getattr(module, "error_response", None)
        """(request, version, code, detail) → response; for APIs without a top-level error code."""
        self.is_silent: Callable[..., bool] | None = getattr(module, "is_silent", None)
        """(request) → whether its client waits for no answer; None if every client waits."""
        self.has_failed: Callable[..., bool] | None = getattr(module, "has_failed", None)
        """(response) → whether the connection of this silent request has to end."""
        self._short_way_for: Callable[[Services], ShortWayOf] | None = getattr(
            module, "short_way", None
        )
        self.fast: ShortWayOf | None = None
        """None: every request takes the general way."""
        self.times = times

    def open_short_way(self, services: Services) -> None:
        """Let requests take the short way of a broker, where the API has one."""
        if self._short_way_for is not None:
            self.fast = self._short_way_for(services)
