"""The protocol of a connection as pure code: its states, its frames, what is read and sent."""

from __future__ import annotations

from struct import pack

import pytest

from minibroker.broker.server.connection import (
    JOIN_BYTES_MAX,
    TRANSITIONS,
    Connection,
    ConnectionState,
    Event,
    TransitionError,
)
from minibroker.broker.server.request_memory import BUFFER_BYTES, RequestMemory
from minibroker.kafka.errors import ProtocolError
from tests.support.receive_buffers import receive

REQUEST_BYTES_MAX = 1_000_000
MEMORY_BYTES = 400_000
ENDINGS = {
    (ConnectionState.AUTHENTICATING, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.VERIFYING, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.REFUSED, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.OPEN, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.WAITING, Event.STOP): ConnectionState.DRAINING,
    (ConnectionState.FLUSHING, Event.STOP): ConnectionState.DRAINING,
    (ConnectionState.THROTTLED, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.DRAINING, Event.STOP): ConnectionState.DRAINING,
    (ConnectionState.DRAINED, Event.STOP): ConnectionState.DRAINED,
    (ConnectionState.CLOSED, Event.STOP): ConnectionState.CLOSED,
    **{(state, Event.CLOSE): ConnectionState.CLOSED for state in ConnectionState},
}
ALLOWED = {
    (ConnectionState.AUTHENTICATING, Event.AUTHENTICATED): ConnectionState.OPEN,
    (ConnectionState.AUTHENTICATING, Event.REFUSE): ConnectionState.REFUSED,
    (ConnectionState.AUTHENTICATING, Event.VERIFY): ConnectionState.VERIFYING,
    (ConnectionState.VERIFYING, Event.VERIFIED): ConnectionState.AUTHENTICATING,
    (ConnectionState.OPEN, Event.AUTHENTICATE_AGAIN): ConnectionState.AUTHENTICATING,
    (ConnectionState.OPEN, Event.WAIT): ConnectionState.WAITING,
    (ConnectionState.OPEN, Event.HOLD): ConnectionState.FLUSHING,
    (ConnectionState.OPEN, Event.THROTTLE): ConnectionState.THROTTLED,
    (ConnectionState.WAITING, Event.ANSWER): ConnectionState.OPEN,
    (ConnectionState.FLUSHING, Event.FLUSHED): ConnectionState.OPEN,
    (ConnectionState.THROTTLED, Event.RESUME): ConnectionState.OPEN,
    (ConnectionState.DRAINING, Event.ANSWER): ConnectionState.DRAINED,
    (ConnectionState.DRAINING, Event.FLUSHED): ConnectionState.DRAINED,
    (ConnectionState.DRAINED, Event.WAIT): ConnectionState.DRAINING,
    (ConnectionState.DRAINED, Event.HOLD): ConnectionState.DRAINING,
    (ConnectionState.DRAINED, Event.THROTTLE): ConnectionState.DRAINED,
    (ConnectionState.CLOSED, Event.ANSWER): ConnectionState.CLOSED,
    (ConnectionState.CLOSED, Event.HOLD): ConnectionState.CLOSED,
    (ConnectionState.CLOSED, Event.FLUSHED): ConnectionState.CLOSED,
    **ENDINGS,
}
"""Written once more, by hand: what `TRANSITIONS` must say."""
EVERY = [(state, event) for state in ConnectionState for event in Event]


def connection_in(state: ConnectionState) -> Connection:
    memory = RequestMemory(MEMORY_BYTES, lambda call: call())
    connection = Connection(REQUEST_BYTES_MAX, memory, lambda: None)
    connection.state = state
    return connection


def open_connection() -> Connection:
    return connection_in(ConnectionState.OPEN)


def request(api_key: int, body: bytes = b"") -> bytes:
    frame = pack(">hh", api_key, 0) + body
    return pack(">i", len(frame)) + frame


# States.


@pytest.mark.parametrize(
    ("state", "event"), [pair for pair in EVERY if pair in ALLOWED], ids=lambda value: value.name
)
def test_an_event_leads_to_one_state(state: ConnectionState, event: Event) -> None:
    connection = connection_in(state)
    connection.apply(event)
    assert connection.state is ALLOWED[state, event]


@pytest.mark.parametrize(
    ("state", "event"),
    [pair for pair in EVERY if pair not in ALLOWED],
    ids=lambda value: value.name,
)
def test_an_event_that_cannot_happen_is_refused_and_changes_nothing(
    state: ConnectionState, event: Event
) -> None:
    connection = connection_in(state)
    with pytest.raises(TransitionError, match=f"{event.name} in state {state.name}, expected"):
        connection.apply(event)
    assert connection.state is state


def test_every_state_is_reached_and_ends() -> None:
    states = {ConnectionState.AUTHENTICATING}
    for _ in ConnectionState:
        states |= {after for state in states for after in TRANSITIONS[state].values()}
    assert states == set(ConnectionState)
    assert all(
        TRANSITIONS[state][Event.CLOSE] is ConnectionState.CLOSED for state in ConnectionState
    )


@pytest.mark.parametrize("state", ConnectionState)
def test_requests_are_taken_in_one_state_only(state: ConnectionState) -> None:
    connection = connection_in(state)
    receive(connection.receive_buffer, request(3))
    assert (connection.next_request() is not None) == (state is ConnectionState.OPEN)


def test_busy_and_ending_states() -> None:
    in_hand = {state for state in ConnectionState if connection_in(state).is_busy}
    assert in_hand == {ConnectionState.WAITING, ConnectionState.FLUSHING, ConnectionState.DRAINING}
    ending = {state for state in ConnectionState if connection_in(state).is_ending}
    assert ending == {ConnectionState.DRAINING, ConnectionState.DRAINED, ConnectionState.CLOSED}


def test_a_stop_lets_the_request_in_hand_be_answered_and_flushed() -> None:
    connection = open_connection()
    for event, state in (
        (Event.WAIT, ConnectionState.WAITING),
        (Event.STOP, ConnectionState.DRAINING),
        (Event.ANSWER, ConnectionState.DRAINED),
        (Event.HOLD, ConnectionState.DRAINING),
        (Event.FLUSHED, ConnectionState.DRAINED),
        (Event.CLOSE, ConnectionState.CLOSED),
    ):
        connection.apply(event)
        assert connection.state is state


# Bytes in, requests out.


def test_requests_come_out_in_order_and_whole() -> None:
    connection = open_connection()
    frames = [request(3, b"a"), request(3, b"bb"), request(3)]
    receive(connection.receive_buffer, b"".join(frames))
    assert [bytes(connection.next_request() or b"") for _ in frames] == [
        frame[4:] for frame in frames
    ]
    assert connection.next_request() is None


def test_a_part_of_a_request_waits_for_its_rest() -> None:
    connection = open_connection()
    whole = request(3, b"body")
    for end in range(1, len(whole)):
        receive(connection.receive_buffer, whole[end - 1 : end])
        assert connection.next_request() is None
    receive(connection.receive_buffer, whole[-1:])
    assert bytes(connection.next_request() or b"") == whole[4:]


def test_the_buffer_knows_a_frame_without_its_end_until_bytes_come() -> None:
    connection = open_connection()
    buffer = connection.receive_buffer
    receive(buffer, request(3) + request(3, b"body")[:-1])
    assert [connection.next_request() is None, buffer.ends_early] == [False, False]
    assert [connection.next_request() is None, buffer.ends_early] == [True, True]
    receive(buffer, b"y")
    assert not buffer.ends_early
    assert connection.next_request() is not None


def test_a_run_is_of_one_api() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, request(3) + request(3) + request(18) + request(3))
    assert connection.next_request() is not None
    assert connection.next_request(3) is not None
    assert connection.next_request(3) is None
    assert connection.next_request(18) is not None


@pytest.mark.parametrize("size_bytes", [-1, -(2**31), REQUEST_BYTES_MAX + 1, 2**31 - 1])
def test_a_size_that_no_request_has_is_refused_before_its_bytes(size_bytes: int) -> None:
    connection = open_connection()
    receive(connection.receive_buffer, pack(">i", size_bytes))
    with pytest.raises(ProtocolError, match=f"request size {size_bytes} bytes, expected 0 to"):
        connection.next_request()


@pytest.mark.parametrize(
    ("beginning", "protocol"), [(b"\x16\x03\x01\x02", "TLS"), (b"GET ", "HTTP"), (b"POST", "HTTP")]
)
def test_the_beginning_of_another_protocol_is_named(beginning: bytes, protocol: str) -> None:
    connection = open_connection()
    receive(connection.receive_buffer, beginning)
    with pytest.raises(ProtocolError, match=f"; it begins like {protocol}, which"):
        connection.next_request()


def test_an_empty_request_is_one() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, pack(">i", 0) + request(3))
    assert connection.next_request() == b""
    assert connection.next_request(18) is None
    assert connection.next_request(3) is not None


def test_nothing_is_taken_while_the_peer_does_not_take_its_answers() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, request(3))
    connection.peer_takes = False
    assert connection.next_request() is None
    connection.peer_takes = True
    assert connection.next_request() is not None


# When the socket is read.


def test_an_open_connection_is_read_and_grows_for_a_large_request() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, pack(">i", 4 * BUFFER_BYTES) + bytes(BUFFER_BYTES - 4))
    assert connection.receive_buffer.is_full
    assert connection.prepare_to_read()


@pytest.mark.parametrize("state", [ConnectionState.WAITING, ConnectionState.FLUSHING])
def test_bytes_behind_a_waiting_request_fill_the_buffer_and_no_more(state: ConnectionState) -> None:
    connection = connection_in(state)
    receive(connection.receive_buffer, bytes(BUFFER_BYTES - 1))
    assert connection.prepare_to_read()
    receive(connection.receive_buffer, bytes(1))
    assert not connection.prepare_to_read()


def test_a_peer_that_takes_nothing_is_read_until_the_buffer_is_full() -> None:
    connection = open_connection()
    connection.peer_takes = False
    assert connection.prepare_to_read()
    receive(connection.receive_buffer, bytes(BUFFER_BYTES))
    assert not connection.prepare_to_read()


def test_a_throttled_client_is_not_read() -> None:
    connection = connection_in(ConnectionState.THROTTLED)
    assert not connection.prepare_to_read()


def test_a_request_in_hand_keeps_its_bytes() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, request(0, b"mine"))
    frame = connection.next_request()
    connection.apply(Event.WAIT)
    assert connection.prepare_to_read(keeps_frame=True)
    receive(connection.receive_buffer, bytes(1000))
    assert frame is not None
    assert frame[-4:] == b"mine"


def test_a_request_in_hand_that_needs_no_bytes_holds_no_buffer() -> None:
    connection = open_connection()
    receive(connection.receive_buffer, request(1, b"fetch"))
    assert connection.next_request() is not None
    connection.apply(Event.WAIT)
    assert connection.prepare_to_read()
    assert connection.receive_buffer.size_bytes == 0


def test_a_connection_is_not_read_while_there_is_no_memory_for_its_request() -> None:
    resumed = []
    memory = RequestMemory(100_000, lambda call: call())
    first, second = (
        Connection(REQUEST_BYTES_MAX, memory, lambda: resumed.append(True)) for _ in range(2)
    )
    for connection in (first, second):
        connection.apply(Event.AUTHENTICATED)
        receive(connection.receive_buffer, pack(">i", 100_000) + b"part")
        connection.prepare_to_read()
    assert first.prepare_to_read()
    assert not second.prepare_to_read()
    first.receive_buffer.abandon()
    assert resumed
    assert second.prepare_to_read()


# Answers in, bytes out.


def test_small_answers_leave_as_one_buffer_and_large_ones_as_they_are() -> None:
    assert list(Connection.send([b"a", b"b", b"c"])) == [b"abc"]
    large = bytes(JOIN_BYTES_MAX)
    assert Connection.send([b"a", large])[1] is large
    assert list(Connection.send([])) == []
    assert list(Connection.send([b"a"])) == [b"a"]


# Before the client is known.


def test_tokens_are_taken_while_the_peer_authenticates_and_requests_are_not() -> None:
    connection = connection_in(ConnectionState.AUTHENTICATING)
    receive(connection.receive_buffer, request(17) + request(3))
    assert connection.next_request() is None
    assert connection.next_api() is None
    frame = connection.next_token(100)
    assert frame is not None
    assert bytes(frame) == request(17)[4:]
    connection.apply(Event.AUTHENTICATED)
    assert connection.next_token(100) is None
    assert connection.next_api() == 3
    assert connection.next_request() is not None


@pytest.mark.parametrize("size", [-1, 101, 2**31 - 1])
def test_a_token_has_a_limit_of_its_own(size: int) -> None:
    connection = connection_in(ConnectionState.AUTHENTICATING)
    receive(connection.receive_buffer, pack(">i", size))
    with pytest.raises(ProtocolError, match=r"sasl\.server\.max\.receive\.size"):
        connection.next_token(100)


def test_a_refused_peer_is_not_read() -> None:
    connection = connection_in(ConnectionState.AUTHENTICATING)
    assert connection.prepare_to_read()
    connection.apply(Event.REFUSE)
    assert not connection.prepare_to_read()
