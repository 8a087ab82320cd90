"""One client connection without any I/O: bytes in → requests out in order, answers in → bytes out.

Second station of a request, as a sans-I/O protocol (the manner of the `h11` library): no socket, no
event loop, no clock. `transport.py` writes what the kernel has into `received`, takes requests with
`next_request`, tells what happens as an `Event`, and sends what `send` gives.

`TRANSITIONS` is the whole life of a connection. Any other transition is refused.

    AUTHENTICATING ─► REFUSED ─► DRAINED           the client is told later that it failed
    AUTHENTICATING ─► VERIFYING ─► AUTHENTICATING  a worker looks at a token (Kerberos)
    AUTHENTICATING ─► OPEN ─► AUTHENTICATING       a session that ends is renewed (KIP-368)
                           ─► WAITING   ─► OPEN    a handler gave an awaitable (long poll, join)
                           ─► FLUSHING  ─► OPEN    answers wait for fsync (`flush.messages`)
                           ─► THROTTLED ─► OPEN    the client is over a quota (KIP-219)
                           ─► DRAINED   ─► CLOSED  no more requests are taken
         WAITING, FLUSHING ─► DRAINING  ─► DRAINED as soon as what is in hand is answered

Requests are taken in OPEN only, so one that waits holds those behind it, as Kafka's muted channel
does. Beside the state stands one fact: whether the peer takes its answers. While it does not,
nothing more is handled for it.

Source: Kafka KafkaChannel (its states and mute states), SocketServer.Processor.
"""

from __future__ import annotations

from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final

from minibroker.broker.server.receive_buffer import FRAME_SIZE, ReceiveBuffer
from minibroker.kafka.errors import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from minibroker.broker.server.request_memory import RequestMemory

    Buffer = bytes | bytearray | memoryview

_KEY: Final = Struct(">h")
JOIN_BYTES_MAX: Final = 64 * 1024
"""Answers up to this size are joined into one buffer: cheaper than many short vectors."""
ANY_API: Final = -1
"""For `next_request`: a request of whichever API comes."""


class ConnectionState(IntEnum):
    """The state of a connection."""

    AUTHENTICATING = 1
    """The peer has no principal yet, or renews its session: the gate takes its frames."""
    VERIFYING = 2
    """A worker looks at the peer's token, and no other frame is taken."""
    REFUSED = 3
    """The peer failed to authenticate, and gets the answer later: the socket is not read."""
    OPEN = 4
    """Nothing is in hand: requests are taken as they arrive."""
    WAITING = 5
    """A request waits: for records, for other members, for its task."""
    FLUSHING = 6
    """Answers are held until the disk has what they claim; a request may wait behind them."""
    THROTTLED = 7
    """The last request is answered and its client over a quota: the socket is not read."""
    DRAINING = 8
    """No request is taken any more; what is in hand is still to be answered."""
    DRAINED = 9
    """No request is taken any more and none is in hand: the transport has to close."""
    CLOSED = 10
    """Bytes that were written before may still leave; nothing else happens."""


class Event(IntEnum):
    """An event of a connection. Most come in pairs: the second one ends the first one's state."""

    AUTHENTICATED = 1
    """The peer has a principal."""
    AUTHENTICATE_AGAIN = 2
    """The peer begins to renew its session."""
    VERIFY = 3
    VERIFIED = 4
    """The worker has a result, whatever it is."""
    REFUSE = 5
    """The peer failed to authenticate."""
    WAIT = 6
    ANSWER = 7
    """The request that waited has its answer, or will never have one."""
    HOLD = 8
    FLUSHED = 9
    """The disk has what the held answers claim, or has refused it."""
    THROTTLE = 10
    RESUME = 11
    """The throttle is over."""
    STOP = 12
    """The broker stops, a handler asks for the end, or the peer sent bytes that no client sends."""
    CLOSE = 13
    """The transport closes, or the peer is gone."""


TRANSITIONS: Final[Mapping[ConnectionState, Mapping[Event, ConnectionState]]] = {
    ConnectionState.AUTHENTICATING: {
        Event.AUTHENTICATED: ConnectionState.OPEN,
        Event.VERIFY: ConnectionState.VERIFYING,
        Event.REFUSE: ConnectionState.REFUSED,
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.VERIFYING: {
        Event.VERIFIED: ConnectionState.AUTHENTICATING,
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.REFUSED: {
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.OPEN: {
        Event.AUTHENTICATE_AGAIN: ConnectionState.AUTHENTICATING,
        Event.WAIT: ConnectionState.WAITING,
        Event.HOLD: ConnectionState.FLUSHING,
        Event.THROTTLE: ConnectionState.THROTTLED,
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.WAITING: {
        Event.ANSWER: ConnectionState.OPEN,
        Event.STOP: ConnectionState.DRAINING,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.FLUSHING: {
        Event.FLUSHED: ConnectionState.OPEN,
        Event.STOP: ConnectionState.DRAINING,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.THROTTLED: {
        Event.RESUME: ConnectionState.OPEN,
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    ConnectionState.DRAINING: {
        Event.ANSWER: ConnectionState.DRAINED,
        Event.FLUSHED: ConnectionState.DRAINED,
        Event.STOP: ConnectionState.DRAINING,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    # The answers of the last requests are on their way: the disk may hold them, and one may wait.
    ConnectionState.DRAINED: {
        Event.WAIT: ConnectionState.DRAINING,
        Event.HOLD: ConnectionState.DRAINING,
        Event.THROTTLE: ConnectionState.DRAINED,
        Event.STOP: ConnectionState.DRAINED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
    # Work in hand ends without its peer.
    ConnectionState.CLOSED: {
        Event.ANSWER: ConnectionState.CLOSED,
        Event.HOLD: ConnectionState.CLOSED,
        Event.FLUSHED: ConnectionState.CLOSED,
        Event.STOP: ConnectionState.CLOSED,
        Event.CLOSE: ConnectionState.CLOSED,
    },
}

_TLS_HANDSHAKE: Final = b"\x16\x03"
_HTTP_METHODS: Final = frozenset({b"GET ", b"HEAD", b"POST", b"PUT ", b"OPTI", b"CONN", b"PRI "})
_OPEN: Final = ConnectionState.OPEN
_AUTHENTICATING: Final = ConnectionState.AUTHENTICATING
_UNREAD: Final = frozenset({ConnectionState.THROTTLED, ConnectionState.REFUSED})
_IN_HAND: Final = frozenset(
    {ConnectionState.WAITING, ConnectionState.FLUSHING, ConnectionState.DRAINING}
)
_ENDING: Final = frozenset(
    {ConnectionState.DRAINING, ConnectionState.DRAINED, ConnectionState.CLOSED}
)


class TransitionError(Exception):
    """An event that cannot happen in this state: a bug of ours."""


class Connection:
    """The protocol of one connection. Its transport calls it, on the loop's thread."""

    __slots__ = ("_request_bytes_max", "peer_takes", "receive_buffer", "state")

    def __init__(
        self, request_bytes_max: int, memory: RequestMemory, on_memory: Callable[[], None]
    ) -> None:
        """Take `request_bytes_max` (`socket.request.max.bytes`), and `on_memory`, which is called
        when there is memory again for a request that was not read to its end.
        """
        self._request_bytes_max = request_bytes_max
        """Constant."""
        self.receive_buffer = ReceiveBuffer(memory, on_memory)
        """The transport fills it, `next_request` and `prepare_to_read` empty it."""
        self.state = ConnectionState.AUTHENTICATING
        """Changed by `apply` alone."""
        self.peer_takes = True
        """The transport's: False while the peer leaves too many answers unread."""

    def apply(self, event: Event) -> None:
        """Go to the next state. Raises TransitionError where `TRANSITIONS` has none."""
        state = TRANSITIONS[self.state].get(event)
        if state is None:
            raise TransitionError(
                f"{event.name} in state {self.state.name}, expected "
                + " or ".join(expected.name for expected in TRANSITIONS[self.state])
            )
        self.state = state

    # Bytes in, requests out.

    def next_request(self, api_key: int = ANY_API) -> memoryview | None:
        """Return the next whole request without its size field; None: there is none to take now.

        Valid until `prepare_to_read`. With an `api_key` only a request of that API is taken. Raises
        ProtocolError for a size that no request may have.
        """
        buffer = self.receive_buffer
        start = buffer.start
        if buffer.end - start < 4 or self.state is not _OPEN or not self.peer_takes:
            return None
        view = buffer.view
        (size_bytes,) = FRAME_SIZE.unpack_from(view, start)
        if not 0 <= size_bytes <= self._request_bytes_max:
            raise ProtocolError(
                f"request size {size_bytes} bytes, expected 0 to {self._request_bytes_max}"
                f" (socket.request.max.bytes){_foreign_protocol(bytes(view[start : start + 4]))}"
            )
        start += 4
        end = start + size_bytes
        if end > buffer.end:
            buffer.ends_early = True
            return None
        # Keys are below 128, so the second byte of the key tells the API.
        if api_key >= 0 and size_bytes > 1 and view[start + 1] != api_key:
            return None
        buffer.start = end
        return view[start:end]

    def next_token(self, bytes_max: int) -> memoryview | None:
        """Return the next whole frame of a peer that authenticates; None: there is none to take.

        Valid until `prepare_to_read`. Raises ProtocolError for a size above `bytes_max`
        (`sasl.server.max.receive.size`).
        """
        buffer = self.receive_buffer
        start = buffer.start + FRAME_SIZE.size
        if buffer.end < start or self.state is not _AUTHENTICATING or not self.peer_takes:
            return None
        (size_bytes,) = FRAME_SIZE.unpack_from(buffer.view, buffer.start)
        if not 0 <= size_bytes <= bytes_max:
            raise ProtocolError(
                f"frame size {size_bytes} bytes, expected 0 to {bytes_max}"
                " (sasl.server.max.receive.size)"
            )
        end = start + size_bytes
        if end > buffer.end:
            return None
        buffer.start = end
        return buffer.view[start:end]

    def next_api(self) -> int | None:
        """Return the API key of the next request, which stays in the buffer; None: it is not here.

        The request may be here in part only.
        """
        buffer = self.receive_buffer
        start = buffer.start + FRAME_SIZE.size
        if buffer.end < start + _KEY.size or self.state is not _OPEN or not self.peer_takes:
            return None
        return int(_KEY.unpack_from(buffer.view, start)[0])

    def prepare_to_read(self, *, keeps_frame: bool = False) -> bool:
        """Give back or make room for bytes; return whether the socket is to be read now.

        Earlier requests are invalid then, except one in hand that `keeps_frame`. Bytes that come
        behind a request in hand, or while the peer does not take its answers, stay in the buffer,
        and no room is made for more than that. A throttled or refused client is not read at all,
        nor a client for whose request there is no memory.
        """
        buffer = self.receive_buffer
        if (self.state is _OPEN or self.state is _AUTHENTICATING) and self.peer_takes:
            buffer.compact()
            return not buffer.lacks_memory
        if buffer.start == buffer.end and not keeps_frame:
            buffer.compact()
        else:
            buffer.keep()
        return self.state not in _UNREAD and not buffer.is_full

    # Answers in, bytes out.

    @staticmethod
    def send(parts: list[Buffer]) -> Sequence[Buffer]:
        """Return the buffers to write at once for `parts`, the frames of answers in order.

        Small frames are joined into one buffer, large ones go out as they are.
        """
        if len(parts) < 2 or sum(map(len, parts)) > JOIN_BYTES_MAX:
            return parts
        return (b"".join(parts),)

    # The end.

    @property
    def is_busy(self) -> bool:
        """Return whether a request is in hand that has to be answered."""
        return self.state in _IN_HAND

    @property
    def is_ending(self) -> bool:
        """Return whether no request is taken any more."""
        return self.state in _ENDING


def _foreign_protocol(beginning: bytes) -> str:
    """Return a note on the first 4 bytes of a request that are no size, empty for unknown ones."""
    if beginning.startswith(_TLS_HANDSHAKE):
        return "; it begins like TLS, which this listener does not speak"
    if beginning in _HTTP_METHODS:
        return "; it begins like HTTP, which Kafka does not speak"
    return ""
