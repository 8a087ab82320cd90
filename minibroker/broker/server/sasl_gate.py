"""The gate of a connection on a SASL listener: no request passes before its client is known.

    transport ─ frames ─► SaslGate ─► authenticator (pure) ─► answer, principal
        requests ─► `opens`? ─► dispatch

A failed login is one line in the log. Its answer leaves after
`connection.failed.authentication.delay.ms`, then the connection is closed (KAFKA-7290). A session
that has ended (KIP-368) may only be renewed: any other request closes the connection.

Differs from Kafka: a request that comes in the place of a token is answered only if it is short
(`REFUSED_BYTES_MAX`). Either way the connection ends.

Source: Kafka KafkaChannel (maybeBeginServerReauthentication), SocketServer.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from minibroker.broker.cluster.paths import sanitize
from minibroker.broker.handlers import api_versions
from minibroker.broker.handlers.registry import load_handler
from minibroker.broker.security.sasl.authenticator import Authenticator, Phase, StepOutcome
from minibroker.broker.security.sasl.mechanisms import Mechanisms
from minibroker.broker.server.answers import Answer, error_response
from minibroker.broker.server.connection import ConnectionState, Event
from minibroker.broker.server.handling import read_request
from minibroker.broker.server.interceptor import LoginStage
from minibroker.client.daemons import mark_retrieved
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import KafkaError, ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, SASL_HANDSHAKE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.listeners import Listener
    from minibroker.broker.handlers.common.context import RequestContext, Services
    from minibroker.broker.security.sasl.authenticator import Header, Identity, Step
    from minibroker.broker.security.sasl.exchange import SaslExchange
    from minibroker.broker.server.connection import Connection
    from minibroker.broker.server.interceptor import LoginInterceptor

logger = logging.getLogger(__name__)

REFUSED_BYTES_MAX: Final = 4 * 1024
"""A longer request in the place of a token gets no answer. Kafka reads a request of any length and
repeats its parts in the answer, which costs far more than sending it does."""
AGAIN_AFTER_S: Final = 1.0
"""A client may authenticate again once in so many seconds, as in Kafka."""


def mechanisms_of(services: Services, listener: Listener, config: BrokerConfig) -> Mechanisms:
    """Return the mechanisms of a SASL listener under these settings. Raises ConfigError."""
    cluster = services.cluster

    def config_of_user(user: str) -> Mapping[str, str]:
        return cluster.config_of("users", sanitize(user))

    return Mechanisms(
        config,
        listener,
        config_of_user=config_of_user,
        login_of_token=None if services.tokens is None else services.tokens.login,
    )


class SaslGate:
    """The gate of one connection. Belongs to the loop."""

    __slots__ = (
        "_authenticator",
        "_began_again_s",
        "_connection",
        "_context",
        "_ends_s",
        "_go_on",
        "_held_frame",
        "_identity",
        "_interceptor",
        "_is_noted",
        "_mechanisms",
        "_on_failure",
        "_write",
    )

    def __init__(
        self,
        mechanisms: Mechanisms,
        connection: Connection,
        context: RequestContext,
        *,
        write: Callable[[bytes], None],
        on_failure: Callable[[bytes | None], None],
        go_on: Callable[[], None],
        interceptor: LoginInterceptor | None = None,
    ) -> None:
        """Take `write`, which sends a frame, `on_failure`, which gets the last frame, and `go_on`,
        which handles the bytes that came meanwhile. `interceptor`: looks in on logins.
        """
        self._mechanisms = mechanisms
        self._connection = connection
        self._context = context
        self._write = write
        self._on_failure = on_failure
        self._go_on = go_on
        self._interceptor = interceptor
        self._is_noted = False
        """True once the interceptor was asked about this login."""
        self._held_frame: bytes | None = None
        """The frame that waits because the interceptor has taken the login."""
        self._identity: Identity | None = None
        """The client, once it is known."""
        self._ends_s: float | None = None
        """End of the session on the broker's monotonic clock; None: it has no end."""
        self._began_again_s: float | None = None
        """When the client last began to authenticate again."""
        self._authenticator: Authenticator | None = Authenticator(self)
        """None while nothing is to be proved."""

    @property
    def is_client_known(self) -> bool:
        """Return whether the client has logged in, also if its session is over."""
        return self._identity is not None

    def opens(self) -> bool:
        """Take the frames that belong to the gate; return whether requests may be taken now."""
        connection = self._connection
        if self._held_frame is not None:
            return False
        if connection.state is ConnectionState.OPEN and self._ends_s is not None:
            self._watch_session(self._ends_s)
        while self._authenticator is not None:
            if not self._take_frame(self._authenticator):
                return False
            buffer = connection.receive_buffer
            if buffer.start == buffer.end:
                return False
        return not connection.is_ending

    def _watch_session(self, ends_s: float) -> None:
        """Begin to authenticate again, or end the connection, as the next request requires."""
        api_key = self._connection.next_api()
        if api_key is None:
            return
        now_s = self._context.services.clock.monotonic_s()
        before_s = self._began_again_s
        if api_key == SASL_HANDSHAKE:
            if before_s is None or now_s - before_s >= AGAIN_AFTER_S:
                self._began_again_s = now_s
                self._authenticator = Authenticator(self, self._identity)
                self._is_noted = False
                self._connection.apply(Event.AUTHENTICATE_AGAIN)
        elif now_s > ends_s:
            logger.info(
                "closing connection of %s: its session has ended and it did not authenticate again",
                self._context.client_address,
            )
            self._connection.apply(Event.STOP)

    def _take_frame(self, authenticator: Authenticator) -> bool:
        """Take one frame; return False if there is none, or if no more may be taken."""
        connection = self._connection
        try:
            frame = connection.next_token(self._mechanisms.receive_bytes_max)
        except ProtocolError as error:
            self._fail(str(error), None)
            return False
        if frame is None or self._is_taken(authenticator, frame):
            return False
        return self._handle(authenticator, frame)

    def _is_taken(self, authenticator: Authenticator, frame: memoryview) -> bool:
        """Return whether the interceptor takes this login away; then it has the first token."""
        if self._interceptor is None or self._is_noted or authenticator.phase is not Phase.TOKENS:
            return False
        self._is_noted = True
        self._held_frame = bytes(frame)
        if self._interceptor.takes(LoginStage.SASL, self._proceed, self._end_connection):
            return True
        self._held_frame = None
        return False

    def _proceed(self) -> None:
        """Handle the frame that was held, and the bytes behind it."""
        frame, self._held_frame = self._held_frame, None
        if self._connection.state is ConnectionState.AUTHENTICATING:
            assert frame is not None
            assert self._authenticator is not None
            self._handle(self._authenticator, memoryview(frame))
            self._go_on()

    def _end_connection(self, reason: str) -> None:
        """End the connection without an answer."""
        logger.info("closing connection of %s: %s", self._context.client_address, reason)
        self._authenticator = None
        self._connection.apply(Event.STOP)

    def _handle(self, authenticator: Authenticator, frame: memoryview) -> bool:
        """Give a frame to the authenticator; return whether another one may follow."""
        step = authenticator.receive(frame, self._context.services.clock.now_ms())
        return self._take_step(authenticator, step)

    def _take_step(self, authenticator: Authenticator, step: Step) -> bool:
        """Apply a step of the authenticator; return False if no other frame may be taken now."""
        if step.work is not None:
            self._connection.apply(Event.VERIFY)
            result = asyncio.get_running_loop().run_in_executor(None, step.work)
            result.add_done_callback(partial(self._on_verified, authenticator))
            return False
        if step.outcome is StepOutcome.FAILED:
            self._fail(step.reason, step.answer)
            return False
        if step.answer is not None:
            self._write(step.answer)
        if step.outcome is StepOutcome.DONE:
            self._let_in(authenticator)
        return True

    def _on_verified(
        self, authenticator: Authenticator, result: asyncio.Future[bytes | None]
    ) -> None:
        """Go on with the result of a worker, unless the connection has ended meanwhile."""
        if self._connection.state is not ConnectionState.VERIFYING:
            mark_retrieved(result)
            return
        self._connection.apply(Event.VERIFIED)
        now_ms = self._context.services.clock.now_ms()
        try:
            step = authenticator.resume(result.result, now_ms)
        except Exception:  # a bug of ours, which the loop logs
            self._fail("internal error", None)
            raise
        self._take_step(authenticator, step)
        self._go_on()

    def _let_in(self, authenticator: Authenticator) -> None:
        identity = authenticator.identity
        self._identity = identity
        self._context.identify(identity.principal)
        self._context.is_token = identity.is_token
        session_ms = authenticator.session_ms
        self._ends_s = (
            None
            if session_ms is None
            else self._context.services.clock.monotonic_s() + session_ms / 1000
        )
        self._authenticator = None
        self._connection.apply(Event.AUTHENTICATED)

    def _fail(self, reason: str, answer: bytes | None) -> None:
        context = self._context
        context.services.metrics.failed_authentications += 1
        logger.info(
            "failed authentication with %s on listener %s: %s",
            context.client_address,
            context.listener.name,
            reason,
        )
        self._authenticator = None
        self._connection.apply(Event.REFUSE)
        self._on_failure(answer)

    # `authenticator.SaslSurroundings`.

    @property
    def mechanisms(self) -> list[str]:
        """Return the enabled mechanisms."""
        return self._mechanisms.names

    def begin(self, mechanism: str) -> SaslExchange:
        """Return a new exchange of an enabled mechanism."""
        if self._interceptor is None:
            return self._mechanisms.begin(mechanism)
        return self._interceptor.exchange(mechanism, partial(self._mechanisms.begin, mechanism))

    def max_session_ms(self, mechanism: str) -> int:
        """Return how long a session may last, 0: for ever."""
        return self._mechanisms.max_session_ms(mechanism)

    def answer_versions(self, header: Header, frame: memoryview) -> tuple[bytes, bool]:
        """Answer ApiVersions as its handler does. Raises ProtocolError."""
        context = self._context
        services = context.services
        handler = load_handler(
            API_VERSIONS, services.supported_apis[API_VERSIONS], services.metrics
        )
        low, high = handler.min_version, handler.max_version
        if low <= header.version <= high:
            context.version = header.version
            request = read_request(handler, header.version, frame, header.position)
            response = api_versions.handle(context, request)
            answer = Answer(handler, response, header.version, header.correlation_id)
        else:
            response = api_versions.unsupported_version(low, high)
            answer = Answer(handler, response, 0, header.correlation_id)
        return b"".join(answer.encode(0)), not response.error_code

    def refuse(self, header: Header, frame: memoryview) -> bytes:
        """Answer any short request with ILLEGAL_SASL_STATE. Raises ProtocolError."""
        if len(frame) > REFUSED_BYTES_MAX:
            raise ProtocolError(f"a request of {len(frame)} bytes came in the place of a token")
        context = self._context
        services = context.services
        versions = services.supported_apis.get(header.api_key)
        if versions is None or not versions[0] <= header.version <= versions[1]:
            raise ProtocolError(f"API key {header.api_key} version {header.version} is not served")
        handler = load_handler(header.api_key, versions, services.metrics)
        context.api_key, context.version = header.api_key, header.version
        request = read_request(handler, header.version, frame, header.position)
        error = KafkaError(
            ErrorCode.ILLEGAL_SASL_STATE, "Request is not valid given the current SASL state."
        )
        response = error_response(handler, context, request, error)
        answer = Answer(handler, response, header.version, header.correlation_id)
        return b"".join(answer.encode(0))
