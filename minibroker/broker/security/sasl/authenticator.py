"""The states of a connection until its client has proved its identity: frames in, answers out.

    FIRST ─► VERSIONS ─► HANDSHAKE ─► TOKENS ─► DONE
       ApiVersions   SaslHandshake  SaslAuthenticate, or raw tokens after SaslHandshake version 0
                          │              │
                          └──────────────┴────► FAILED

A first frame that is no request is a token of Kerberos from Kafka 0.9, where GSSAPI is enabled; so
it is in Kafka 3.9. A mechanism that may block does it beside the loop (`Step.work`).

Before DONE only ApiVersions, SaslHandshake and SaslAuthenticate are answered. A request of another
API ends the connection: without an answer before the handshake, with ILLEGAL_SASL_STATE behind it.
A re-authentication (KIP-368) is a new authenticator that begins with the handshake; it keeps the
mechanism and the principal of the first one.

Pure: `server/sasl_gate.py` gives it frames and the time, and sends what it returns.

Source: Kafka SaslServerAuthenticator (3.9 and 4.4), KIP-43, KIP-152, KIP-368.
Differs from Kafka: a frame that no client sends ends the connection after the same delay as a
failed login; Kafka closes some of them at once.
"""

from __future__ import annotations

from enum import IntEnum, auto
from functools import lru_cache, partial
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from minibroker.broker.security.sasl.exchange import CredentialsError, NamelessError, RefusedError
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from minibroker.kafka.protocol.header import parse_request_header, response_header
from minibroker.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from minibroker.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from minibroker.kafka.protocol.primitives import Reader, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from minibroker.broker.security.sasl.exchange import SaslExchange

GSSAPI: Final = "GSSAPI"
_SIZE: Final = Struct(">i")


class Header(NamedTuple):
    """The header of a request, and where its body begins."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    position: int


class SaslSurroundings(Protocol):
    """The parts of the broker that an authenticator asks."""

    @property
    def mechanisms(self) -> Sequence[str]:
        """Return the enabled mechanisms, in the order in which clients are told of them."""

    def begin(self, mechanism: str) -> SaslExchange:
        """Return a new exchange of an enabled mechanism."""

    def max_session_ms(self, mechanism: str) -> int:
        """Return `connections.max.reauth.ms` of the mechanism; 0: sessions have no end."""

    def answer_versions(self, header: Header, frame: memoryview) -> tuple[bytes, bool]:
        """Return the whole frame that answers ApiVersions, and whether it holds no error. Raises
        ProtocolError.
        """

    def refuse(self, header: Header, frame: memoryview) -> bytes:
        """Return the whole frame that answers any request with ILLEGAL_SASL_STATE. Raises
        ProtocolError.
        """


class Phase(IntEnum):
    """The state of an authenticator."""

    FIRST = auto()
    """Nothing came yet."""
    VERSIONS = auto()
    """ApiVersions or the handshake may come."""
    HANDSHAKE = auto()
    """The handshake has to come."""
    TOKENS = auto()
    """Tokens of the mechanism have to come."""
    OTHER_MECHANISM = auto()
    """A re-authentication asked for another mechanism: whatever comes next fails."""
    DONE = auto()
    FAILED = auto()


class StepOutcome(IntEnum):
    """The consequence of a frame for the connection."""

    GO_ON = auto()
    DONE = auto()
    """The client has proved its identity."""
    BESIDE = auto()
    """A worker has to do `Step.work`; `Authenticator.resume` takes its result."""
    FAILED = auto()
    """The connection ends: the answer is sent after `connection.failed.authentication.delay.ms`."""


class Identity(NamedTuple):
    """The client, as it has proved to be."""

    principal: str
    mechanism: str
    is_token: bool
    """True where a delegation token was the credential."""


class Step(NamedTuple):
    """The result of one frame."""

    outcome: StepOutcome
    answer: bytes | None = None
    """A whole frame, None: nothing is sent."""
    reason: str = ""
    """Why it failed, for the log; without anything secret."""
    work: Callable[[], bytes | None] | None = None
    """May block; with BESIDE."""


class Authenticator:
    """One authentication of one connection. Belongs to the loop."""

    __slots__ = (
        "_exchange",
        "_has_headers",
        "_header",
        "_mechanism",
        "_old_identity",
        "_surroundings",
        "identity",
        "phase",
        "session_ms",
    )

    def __init__(
        self, surroundings: SaslSurroundings, old_identity: Identity | None = None
    ) -> None:
        """`old_identity`: the client of this connection so far, who authenticates again."""
        self._surroundings = surroundings
        self._old_identity = old_identity
        self._exchange: SaslExchange
        self._mechanism = ""
        self._has_headers = False
        """True where tokens come in SaslAuthenticate requests."""
        self._header: Header | None = None
        """The header of the token in hand."""
        self.phase = Phase.FIRST if old_identity is None else Phase.HANDSHAKE
        self.identity: Identity
        """Set with DONE."""
        self.session_ms: int | None = None
        """How long the session may last from DONE on; None: it has no end."""

    def receive(self, frame: memoryview, now_ms: int) -> Step:
        """Take the next frame of the client, without its size.

        `now_ms`: the wall clock. No frame may come after DONE or FAILED.
        """
        try:
            return self._receive(frame, now_ms)
        except ProtocolError as error:
            return self._fail(str(error))

    def _receive(self, frame: memoryview, now_ms: int) -> Step:
        if self.phase is Phase.TOKENS:
            if self._has_headers:
                return self._take_authenticate(frame, now_ms)
            return self._give(bytes(frame), now_ms)
        if self.phase is Phase.OTHER_MECHANISM:
            return self._fail(self._other_mechanism)
        try:
            header = Header(*parse_request_header(frame))
        except ProtocolError:
            if self.phase is not Phase.FIRST or GSSAPI not in self._surroundings.mechanisms:
                raise
            return self._take_kerberos(bytes(frame), now_ms)
        if header.api_key == API_VERSIONS and self.phase is not Phase.HANDSHAKE:
            return self._take_versions(header, frame)
        if header.api_key != SASL_HANDSHAKE:
            return self._fail(f"{_name(header.api_key)} came before SaslHandshake")
        return self._take_handshake(header, frame)

    def _take_kerberos(self, token: bytes, now_ms: int) -> Step:
        """Take a token of Kerberos without a handshake, as clients of Kafka 0.9 send it."""
        self._mechanism = GSSAPI
        self._exchange = self._surroundings.begin(GSSAPI)
        self.phase = Phase.TOKENS
        return self._give(token, now_ms)

    def _take_versions(self, header: Header, frame: memoryview) -> Step:
        answer, is_good = self._surroundings.answer_versions(header, frame)
        self.phase = Phase.HANDSHAKE if is_good else Phase.VERSIONS
        return Step(StepOutcome.GO_ON, answer)

    def _take_handshake(self, header: Header, frame: memoryview) -> Step:
        _check_version(header, SaslHandshakeRequest.VERSIONS)
        request = SaslHandshakeRequest.read(Reader(frame, header.position), header.version)
        mechanisms = tuple(self._surroundings.mechanisms)
        self._has_headers = header.version > 0
        if request.mechanism not in mechanisms:
            error_code = int(ErrorCode.UNSUPPORTED_SASL_MECHANISM)
            # As in Kafka, the answer belongs to a new connection only.
            answer = None
            if self._old_identity is None:
                answer = _frame_of(header, _handshake_body(mechanisms, header.version, error_code))
            return self._fail("the mechanism is not enabled", answer)
        self._mechanism = request.mechanism
        if self._old_identity is not None and self._old_identity.mechanism != request.mechanism:
            self.phase = Phase.OTHER_MECHANISM
        else:
            self._exchange = self._surroundings.begin(request.mechanism)
            self.phase = Phase.TOKENS
        body = _handshake_body(mechanisms, header.version)
        return Step(StepOutcome.GO_ON, _frame_of(header, body))

    def _take_authenticate(self, frame: memoryview, now_ms: int) -> Step:
        header = Header(*parse_request_header(frame))
        if header.api_key != SASL_AUTHENTICATE:
            reason = (
                f"Unexpected Kafka request of type {APIS[header.api_key].module.upper()}"
                " during SASL authentication."
            )
            return self._fail(reason, self._surroundings.refuse(header, frame))
        _check_version(header, SaslAuthenticateRequest.VERSIONS)
        request = SaslAuthenticateRequest.read(Reader(frame, header.position), header.version)
        return self._give(bytes(request.auth_bytes), now_ms, header)

    def _give(self, token: bytes, now_ms: int, header: Header | None = None) -> Step:
        """Give the mechanism a token. One without a header comes from a client that is older than
        Kafka 1.0.
        """
        self._header = header
        respond = partial(self._exchange.respond, token, now_ms)
        if self._exchange.may_block:
            return Step(StepOutcome.BESIDE, work=respond)
        return self.resume(respond, now_ms)

    def resume(self, respond: Callable[[], bytes | None], now_ms: int) -> Step:
        """Go on with the answer of the mechanism, or the error, that `respond` returns or raises:
        `Step.work`, or what a worker made of it.
        """
        try:
            answer = respond()
            if self._exchange.is_complete:
                self._identify(now_ms)
        except NamelessError as error:
            return self._fail(error.reason, self._frame(b""))
        except (RefusedError, CredentialsError) as error:
            text = self._text_for_client(error)
            return self._fail(error.reason, None if self._header is None else self._failed(text))
        except ProtocolError as error:
            return self._fail(str(error))
        frame = self._frame(answer)
        if not self._exchange.is_complete:
            return Step(StepOutcome.GO_ON, frame)
        self.phase = Phase.DONE
        return Step(StepOutcome.DONE, frame)

    def _frame(self, answer: bytes | None) -> bytes | None:
        """Return the frame of a mechanism's answer, None where the client gets none."""
        if self._header is not None:
            response = SaslAuthenticateResponse(auth_bytes=answer or b"")
            response.session_lifetime_ms = self.session_ms or 0
            return _frame(self._header, response)
        return None if answer is None else _SIZE.pack(len(answer)) + answer

    def _failed(self, text: str) -> bytes:
        """Return the frame of a failure."""
        assert self._header is not None
        code = int(ErrorCode.SASL_AUTHENTICATION_FAILED)
        response = SaslAuthenticateResponse(error_code=code, error_message=text)
        return _frame(self._header, response)

    def _identify(self, now_ms: int) -> None:
        """Set the identity that was proved. Raises RefusedError for another one than before."""
        exchange = self._exchange
        principal = f"User:{exchange.name}"
        if self._old_identity is not None and self._old_identity.principal != principal:
            raise RefusedError(
                "Cannot change principals during re-authentication from "
                f"{self._old_identity.principal.replace(':', '.', 1)}: User.{exchange.name}"
            )
        self.identity = Identity(principal, self._mechanism, exchange.is_token)
        self.session_ms = self._session_ms(exchange.expires_ms, now_ms)

    def _session_ms(self, expires_ms: int | None, now_ms: int) -> int | None:
        """Return the shorter of what the credential and the listener's setting leave."""
        limits = []
        if expires_ms is not None:
            limits.append(max(0, expires_ms - now_ms))
        longest_ms = self._surroundings.max_session_ms(self._mechanism)
        if longest_ms > 0:
            limits.append(longest_ms)
        return min(limits, default=None)

    def _fail(self, reason: str, answer: bytes | None = None) -> Step:
        self.phase = Phase.FAILED
        return Step(StepOutcome.FAILED, answer, reason)

    def _text_for_client(self, error: Exception) -> str:
        """Return the error message, which does not tell whether the user exists."""
        if isinstance(error, RefusedError):
            return str(error)
        again = "" if self._old_identity is None else "re-"
        return (
            f"Authentication failed during {again}authentication due to invalid credentials with"
            f" SASL mechanism {self._mechanism}"
        )

    @property
    def _other_mechanism(self) -> str:
        old_mechanism = self._old_identity.mechanism if self._old_identity is not None else ""
        return (
            f"SASL mechanism '{self._mechanism}' requested by client is not supported for"
            f" re-authentication of mechanism '{old_mechanism}'"
        )


def _check_version(header: Header, versions: tuple[int, int]) -> None:
    if not versions[0] <= header.version <= versions[1]:
        raise ProtocolError(f"{_name(header.api_key)} version {header.version} is not served")


def _name(api_key: int) -> str:
    return APIS[api_key].name


@lru_cache(maxsize=16)
def _handshake_body(mechanisms: tuple[str, ...], version: int, error_code: int = 0) -> bytes:
    """Return the answer to a handshake, the same for every client of a listener."""
    response = SaslHandshakeResponse(error_code=error_code, mechanisms=list(mechanisms))
    return _body(response, version)


def _frame(header: Header, response: SaslAuthenticateResponse) -> bytes:
    """Return the whole frame of an answer."""
    return _frame_of(header, _body(response, header.version))


def _body(response: SaslHandshakeResponse | SaslAuthenticateResponse, version: int) -> bytes:
    writer = Writer()
    response.write(writer, version)
    return writer.to_bytes()


def _frame_of(header: Header, body: bytes) -> bytes:
    """Return a body with the frame's size and the header of the answer in front."""
    header_bytes = response_header(header.api_key, header.version, header.correlation_id)
    return _SIZE.pack(len(header_bytes) + len(body)) + header_bytes + body
