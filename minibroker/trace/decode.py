"""Bytes of a request and of its answer → `Exchange`.

Second station of a trace: the proxy, the reader of captures and the recorded dialogue hand in
`Frames`; a line, JSON or a page comes out of the exchange. `decode` is only called for what is
looked at, so a proxy can keep frames and decode none.

No bytes are refused: an unknown API, an unknown version or a damaged body gives an exchange with
what is known, and the first bytes in hexadecimal digits.
"""

from __future__ import annotations

from functools import cache
from struct import Struct
from struct import error as struct_error
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import ProtocolError
from minibroker.kafka.protocol import api_keys
from minibroker.kafka.protocol.answer_error import first_error
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, PRODUCE, load_messages
from minibroker.kafka.protocol.header import parse_request_header, response_header_version
from minibroker.kafka.protocol.primitives import Reader
from minibroker.trace.exchange import Exchange
from minibroker.trace.subject import describe_both, learn_names

if TYPE_CHECKING:
    from minibroker.kafka.protocol.message import Message
    from minibroker.trace.subject import TopicNames

    Frame = bytes | memoryview

PREVIEW_BYTES: Final = 24
"""Bytes that are shown of a message that cannot be read."""
SECRET_APIS: Final = frozenset(
    {
        api_keys.ALTER_CONFIGS,
        api_keys.ALTER_USER_SCRAM_CREDENTIALS,
        api_keys.CREATE_DELEGATION_TOKEN,
        api_keys.DESCRIBE_DELEGATION_TOKEN,
        api_keys.EXPIRE_DELEGATION_TOKEN,
        api_keys.INCREMENTAL_ALTER_CONFIGS,
        api_keys.RENEW_DELEGATION_TOKEN,
        api_keys.SASL_AUTHENTICATE,
    }
)
"""APIs whose bytes may be passwords or keys: no byte of a damaged one is shown."""
TOKEN: Final = "SASL token"
"""The name of frames behind SaslHandshake v0: they have no header."""

_PRODUCE_TRANSACTIONAL: Final = 3
_PRODUCE_FLEXIBLE: Final = 9
_SIDES: Final = ("request", "answer")
_REQUEST, _ANSWER = range(len(_SIDES))
_START: Final = Struct(">hhi")
_CORRELATION_ID: Final = Struct(">i")
_ERROR_CODE: Final = Struct(">h")


class Frames(NamedTuple):
    """The bytes of a request and of its answer, both without their length."""

    number: int
    connection: int
    client_address: str
    broker: str
    at_ms: float
    """Wall clock when the request came, ms since 1970."""
    duration_ms: float | None
    request: Frame
    answer: Frame | None
    fault: str | None = None
    is_token: bool = False
    """True for bytes of a login without a header, as behind SaslHandshake v0."""
    head: FrameHead | None = None
    """The head of the request, None if nobody has read it yet."""


class FrameHead(NamedTuple):
    """The head of a request: everything before its body."""

    api_key: int
    """-1 for a frame that is too short for a header."""
    version: int
    correlation_id: int
    client_id: str | None
    body_at: int
    """Position of the body, -1 for a header that cannot be read."""
    problem: str | None
    """Why the body cannot be read, None if nothing is wrong so far."""

    @property
    def api(self) -> str:
        """Return Kafka's name of the API, `api 999` for a key that none has."""
        if self.api_key == -1:
            return "no request"
        api = APIS.get(self.api_key)
        return f"api {self.api_key}" if api is None else api.name

    @property
    def is_known(self) -> bool:
        """Return whether the body has a layout that is known."""
        return self.problem is None


def read_head(frame: Frame) -> FrameHead:
    """Return the head of a request; whatever the bytes are, there is one."""
    try:
        api_key, version, correlation_id, client_id, body_at = parse_request_header(frame)
    except ProtocolError as error:
        try:
            api_key, version, correlation_id = _START.unpack_from(frame)
        except struct_error:
            return FrameHead(-1, -1, -1, None, -1, str(error))
        return FrameHead(api_key, version, correlation_id, None, -1, str(error))
    api = APIS[api_key]
    problem = None
    if not api.min_version <= version <= api.max_version:
        problem = f"{api.name} has versions {api.min_version} to {api.max_version}"
    return FrameHead(api_key, version, correlation_id, client_id, body_at, problem)


def decode(frames: Frames, names: TopicNames) -> Exchange:
    """Return the exchange of two frames; topics that its answer names are added to `names`."""
    if frames.is_token:
        head = FrameHead(-1, 0, -1, None, -1, None)
        return exchange_of(frames, head, "")._replace(api=TOKEN)
    head = frames.head or read_head(frames.request)
    if head.problem is not None:
        note = f"not read: {head.problem}{_preview(head.api_key, frames.request)}"
        return exchange_of(frames, head, note)
    answer = None
    request, note = read_request(head, frames.request)
    if frames.answer is not None:
        answer, answer_note = read_answer(head, frames.answer)
        if answer_note:
            note = f"{note}; {answer_note}" if note else answer_note
        if answer is not None:
            learn_names(answer, names)
    subject = describe_both(request, answer, names)
    if note:
        subject = f"{subject}; {note}" if subject else note
    return exchange_of(frames, head, subject, request, answer)


def exchange_of(
    frames: Frames,
    head: FrameHead,
    subject: str,
    request: Message | None = None,
    answer: Message | None = None,
) -> Exchange:
    """Return the exchange of frames whose head is read, with the error of its answer."""
    return Exchange(  # by position: that costs half as much
        frames.number,
        frames.connection,
        frames.client_address,
        frames.broker,
        head.api,
        head.version,
        head.correlation_id,
        head.client_id,
        frames.at_ms,
        frames.duration_ms,
        len(frames.request),
        None if frames.answer is None else len(frames.answer),
        subject,
        None if answer is None else first_error(answer),
        frames.fault,
        request,
        answer,
    )


def read_request(head: FrameHead, frame: Frame) -> tuple[Message | None, str]:
    """Return the request of a known API and version, or None; and a note, empty if all is well."""
    return _read(_REQUEST, head, frame, head.body_at, head.version)


def read_answer(head: FrameHead, frame: Frame) -> tuple[Message | None, str]:
    """Return the answer to a request of a known API and version, or None; and a note."""
    if len(frame) < _CORRELATION_ID.size:
        return None, f"answer of {len(frame)} bytes"
    correlation_id: int = _CORRELATION_ID.unpack_from(frame)[0]
    version = _answer_version(head, frame)
    body_at = _CORRELATION_ID.size
    if response_header_version(head.api_key, version):
        try:
            body_at = _behind_tags(frame, body_at)
        except ProtocolError as error:
            return None, f"answer not read: {error}"
    answer, note = _read(_ANSWER, head, frame, body_at, version)
    if correlation_id != head.correlation_id:
        other = f"answer has correlation id {correlation_id} and not {head.correlation_id}"
        note = f"{other}; {note}" if note else other
    return answer, note


def has_answer(head: FrameHead, frame: Frame) -> bool:
    """Return whether a broker answers this request: not a Produce with acks 0.

    Only the start of a Produce is read: the transactional id, since version 3, and acks.
    """
    if head.api_key != PRODUCE or not head.is_known:
        return True
    reader = Reader(frame, head.body_at)
    try:
        if head.version >= _PRODUCE_FLEXIBLE:
            reader.compact_nullable_string()
        elif head.version >= _PRODUCE_TRANSACTIONAL:
            reader.nullable_string()
        return reader.int16() != 0
    except ProtocolError:
        return True


def _answer_version(head: FrameHead, frame: Frame) -> int:
    """Return the version of the answer: 0 for an ApiVersions that the broker does not have."""
    at = _CORRELATION_ID.size
    if head.api_key == API_VERSIONS and len(frame) >= at + _ERROR_CODE.size:
        code: int = _ERROR_CODE.unpack_from(frame, at)[0]
        if code == ErrorCode.UNSUPPORTED_VERSION:
            return 0
    return head.version


def _behind_tags(frame: Frame, position: int) -> int:
    """Return the position behind the tagged fields of a header. Raises ProtocolError."""
    if position < len(frame) and not frame[position]:
        return position + 1
    reader = Reader(frame, position)
    reader.skip_tagged_fields()
    return reader.position


@cache
def _messages(api_key: int) -> tuple[Any, Any]:
    """Return the classes of the request and the answer of a known API."""
    return load_messages(api_key)


def _read(
    side: int, head: FrameHead, frame: Frame, position: int, version: int
) -> tuple[Message | None, str]:
    """Return the message from `position` on, or None; and a note about damage or bytes behind.

    `side`: one of `_SIDES`.
    """
    reader = Reader(frame, position)
    try:
        message: Message = _messages(head.api_key)[side].read(reader, version)
    except ProtocolError as error:
        return None, f"{_SIDES[side]} not read: {error}{_preview(head.api_key, frame)}"
    if reader.remaining:
        return message, f"{reader.remaining} bytes behind the {_SIDES[side]}"
    return message, ""


def _preview(api_key: int, frame: Frame) -> str:
    """Return the first bytes in hexadecimal digits, nothing of what may hold a password."""
    if api_key in SECRET_APIS:
        return ""
    more = "…" if len(frame) > PREVIEW_BYTES else ""
    return f" ({bytes(frame[:PREVIEW_BYTES]).hex(' ')}{more})"
