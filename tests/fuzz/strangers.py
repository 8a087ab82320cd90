"""Peers that cannot log in: connections with several hostile frames each, and what they were told.

A connection begins as clients do, to some depth (nothing, ApiVersions, SaslHandshake, the first
message of SCRAM), or with garbage on a port with TLS. Then come frames of every API, good and
damaged, and tokens without a right password. The last frame is a Metadata request: an answer to it
without an error would be a way in. The broker ends the connection.
"""

from __future__ import annotations

import asyncio
import struct
import time
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import API_VERSIONS, APIS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from tests.fuzz.damage import damaged
from tests.support.codec import codec_of
from tests.support.reference_codec import load_specs, present
from tests.support.wire import request_header

if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, Sequence
    from random import Random

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI", "plain")
TOKENS: Final = (
    b"\0alice\0wrong",
    b"\0alice\0",
    b"alice\0alice\0another-secret",
    b"n,,n=alice,r=abcdef",
    b"n,,n=nobody,r=abcdef,tokenauth=true",
    b"p=tls-unique,,n=alice,r=abcdef",
    b"c=biws,r=abcdef,p=YWJj",
    b"n,,\x01auth=Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.\x01\x01",
    b"\x01",
    b"",
    b"\x60\x82\x02\x10" + bytes(20),
)
ANSWERED: Final = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE})
"""The APIs that a peer without a login may hear of."""
FRAMES_PER_CONNECTION: Final = 8
CONNECTIONS: Final = 200
PATIENCE_S: Final = 1.0
"""A peer that waits for bytes, and so do we: then our side ends the connection."""
_ILLEGAL_STATE: Final = struct.pack(">h", ErrorCode.ILLEGAL_SASL_STATE)
_CLIENT_HELLO: Final = bytes.fromhex("16030100f5010000f10303") + bytes(range(1, 235))
_TLS_TIMES: Final = {"ssl_handshake_timeout": 10.0, "ssl_shutdown_timeout": PATIENCE_S}
_FIRST_ID: Final = 0x7ABCDE00
"""No frame of the pool has one of these."""
_LAST_ID: Final = 0x7ABCDEF0


class IntruderError(AssertionError):
    """A peer without a login was let in, or heard of something."""


class Plan(NamedTuple):
    """The bytes of one connection."""

    kind: str
    frames: Sequence[bytes]
    has_raw_tokens: bool = False
    """True where answers behind the first are tokens without a header."""


def frame(api: str, version: int, correlation_id: int, **fields: object) -> bytes:
    """Return a request with its size in front."""
    codec = codec_of(api)
    is_flexible = codec.is_flexible(version)
    body = request_header(codec.api_key, version, correlation_id, "stranger", is_flexible)
    body += codec.encode_request(version, fields)
    return struct.pack(">i", len(body)) + body


@cache
def _has_code(api_key: int, version: int) -> bool:
    """Return whether the answer has an error code of its own, besides those of its parts."""
    module = f"messages.{APIS[api_key].module}"
    (spec,) = (
        message
        for message in load_specs()
        if message.module == module and message.class_name.endswith("Response")
    )
    return any(field["name"] == "error_code" for field in present(spec.fields, version))


def codes_of(api_key: int, version: int, answer: bytes) -> set[int]:
    """Return the error codes in an answer; some have no place for one."""
    codec = codec_of(APIS[api_key].module)
    codes: set[int] = set()

    def look(value: object) -> None:
        if isinstance(value, dict):
            codes.update(code for name, code in value.items() if name.endswith("error_code"))
            for inner in value.values():
                look(inner)
        elif isinstance(value, list | tuple):
            for inner in value:
                look(inner)

    decoded = codec.decode_response(version, answer[5 if codec.is_flexible(version) else 4 :])
    if not _has_code(api_key, version):
        decoded.pop("error_code", None)
    look(decoded)
    return codes


LAST_FRAME: Final = frame("metadata", 1, _LAST_ID, topics=None)


class Planner:
    """Makes the connections of a run, the same ones for the same chance."""

    def __init__(self, chance: Random, frames: Sequence[bytes]) -> None:
        """`frames`: of every API, each with its size in front."""
        self._chance = chance
        self._frames = frames

    def next(self, *, has_tls: bool) -> Plan:
        """Return the next connection; `has_tls`: for a port that wants TLS."""
        if has_tls:
            return self._garbage()
        chance = self._chance
        depth = chance.randrange(5)
        frames: list[bytes] = []
        if depth and chance.random() < 0.7:
            frames.append(frame("api_versions", chance.randrange(4), _FIRST_ID))
        version = 0
        if depth > 1:
            version = chance.randrange(2)
            mechanism = chance.choice(MECHANISMS)
            frames.append(frame("sasl_handshake", version, _FIRST_ID + 1, mechanism=mechanism))
        is_raw = depth > 1 and version == 0
        while len(frames) < FRAMES_PER_CONNECTION - 1:
            frames.append(self._frame(is_raw=is_raw, wants_token=depth > 2))
        return Plan(f"depth {depth}", [*frames, LAST_FRAME], is_raw)

    def _frame(self, *, is_raw: bool, wants_token: bool) -> bytes:
        chance = self._chance
        if wants_token and chance.random() < 0.6:
            token = damaged(chance, chance.choice(TOKENS))
            if is_raw:
                return struct.pack(">i", len(token)) + token
            return frame("sasl_authenticate", chance.randrange(3), _FIRST_ID + 2, auth_bytes=token)
        raw = chance.choice(self._frames)
        return damaged(chance, raw) if chance.random() < 0.3 else raw

    def _garbage(self) -> Plan:
        chance = self._chance
        kind = chance.randrange(4)
        if kind == 0:
            frames = [damaged(chance, _CLIENT_HELLO)]
        elif kind == 1:
            frames = [chance.choice(self._frames)]
        elif kind == 2:
            frames = [b"\x16\x03\x01\xff\xff" + chance.randbytes(chance.randrange(2000))]
        else:
            frames = [chance.randbytes(chance.randrange(1, 600))]
        more = [chance.randbytes(60) for _ in range(FRAMES_PER_CONNECTION - 2)]
        return Plan(f"garbage {kind}", [*frames, *more, LAST_FRAME])


def _is_empty(answer: bytes) -> bool:
    """Return whether an answer has nothing behind its correlation id but zeros, nulls and -1.

    An answer of an old version without a place for an error, such as Metadata v2, is refused so.
    """
    return not answer[4:].strip(b"\x00\xff")


class Outcome:
    """Counts what all connections of a run were told."""

    def __init__(self) -> None:
        self.frames = 0
        self.connections = 0
        self.answers: Counter[str] = Counter()
        """Kind of answer → how many."""
        self.left_open = 0
        """Connections that our side ended."""

    def take(self, plan: Plan, received: bytes) -> None:
        """Judge what a connection was told. Raises IntruderError."""
        questions: dict[int, tuple[int, int]] = {}
        for raw in plan.frames:
            if len(raw) >= 12:
                api_key, version, correlation_id = struct.unpack_from(">hhi", raw, 4)
                questions[correlation_id] = (api_key, version)
        position, count = 0, 0
        while len(received) - position >= 4:
            (size,) = struct.unpack_from(">i", received, position)
            answer = received[position + 4 : position + 4 + size]
            position += 4 + size
            count += 1
            self.answers[self._judge(plan, questions, answer)] += 1

    def _judge(self, plan: Plan, questions: Mapping[int, tuple[int, int]], answer: bytes) -> str:
        if plan.has_raw_tokens and answer.startswith((b"r=", b'{"status":')):
            return "challenge"
        api_key, version = questions.get(int.from_bytes(answer[:4], signed=True), (-1, -1))
        if api_key not in ANSWERED:
            # -1: the size of a damaged frame was wrong, so a header began elsewhere.
            if _ILLEGAL_STATE not in answer and (
                not _is_empty(answer)
                if api_key < 0
                else codes_of(api_key, version, answer) - {ErrorCode.ILLEGAL_SASL_STATE}
            ):
                raise IntruderError(f"{plan.kind}: {answer[:80]!r} answers API {api_key}")
            if b"127.0.0.1" in answer:
                raise IntruderError(f"{plan.kind}: {answer[:200]!r} names a broker")
            return "refused"
        if api_key == SASL_AUTHENTICATE and b"v=" in answer:
            raise IntruderError(f"{plan.kind}: somebody has logged in: {answer!r}")
        return "ApiVersions" if api_key == API_VERSIONS else "of SASL"


class _Stranger(asyncio.Protocol):
    """One connection: writes all of its frames at once, and reads until the end."""

    def __init__(self, plan: Plan, outcome: Outcome, loop: asyncio.AbstractEventLoop) -> None:
        self._plan = plan
        self._outcome = outcome
        self._received = bytearray()
        self._has_ended = False
        self._timer: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[None] = loop.create_future()
        self._loop = loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        transport.write(b"".join(self._plan.frames))  # type: ignore[attr-defined]  of uvloop

        def leave() -> None:
            self._outcome.left_open += 1
            self._end()  # a TLS transport that is aborted says nothing of its end
            transport.abort()  # type: ignore[attr-defined]

        self._timer = self._loop.call_later(PATIENCE_S, leave)

    def data_received(self, data: bytes) -> None:
        self._received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _end(self) -> None:
        """Judge what came, once."""
        if self._has_ended:
            return
        self._has_ended = True
        if self._timer is not None:
            self._timer.cancel()
        self._outcome.frames += len(self._plan.frames)
        self._outcome.connections += 1
        error: Exception | None = None
        # A port with TLS answers with an alert, or by nothing.
        if not self._plan.kind.startswith("garbage"):
            try:
                self._outcome.take(self._plan, bytes(self._received))
            except Exception as found:  # the task that waits raises it
                error = found
        if self.done.done():
            return  # cancelled, because another one got in
        if error is None:
            self.done.set_result(None)
        else:
            self.done.set_exception(error)


class Crowd:
    """Strangers at a broker, many at once, until so many frames are sent."""

    def __init__(
        self,
        planner: Planner,
        chance: Random,
        ports: Sequence[int],
        tls_ports: Sequence[int],
        context: ssl.SSLContext,
    ) -> None:
        """`ports` and `tls_ports`: without TLS, and with; `context`: of a client without a name."""
        self._planner = planner
        self._chance = chance
        self._ports = ports
        self._tls_ports = tls_ports
        self._context = context
        self.outcome = Outcome()
        self.took_s = 0.0

    async def send(self, frames: int) -> None:
        """Send so many frames more. Raises IntruderError."""
        start_s = time.monotonic()
        end = self.outcome.frames + frames
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(self._one_after_the_other(end))
        self.took_s += time.monotonic() - start_s

    async def _one_after_the_other(self, end: int) -> None:
        while self.outcome.frames < end:
            await self._connect()

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        draw = self._chance.random()
        has_tls = draw < 0.1
        port = self._chance.choice(self._tls_ports if draw < 0.101 else self._ports)
        plan = self._planner.next(has_tls=has_tls)
        stranger = _Stranger(plan, self.outcome, loop)
        # One in a thousand does the handshake of TLS, which takes longer than all others.
        context = self._context if 0.1 <= draw < 0.101 else None
        options = {"ssl": context, "server_hostname": "localhost", **_TLS_TIMES} if context else {}
        try:
            await loop.create_connection(lambda: stranger, "127.0.0.1", port, **options)
        except OSError:  # the handshake was refused
            self.outcome.frames += len(plan.frames)
            self.outcome.connections += 1
            return
        await stranger.done
