"""A client's side of a connection, without its socket: frames out and in, versions, the login.

    request ─► `request_frame` ─► socket ─► `body_size`, `sent_for` ─► `OpenRequest.read` ─► answer

Each request has a correlation id; answers come in the order of the requests. A driver brings the
bytes to the socket and back: `connection` (blocking), `async_connection`. To open a
connection, it takes `agreement_steps` and `login_steps`: a step is an `Inquiry`, whose answer is
sent back into the generator, or work that may block, whose result is.

Source: Kafka NetworkClient, NodeApiVersions, SaslClientAuthenticator; KIP-368, KIP-511.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from functools import partial
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from minibroker import __version__
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol.api_keys import API_VERSIONS
from minibroker.kafka.protocol.header import response_header_version, write_request_header
from minibroker.kafka.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from minibroker.kafka.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from minibroker.kafka.protocol.messages.sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from minibroker.kafka.protocol.primitives import Reader, Writer

SESSION_PART: Final = 0.85
"""The part of a session after which another connection takes over, as Kafka's clients renew it."""
SIZE: Final = Struct(">i")
"""The size in front of each frame."""
_CORRELATION_ID: Final = Struct(">i")
_NEWEST_AGREEMENT: Final = ApiVersionsRequest.VERSIONS[1]
"""The version of the first ApiVersions."""


class BrokerRefusedError(ConnectionError):
    """The broker does not take the login, or speaks none of our versions."""


class LoginExchange(Protocol):
    """The client's side of one mechanism of SASL (`client.sasl`)."""

    @property
    def is_complete(self) -> bool: ...

    def begin(self) -> bytes: ...

    def respond(self, message: bytes, /) -> bytes: ...


class Inquiry(NamedTuple):
    """A request, and the class that reads its answer."""

    request: Any
    response: Any
    version: int


Step = Inquiry | Callable[[], bytes]


class VersionedRequest(NamedTuple):
    """A request whose content depends on the version that the broker knows."""

    kind: Any
    """The class of the request."""
    of_version: Callable[[int], Any]
    """Returns the request in a version."""

    @property
    def API_KEY(self) -> int:  # noqa: N802  as the requests have it
        """Return the key of the API."""
        key: int = self.kind.API_KEY
        return key

    @property
    def VERSIONS(self) -> tuple[int, int]:  # noqa: N802  as the requests have it
        """Return the first and the last version that the class writes."""
        versions: tuple[int, int] = self.kind.VERSIONS
        return versions


class OpenRequest(NamedTuple):
    """A request without its answer."""

    correlation_id: int
    api_key: int
    version: int
    response: Any

    def read(self, frame: memoryview) -> Any:
        """Return the answer in the frame. Raises ProtocolError."""
        reader = Reader(frame, _CORRELATION_ID.size)
        if response_header_version(self.api_key, self.version):
            reader.skip_tagged_fields()
        return self.response.read(reader, self.version)


class Dialogue:
    """The requests of one connection, and the versions of its broker."""

    __slots__ = ("_answer_bytes_max", "_client_id", "_last_id", "open_requests", "versions")

    def __init__(self, client_id: str, answer_bytes_max: int) -> None:
        self._client_id = client_id
        self._answer_bytes_max = answer_bytes_max
        self._last_id = 0
        self.open_requests: deque[OpenRequest] = deque()
        """Requests without their answer, the oldest first."""
        self.versions: dict[int, tuple[int, int]] = {}
        """API key → the broker's lowest and highest version; filled by `agreement_steps`."""

    def request_frame(self, request: Any, response: Any, version: int) -> bytes:
        """Return the bytes of the next request, whose answer `response` reads."""
        if isinstance(request, VersionedRequest):
            request = request.of_version(version)
        self._last_id = (self._last_id + 1) & 0x7FFFFFFF
        writer = Writer()
        write_request_header(writer, request.API_KEY, version, self._last_id, self._client_id)
        request.write(writer, version)
        body = writer.to_bytes()
        self.open_requests.append(OpenRequest(self._last_id, request.API_KEY, version, response))
        return SIZE.pack(len(body)) + body

    def body_size(self, prefix: bytes | memoryview) -> int:
        """Return the size of the frame behind this prefix, in bytes. Raises ProtocolError."""
        size: int = SIZE.unpack(prefix)[0]
        if not _CORRELATION_ID.size <= size <= self._answer_bytes_max:
            raise ProtocolError(
                f"an answer of {size} bytes, expected {_CORRELATION_ID.size} to "
                f"{self._answer_bytes_max}"
            )
        return size

    def sent_for(self, frame: memoryview) -> OpenRequest:
        """Take the oldest request, which this frame answers. Raises ProtocolError."""
        (correlation_id,) = _CORRELATION_ID.unpack_from(frame)
        oldest = self.open_requests[0].correlation_id if self.open_requests else None
        if correlation_id != oldest:
            raise ProtocolError(
                f"an answer to request {correlation_id}, expected one to {oldest or 'none'}"
            )
        return self.open_requests.popleft()

    def version_for(self, request: Any, oldest: int, newest: int | None = None) -> int | None:
        """Return the newest version that both sides know, at least `oldest`, at most `newest`;
        None where there is none. The request is an object or its class.
        """
        theirs = self.versions.get(request.API_KEY)
        if theirs is None:
            return None
        first, last = request.VERSIONS
        version: int = min(last, theirs[1], last if newest is None else newest)
        return version if version >= max(first, theirs[0], oldest) else None


class ApiVersionsAnswer:
    """Reads ApiVersions, in the layout of its version or in that of version 0 (KIP-511)."""

    @staticmethod
    def read(reader: Reader, version: int) -> ApiVersionsResponse:
        """Return the answer to a question of `version`. Raises ProtocolError."""
        start = reader.position
        is_refused = reader.int16() == ErrorCode.UNSUPPORTED_VERSION
        reader.position = start
        return ApiVersionsResponse.read(reader, 0 if is_refused else version)


def older_version(answer: ApiVersionsResponse) -> int | None:
    """Return the version to ask again with, None if the question was answered."""
    if answer.error_code != ErrorCode.UNSUPPORTED_VERSION:
        return None
    newest = {key.api_key: key.max_version for key in answer.api_keys}
    return min(_NEWEST_AGREEMENT, newest.get(API_VERSIONS, 0))


def agreement_steps(dialogue: Dialogue, name: str) -> Generator[Step, Any, None]:
    """Ask for the versions. A broker that does not know ours says which ones it knows (KIP-511).

    `name` of the connection is for messages. Raises ProtocolError.
    """
    request = ApiVersionsRequest(
        client_software_name="minibroker", client_software_version=__version__
    )
    answer = yield Inquiry(request, ApiVersionsAnswer, _NEWEST_AGREEMENT)
    if (version := older_version(answer)) is not None:
        answer = yield Inquiry(request, ApiVersionsAnswer, version)
    if answer.error_code:
        raise ProtocolError(f"{name}: ApiVersions is answered with error {answer.error_code}")
    dialogue.versions = {key.api_key: (key.min_version, key.max_version) for key in answer.api_keys}


def old_versions() -> dict[int, tuple[int, int]]:
    """Return the versions that a broker without ApiVersions serves for certain: Kafka 0.8.2 and
    0.9.0. Of an API that both have, the versions of the older one.
    """
    from minibroker.kafka.protocol.releases import served_by  # noqa: PLC0415  seldom needed

    return {**served_by("0.9.0"), **served_by("0.8.2")}


def old_agreement_steps(dialogue: Dialogue) -> Generator[Step, Any, None]:
    """Ask a question that brokers without ApiVersions answer, and take `old_versions` then.

    The question is about no partition. A broker from Kafka 4.0 on closes the connection for its
    version. Raises ProtocolError.
    """
    from minibroker.kafka.protocol.messages.list_offsets import (  # noqa: PLC0415  seldom needed
        ListOffsetsRequest,
        ListOffsetsResponse,
    )

    yield Inquiry(ListOffsetsRequest(replica_id=-1), ListOffsetsResponse, 0)
    dialogue.versions = old_versions()


def login_steps(
    dialogue: Dialogue, name: str, mechanism: str, exchange: LoginExchange
) -> Generator[Step, Any, float | None]:
    """Prove who we are; return the seconds after which another connection takes over.

    None: the session has no end. `name` of the connection is for messages. Raises
    BrokerRefusedError; of the exchange OSError (no token, no ticket) and ProtocolError (the broker
    does not prove that it knows the credential).
    """
    handshake = SaslHandshakeRequest(mechanism=mechanism)
    version = _login_version(dialogue, name, SaslHandshakeRequest, oldest=1)
    answer = yield Inquiry(handshake, SaslHandshakeResponse, version)
    if answer.error_code and not answer.mechanisms:
        raise BrokerRefusedError(
            f"{name} takes no logins on this listener: leave the user out, or take the port of "
            "a listener with SASL (security.protocol)"
        )
    if answer.error_code:
        raise BrokerRefusedError(
            f"{name}: logins by {', '.join(answer.mechanisms)} are taken, not {mechanism}"
        )
    version = _login_version(dialogue, name, SaslAuthenticateRequest, oldest=0)
    # A token may be in a file, a ticket comes from a KDC.
    token = yield exchange.begin
    while not exchange.is_complete:
        request = SaslAuthenticateRequest(auth_bytes=token)
        answer = yield Inquiry(request, SaslAuthenticateResponse, version)
        if answer.error_code:
            raise BrokerRefusedError(f"{name}: {answer.error_message}")
        # SCRAM hashes the password some thousand times.
        token = yield partial(exchange.respond, answer.auth_bytes)
    lifetime_ms: int = answer.session_lifetime_ms
    return lifetime_ms / 1000 * SESSION_PART if lifetime_ms > 0 else None


def _login_version(dialogue: Dialogue, name: str, request: Any, *, oldest: int) -> int:
    """Return the version of a request of the login. Raises BrokerRefusedError."""
    version = dialogue.version_for(request, oldest)
    if version is None:
        raise BrokerRefusedError(
            f"{name}: API {request.API_KEY} is wanted in version {oldest} to "
            f"{request.VERSIONS[1]}, the broker has {dialogue.versions.get(request.API_KEY)}"
        )
    return version
