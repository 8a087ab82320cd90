"""Interceptors look in on requests and on logins; each is asked at one place.

    TLS handshake, SASL exchange ─► LoginInterceptor    (tls_transport.py, sasl_gate.py)
    request                      ─► Interceptor         (dispatch.py)

A broker that serves alone has no interceptor and pays one comparison a request.
The rig has one: it applies faults and keeps the log of requests. The metrics of requests are
counted where `on_end` is called, for every broker.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.handlers.common.context import RequestContext
    from minibroker.broker.security.sasl.exchange import SaslExchange
    from minibroker.broker.server.answers import AnyAnswer, WaitingRequest
    from minibroker.broker.server.call import Call


class Interceptor(Protocol):
    """Looks in on every request of a broker, on the loop's thread."""

    def handle(self, call: Call) -> AnyAnswer | WaitingRequest | None:
        """Handle a request. Without an interceptor, `handling.handle_call(call)` happens.

        Return None to take the request away: it gets no answer, and `on_end` is not called.
        """

    def on_end(self, call: Call, answer: AnyAnswer | None) -> None:
        """Take note of an answer as the client gets it: encoded, with the disk's errors in it.

        None: the request waited, and its client has left.
        """

    def on_close(self, context: RequestContext) -> None:
        """Take note of a connection that is closed, by either side."""


class LoginStage(StrEnum):
    """A part of a connection's way to its principal."""

    TLS = "tls"
    """The handshake; its first bytes are here."""
    SASL = "sasl"
    """The exchange of the mechanism; its first token is here."""


class LoginInterceptor(Protocol):
    """Looks in on every login of a broker, on the loop's thread."""

    def takes(
        self, stage: LoginStage, proceed: Callable[[], None], end: Callable[[str], None]
    ) -> bool:
        """Return whether to take a login away that reaches this stage; False: it goes on.

        If so, `proceed` lets it go on later, or `end` ends its connection, for a reason that the
        log names. `proceed` may not be called before this returns.
        """

    def exchange(self, mechanism: str, begin: Callable[[], SaslExchange]) -> SaslExchange:
        """Return the exchange of a login; `begin` makes the real one."""
