"""`Desk`: the shared part of all connections of a proxy: rules, names of topics, onlookers.

    Link ─► Desk.note(Seen) ─► decoded if somebody looks on ─► RequestLog, printed lines, recording

Belongs to the loop. `proxy.KafkaProxy` makes the one desk of a proxy.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Final

from minibroker.clock import SystemClock
from minibroker.kafka.protocol.api_keys import METADATA, SASL_AUTHENTICATE, SASL_HANDSHAKE
from minibroker.rig.faults import FaultSet
from minibroker.trace.decode import Frames, decode
from minibroker.trace.subject import TopicNames, learn_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.kafka.protocol.message import Message
    from minibroker.proxy.heads import RequestHead
    from minibroker.rig.faults import Fault
    from minibroker.trace.exchange import Exchange

_LOGINS: Final = (SASL_HANDSHAKE, SASL_AUTHENTICATE)


class Desk:
    """The shared part of all connections of one proxy."""

    def __init__(self) -> None:
        self.faults = FaultSet()
        self.names: TopicNames = {}
        """Topic id → name, as far as answers of Metadata told it."""
        self.onlookers: list[Callable[[Exchange], None]] = []
        """Get each exchange. Without one no frame is decoded for its content."""
        self.on_event: Callable[[str], None] = lambda _: None
        """Gets a sentence about a connection: unreadable bytes, a broker that cannot be reached."""
        self.clock = SystemClock()
        self._numbers = itertools.count(1)
        self.connection_numbers = itertools.count(1)
        self._releases: dict[Fault, list[Callable[[], None]]] = {}
        """Rule → the calls that go on when it is removed."""

    @property
    def is_watched(self) -> bool:
        """Return whether somebody looks on."""
        return bool(self.onlookers)

    def may_meet(self, head: RequestHead) -> bool:
        """Return whether a rule may meet a request, as far as its head says."""
        return len(self.faults) > 0 and any(_may_meet(fault, head.api_key) for fault in self.faults)

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the topic of an id, None while no answer told it."""
        return self.names.get(topic_id)

    def learn(self, api_key: int, answer: Message) -> None:
        """Keep the names of topics in an answer of Metadata."""
        if api_key == METADATA:
            learn_names(answer, self.names)

    def wait(self, fault: Fault, go_on: Callable[[], None]) -> None:
        """Call `go_on` when the rule is removed."""
        self._releases.setdefault(fault, []).append(go_on)

    def forget(self, fault: Fault, go_on: Callable[[], None]) -> None:
        """Do not call it any more: its connection has ended."""
        waiting = self._releases.get(fault, [])
        if go_on in waiting:
            waiting.remove(go_on)

    def release(self, fault: Fault) -> None:
        """End a rule; what it holds goes on."""
        self.faults.discard(fault)
        for go_on in self._releases.pop(fault, ()):
            go_on()

    def note(self, frames: Frames, request_bytes: int, answer_bytes: int | None) -> None:
        """Show an exchange to the onlookers. The sizes are those before long frames were cut."""
        exchange = decode(frames._replace(number=next(self._numbers)), self.names)
        exchange = exchange._replace(request_bytes=request_bytes, answer_bytes=answer_bytes)
        for show in self.onlookers:
            show(exchange)


def _may_meet(fault: Fault, api_key: int) -> bool:
    if fault.login is not None:
        return api_key in _LOGINS
    if fault.broker is not None:
        return fault.hold
    return fault.concerns(api_key)
