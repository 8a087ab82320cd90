"""`RequestSide`: the requests of one connection, on their way from the client to Kafka.

    frame ─► head ─► nobody looks into it: passes, as it comes
                 └─► whole ─► a rule meets it? ─ no ─► passes
                                    │ yes
                                    └► waits · is refused · is split · passes with a mark

A refused request is answered here and Kafka never sees it. One that is refused for some partitions
goes on without them, and `answer_side` puts their errors into the answer.
"""

from __future__ import annotations

import asyncio
import time
from struct import Struct
from typing import TYPE_CHECKING, Any, Final

from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.protocol.api_keys import (
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    load_messages,
)
from minibroker.proxy import codec
from minibroker.proxy.facts import facts_of, login_user
from minibroker.proxy.frames import SIZE_BYTES, FrameCutter, FrameWay
from minibroker.proxy.heads import (
    CORRELATION_AT,
    CORRELATION_END,
    HEAD_BYTES_MAX,
    RequestHead,
    head_bytes,
    read_head,
)
from minibroker.proxy.kinds import RequestKinds
from minibroker.proxy.limits import (
    FRAME_BYTES_MAX,
    LOOKED_AT_BYTES_MAX,
    PENDING_MAX,
    SHOWN_BYTES_MAX,
    SHOWN_HEAD_BYTES,
    SMALL_BYTES,
)
from minibroker.proxy.pending import Pending, correlation_of
from minibroker.proxy.refused_request import RefusedRequest, refused_by

if TYPE_CHECKING:
    from minibroker.proxy.answer_side import AnswerSide
    from minibroker.proxy.desk import Desk
    from minibroker.proxy.wire import DueCall, Wire
    from minibroker.rig.faults import Facts, Fault

PRODUCE_HEAD_BYTES: Final = 256
"""So much of a Produce is there before its way is chosen: `acks` is within."""
_FRAME_START: Final = Struct(">iIi")
"""Size; API and version as one number; correlation id."""
_REST_AT: Final = SIZE_BYTES + CORRELATION_END
_TLS_START: Final = b"\x16\x03"
_WRONG_PLAIN: Final = "Authentication failed: Invalid username or password"
_WRONG_LOGIN: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism {}"
)
"""Kafka's own texts (PlainSaslServer, SaslServerAuthenticator)."""
_LOGIN_KINDS: Final = {
    "PLAIN": ("wrong_password", "sasl_cut", "sasl_slow"),
    "OAUTHBEARER": ("expired_token", "sasl_cut", "sasl_slow"),
}
_SCRAM_KINDS: Final = ("wrong_password", "expired_token", "sasl_cut", "sasl_slow")


class RequestSide:
    """The requests of one connection. Belongs to the loop."""

    def __init__(self, desk: Desk, wire: Wire, answers: AnswerSide) -> None:
        self._desk = desk
        self._wire = wire
        self._answers = answers
        self.pass_on = wire.to_kafka
        """Does `FrameSide.pass_on`. Constant."""
        self.cutter = FrameCutter(self)
        self.watches_end = False
        """True while the end of the request that passes begins a hold."""
        self._is_waiting = False
        """True while a rule, or the renewal of a login, holds the connection."""
        self._is_full = False
        """True while too many requests have no answer."""
        self._has_ended = False
        self._kinds = RequestKinds()
        self._is_first = True
        """True until the first frame of the connection."""
        self._has_tokens = False
        """True behind SaslHandshake v0: tokens follow that have no header."""
        self._mechanism: str | None = None
        """The mechanism of a login that has begun; its first token comes next."""
        self._login_mechanism = ""
        """The mechanism of the login whose first token came last."""
        self._timer: DueCall | None = None
        self.delayed_request: Pending | None = None
        """The request that a rule holds or delays now."""
        self._waits_for: tuple[Fault, Any] | None = None
        """The rule that holds the connection, and what goes on then."""
        self._is_refusing = False
        """True while a long request is refused beside the loop."""

    # The cutter calls these.

    def skim(self, data: bytes, at: int) -> int:
        """Do `FrameSide.skim`: requests of a kind that came before pass, while nobody looks on."""
        if self._is_first or self._has_tokens or not self._desk.is_quiet:
            return at
        kinds, queue, end = self._kinds, self._answers.queue, len(data)
        while end - at >= _REST_AT and len(queue) < PENDING_MAX:
            size, number, correlation_id = _FRAME_START.unpack_from(data, at)
            kind = kinds.get(number)
            if kind is None or not data.startswith(kind.rest, at + _REST_AT):
                return at
            if not kind.size_min <= size <= FRAME_BYTES_MAX:
                return at
            if kind.head.wants_answer:
                queue.append(Pending(kind.head, correlation_id, size, kind.answer_way))
            at += SIZE_BYTES + size
        if len(queue) >= PENDING_MAX:
            self._be_full()
        return at

    def judge(self, size: int, data: bytes, at: int) -> FrameWay:
        """Do `FrameSide.judge`."""
        if self._is_first and data.startswith(_TLS_START, at - SIZE_BYTES):
            self._desk.on_event(
                f"{self._wire.client_address} speaks TLS, which ends at Kafka: its requests cannot "
                "be read, and the addresses in their answers stay Kafka's"
            )
            self._answers.be_raw()
            return FrameWay.RAW
        if not 0 <= size <= FRAME_BYTES_MAX:
            self._desk.on_event(
                f"{self._wire.client_address} sent bytes that are no frame (a size of {size}): "
                "they pass"
            )
            self._answers.be_raw()
            return FrameWay.RAW
        arrived = len(data) - at
        if arrived < min(size, head_bytes(data, at)):
            return FrameWay.MORE
        end = at + min(size, arrived)
        head = read_head(data, at, min(end, at + HEAD_BYTES_MAX))
        if head is None:
            return self._judge_unknown(size, data, at)
        if head.api_key == PRODUCE and arrived < min(size, PRODUCE_HEAD_BYTES):
            return FrameWay.MORE
        if self._is_looked_at(head, size):
            return FrameWay.WHOLE
        if self._desk.is_quiet:
            self._kinds.learn(head, data, at, end)
        self._expect(self._pending(head, size, data, at - SIZE_BYTES))
        return FrameWay.PASS

    def _judge_unknown(self, size: int, data: bytes, at: int) -> FrameWay:
        if self._desk.is_watched and size <= SHOWN_BYTES_MAX:
            return FrameWay.WHOLE
        self._expect(self._pending(None, size, data, at - SIZE_BYTES))
        return FrameWay.PASS

    def _pending(self, head: RequestHead | None, size: int, data: bytes, at: int) -> Pending:
        """Return the request whose frame begins at `at`; an onlooker gets what is here of it."""
        pending = Pending(head, correlation_of(data, at + SIZE_BYTES + CORRELATION_AT), size)
        if head is None:
            pending.is_token = self._has_tokens or self._is_first
        elif head.api_key != SASL_AUTHENTICATE:
            self._has_tokens = head.api_key == SASL_HANDSHAKE and head.version == 0
        if self._desk.is_watched:
            pending.started_ns = time.perf_counter_ns()
            pending.at_ms = self._desk.clock.now_ms()
            shown_bytes = size if size <= SHOWN_BYTES_MAX else SHOWN_HEAD_BYTES
            pending.frame = data[at : at + SIZE_BYTES + shown_bytes]
        self._is_first = False
        return pending

    def _is_looked_at(self, head: RequestHead, size: int) -> bool:
        if size > LOOKED_AT_BYTES_MAX:
            return False
        return (self._desk.is_watched and size <= SHOWN_BYTES_MAX) or self._desk.may_meet(head)

    def end_passing(self) -> None:
        """Do `FrameSide.end_passing`: hold what follows."""
        self.watches_end = False
        self._hold()
        self._answers.tell_idle()

    def take(self, frame: bytes) -> None:
        """Do `FrameSide.take`."""
        size = len(frame) - SIZE_BYTES
        head = read_head(frame, SIZE_BYTES, len(frame))
        pending = self._pending(head, size, frame, 0)
        if head is None or not self._desk.may_meet(head):
            self._forward(pending, frame)
        elif size > SMALL_BYTES and head.api_key != PRODUCE:
            self._meet_beside(pending, head, frame)
        else:
            try:
                request = codec.read_short_request(head, frame)
            except codec.LongMessageError:
                self._meet_beside(pending, head, frame)
            else:
                facts = facts_of(head, request, self._desk.name_of)
                self._meet(pending, frame, request, facts)

    # Rules.

    def _meet_beside(self, pending: Pending, head: RequestHead, frame: bytes) -> None:
        """Decode a large request beside the loop; the connection is held until it is met."""
        pending.is_long = True
        self._hold()
        self._wire.run(self._meet_later(pending, head, frame))

    async def _meet_later(self, pending: Pending, head: RequestHead, frame: bytes) -> None:
        def read() -> tuple[Any, Facts]:
            request = codec.read_request(head, frame)
            return request, facts_of(head, request, self._desk.name_of)

        self._meet(pending, frame, *await asyncio.to_thread(read))
        if self._waits_for is None and self._timer is None and not self._is_refusing:
            self.go_on()

    def _meet(self, pending: Pending, frame: bytes, request: Any, facts: Facts) -> None:
        """Apply the rule that meets the request, if there is one."""
        head = pending.head
        assert head is not None
        fault = self._login_fault(head, request)
        if fault is None:
            fault = self._desk.faults.first(facts)
        if fault is None:
            self._forward(pending, frame)
            return
        pending.fault = fault

        def act() -> None:
            self._act(pending, frame, request, fault)

        if fault.hold:
            self._keep(pending)
            self._wait_for_removal(fault, act)
        elif fault.delay_ms:
            self._keep(pending)
            self._timer = self._wire.later(fault.delay_ms / 1000, lambda: self._end_wait(act))
        else:
            act()

    def _keep(self, pending: Pending) -> None:
        """Hold the connection with this request."""
        self._hold()
        self.delayed_request = pending
        if self._desk.is_watched:
            self._desk.on_expect()

    def _wait_for_removal(self, fault: Fault, act: Any) -> None:
        def go_on() -> None:
            self._end_wait(act)

        self._waits_for = (fault, go_on)
        self._desk.wait(fault, go_on)

    def _end_wait(self, act: Any) -> None:
        self._timer = self._waits_for = self.delayed_request = None
        act()
        if not self._is_refusing:
            self.go_on()

    def _act(self, pending: Pending, frame: bytes, request: Any, fault: Fault) -> None:
        """Do what the rule says, after its wait."""
        if fault.login is not None:
            self._act_on_login(pending, frame, fault)
        elif fault.drop == "before":
            pending.ends = True
            self._expect(pending)
        elif fault.error is None or request is None or self._is_applied(fault, pending):
            self._forward(pending, frame)
        else:
            self._refuse(pending, frame, request, fault)

    @staticmethod
    def _is_applied(fault: Fault, pending: Pending) -> bool:
        assert pending.head is not None
        return fault.applied or pending.head.api_key == METADATA

    def _refuse(self, pending: Pending, frame: bytes, request: Any, fault: Fault) -> None:
        """Answer with the rule's error, for the whole request or for the places of the rule."""
        if pending.is_long:
            self._is_refusing = True
            self._hold()
            self._wire.run(self._refuse_later(pending, frame, request, fault))
        else:
            refused = refused_by(fault, pending, frame, request, self._desk.name_of)
            self._pass_rest(pending, refused)

    async def _refuse_later(
        self, pending: Pending, frame: bytes, request: Any, fault: Fault
    ) -> None:
        refused = await asyncio.to_thread(
            refused_by, fault, pending, frame, request, self._desk.name_of
        )
        self._is_refusing = False
        self._pass_rest(pending, refused)
        self.go_on()

    def _pass_rest(self, pending: Pending, refused: RefusedRequest) -> None:
        """Send what is not refused to Kafka; or answer here. An API without a place for an error,
        and a client that wants no answer: the connection ends.
        """
        if refused.frame is not None:
            pending.failed = refused.failed
            self._forward(pending, refused.frame)
            return
        pending.own_answer = refused.own_answer
        pending.ends = refused.own_answer is None
        self._expect(pending)

    # Logins.

    def _login_fault(self, head: RequestHead, request: Any) -> Fault | None:
        """Return the rule that meets the first token of a login, None for none."""
        if head.api_key == SASL_HANDSHAKE and request is not None:
            self._mechanism = request.mechanism
        if head.api_key != SASL_AUTHENTICATE or request is None or self._mechanism is None:
            return None
        mechanism, self._mechanism = self._mechanism, None
        self._login_mechanism = mechanism
        kinds = _LOGIN_KINDS.get(mechanism, _SCRAM_KINDS)
        return self._desk.faults.first_login(kinds, login_user(mechanism, request.auth_bytes))

    def _act_on_login(self, pending: Pending, frame: bytes, fault: Fault) -> None:
        head = pending.head
        assert head is not None
        if fault.login == "sasl_slow":
            self._forward(pending, frame)
        elif fault.login == "sasl_cut":
            pending.ends = True
            self._expect(pending)
        else:
            text = _WRONG_LOGIN.format(self._login_mechanism)
            if self._login_mechanism == "PLAIN":
                text = _WRONG_PLAIN
            _, response_class = load_messages(SASL_AUTHENTICATE)
            refused = response_class(
                error_code=int(ErrorCode.SASL_AUTHENTICATION_FAILED), error_message=text
            )
            pending.own_answer = codec.write_answer(head, pending.correlation_id, refused)
            pending.closes = True
            self._expect(pending)

    # The way on.

    def _forward(self, pending: Pending, frame: bytes) -> None:
        self._expect(pending)
        self._wire.to_kafka(frame)

    def _expect(self, pending: Pending) -> None:
        """Put a request into the order of answers."""
        head = pending.head
        if head is not None and not head.wants_answer and not pending.is_own:
            if pending.fault is None or pending.fault.drop is None:
                self._answers.note_unanswered(pending)
                return
            pending.ends = True
        self._answers.expect(pending)
        if len(self._answers.queue) >= PENDING_MAX:
            self._be_full()

    def _be_full(self) -> None:
        """Take no more requests until answers have come."""
        self._is_full = self.cutter.is_held = True
        self._answers.be_full()
        self._wire.read_client(is_on=False)

    def _hold(self) -> None:
        self._is_waiting = self.cutter.is_held = True
        self._wire.read_client(is_on=False)

    async def hold_when_idle(self) -> None:
        """Hold the connection, and wait until no request waits for its answer. `go_on` ends it."""
        while self._is_waiting:
            await self._answers.next_idle()
        self.watches_end = self.cutter.is_passing
        if not self.watches_end:
            self._hold()
        while self.watches_end or self._answers.is_busy:
            await self._answers.next_idle()

    def go_on(self) -> None:
        """Take requests again, those that wait here first."""
        self._is_waiting = False
        self._answers.tell_idle()
        if not self._is_full:
            self._resume()

    def make_room(self) -> None:
        """Take requests again, once this turn of the loop is over: answers have come."""
        self._wire.later(0, self._empty)

    def _empty(self) -> None:
        self._is_full = False
        if not (self._is_waiting or self._has_ended):
            self._resume()

    def _resume(self) -> None:
        self.cutter.resume()
        if not self.cutter.is_held:
            self._wire.read_client(is_on=True)

    def close(self) -> None:
        """Forget what waits, and show a request that a rule held."""
        self._has_ended = True
        if self.delayed_request is not None:
            self._answers.note_unanswered(self.delayed_request)
            self.delayed_request = None
        if self._timer is not None:
            self._timer.cancel()
        if self._waits_for is not None:
            self._desk.forget(*self._waits_for)
            self._waits_for = None
