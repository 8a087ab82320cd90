"""A classic group without a broker: commands in, answers, records and timers out.

| command                                                       | what it is                      |
|---------------------------------------------------------------|---------------------------------|
| settings delay=MS max=N                                       | of the broker, before the rest  |
| join WHO [id=…] [instance=…] [protocols=a:meta,b] [v4] [skip] | JoinGroup                       |
|      … [session=MS] [rebalance=MS] [type=…]                   | its time-outs, its type         |
| sync WHO id=… gen=N [assign=ID:SHARE,…] [instance=…]          | SyncGroup, also protocol=, type= |
| heartbeat WHO id=… gen=N [instance=…]                         | Heartbeat                       |
| leave [ID …] [with=NAME] [instance=NAME]                      | LeaveGroup of several           |
| commit WHO [id=…] [gen=N] [instance=…]                        | what an OffsetCommit would hear |
| advance MS                                                    | time goes by                    |
| fail ERROR                                                    | the next record is not stored   |
| reload                                                        | as after a restart              |
| unload                                                        | another broker leads it now     |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from minibroker.broker.groups.classic.events import Step
from minibroker.broker.groups.classic.group import ClassicGroup
from minibroker.broker.groups.classic.group_value import group_of
from minibroker.broker.groups.classic.joins import on_join
from minibroker.broker.groups.classic.rebalance import on_join_timer, on_sync_timer
from minibroker.broker.groups.classic.sessions import (
    on_heartbeat,
    on_leave,
    on_loaded,
    on_session_timer,
    on_unloaded,
)
from minibroker.broker.groups.classic.syncing import on_sync
from minibroker.broker.groups.member_requests import Departure, Join, JoinAnswer, Sync, SyncAnswer
from minibroker.broker.groups.steps import ClassicSettings, StartTimer, TimerKind
from minibroker.kafka.error_codes import ERROR_CODES, ErrorCode
from minibroker.kafka.errors import KafkaError
from minibroker.kafka.protocol.stored.group_metadata import GroupMetadataValue
from tests.scenario.transcripts import words_of

if TYPE_CHECKING:
    from collections.abc import Callable

START_MS = 1_000_000
SESSION_MS = 10_000
REBALANCE_MS = 60_000
VALUE_VERSION = 3


class Waiter:
    """The receiver of an answer: a name in the transcript."""

    def __init__(self, name: str, rig: ClassicRig) -> None:
        self.name = name
        self.rig = rig
        self.answers: list[Any] = []

    def __call__(self, answer: JoinAnswer | SyncAnswer) -> None:
        assert not self.answers, f"{self.name} is answered twice"
        self.answers.append(answer)
        self.rig.note_answer(self, answer)


class ClassicRig:
    """One group, its clock, its timers and the last record of it."""

    def __init__(self) -> None:
        self.settings = ClassicSettings(0, 100, 1, 1_000_000)
        self.now_ms = START_MS
        self.group = ClassicGroup("g", self.now_ms)
        self.stored: bytes | None = None
        self.failure: ErrorCode | None = None
        self.timers: dict[tuple[TimerKind, str], int] = {}
        self.waiting: list[Waiter] = []
        self.lines: list[str] = []
        self._ids: dict[str, int] = {}

    # The transcript.

    def play(self, command: str) -> list[str]:
        """Run one command; return its output, and the state if it changed."""
        words, options = words_of(command)
        old_line = self.state_line()
        self.lines = []
        handler: Callable[[list[str], dict[str, str]], None] = getattr(self, f"on_{words[0]}")
        handler(words[1:], options)
        after = self.state_line()
        if after != old_line:
            self.lines.append(after)
        return self.lines

    def state_line(self) -> str:
        """Return the group in one line."""
        group = self.group
        parts = [f"= {group.state_name}", f"generation={group.generation_id}"]
        if group.members:
            parts.append(f"leader={group.leader_id}")
            marks = (
                name + ("" if member.instance_id is None else f"({member.instance_id})")
                for name, member in group.members.items()
            )
            parts.append(f"members={','.join(marks)}")
        if group.pending_join:
            parts.append(f"invited={','.join(group.pending_join)}")
        return " ".join(parts)

    def note_answer(self, waiter: Waiter, answer: JoinAnswer | SyncAnswer) -> None:
        """Record an answer."""
        self.waiting.remove(waiter)
        parts = [f"{waiter.name}:"]
        if isinstance(answer, JoinAnswer):
            if answer.error is not ErrorCode.NONE:
                parts += [
                    answer.error.name,
                    *([f"id={answer.member_id}"] if answer.member_id else []),
                ]
            else:
                parts += [
                    f"joined generation={answer.generation_id} id={answer.member_id}",
                    f"leader={answer.leader_id} protocol={answer.protocol_name}",
                ]
                if answer.skip_assignment:
                    parts.append("skip")
                if answer.members:
                    everybody = ",".join(f"{m}:{data.decode()}" for m, _, data in answer.members)
                    parts.append(f"members={everybody}")
        elif answer.error is not ErrorCode.NONE:
            parts.append(answer.error.name)
        else:
            parts.append(f"share={answer.assignment.decode() or 'nothing'}")
        self.lines.append(" ".join(parts))

    # Commands.

    def on_settings(self, words: list[str], options: dict[str, str]) -> None:
        self.settings = self.settings._replace(
            initial_rebalance_delay_ms=int(options.get("delay", 0)),
            max_size=int(options.get("max", 100)),
        )

    def on_join(self, words: list[str], options: dict[str, str]) -> None:
        protocols = []
        for entry in options.get("protocols", "range").split(","):
            name, _, metadata = entry.partition(":")
            protocols.append((name, metadata.encode()))
        self.join(
            words[0],
            Join(
                options.get("id", ""),
                options.get("instance"),
                words[0],
                "/127.0.0.1",
                options.get("type", "consumer"),
                tuple(protocols),
                int(options.get("session", SESSION_MS)),
                int(options.get("rebalance", REBALANCE_MS)),
                "v4" in words or "skip" in words,
                "skip" in words,
            ),
        )

    def on_sync(self, words: list[str], options: dict[str, str]) -> None:
        shares = dict(e.split(":") for e in options.get("assign", "").split(",") if e)
        sync = Sync(
            options["id"],
            options.get("instance"),
            int(options["gen"]),
            options.get("type"),
            options.get("protocol"),
            {member: share.encode() for member, share in shares.items()},
        )
        self.sync(words[0], sync)

    def on_heartbeat(self, words: list[str], options: dict[str, str]) -> None:
        code = self.heartbeat(options["id"], options.get("instance"), int(options["gen"]))
        self.lines.append(f"{words[0]}: {code.name}")

    def on_leave(self, words: list[str], options: dict[str, str]) -> None:
        leaving = [Departure(word, options.get("with")) for word in words]
        if "instance" in options:
            leaving.append(Departure("", options["instance"]))
        codes = self.leave(leaving)
        self.lines.insert(0, " ".join(code.name for code in codes))

    def on_commit(self, words: list[str], options: dict[str, str]) -> None:
        try:
            self.group.validate_offset_commit(
                options.get("id", ""),
                options.get("instance"),
                int(options.get("gen", -1)),
                is_transactional="transactional" in words,
                version=9,
            )
        except KafkaError as error:
            self.lines.append(f"{words[0]}: {error.code.name}")
        else:
            self.lines.append(f"{words[0]}: committed")

    def on_advance(self, words: list[str], options: dict[str, str]) -> None:
        self.advance(int(words[0]))

    def on_fail(self, words: list[str], options: dict[str, str]) -> None:
        self.failure = ERROR_CODES[words[0]]

    def on_reload(self, words: list[str], options: dict[str, str]) -> None:
        self.reload()

    def on_unload(self, words: list[str], options: dict[str, str]) -> None:
        step = self._step()
        on_unloaded(self.group, step, ErrorCode.NOT_COORDINATOR)
        self._carry_out(step)

    # Steps, also for the property tests.

    def join(self, name: str, join: Join) -> Waiter:
        """Send a JoinGroup request."""
        waiter = self._waiter(name)
        step = self._step()
        on_join(self.group, step, join, waiter)
        self._carry_out(step)
        return waiter

    def sync(self, name: str, sync: Sync) -> Waiter:
        """Send a SyncGroup request."""
        waiter = self._waiter(name)
        step = self._step()
        on_sync(self.group, step, sync, waiter)
        self._carry_out(step)
        return waiter

    def heartbeat(self, member_id: str, instance_id: str | None, generation: int) -> ErrorCode:
        """Send a Heartbeat request."""
        step = self._step()
        code = on_heartbeat(self.group, step, member_id, instance_id, generation)
        self._carry_out(step)
        return code

    def leave(self, leaving: list[Departure]) -> list[ErrorCode]:
        """Send a LeaveGroup request."""
        step = self._step()
        codes = on_leave(self.group, step, leaving)
        self._carry_out(step)
        return codes

    def advance(self, elapsed_ms: int) -> None:
        """Advance the clock; timers fire in order."""
        end_ms = self.now_ms + elapsed_ms
        while self.timers:
            (kind, member_id), at_ms = min(self.timers.items(), key=lambda item: item[1])
            if at_ms > end_ms:
                break
            self.now_ms = max(self.now_ms, at_ms)
            del self.timers[kind, member_id]
            self.lines.append(f"timer: {kind.value} {member_id}".rstrip())
            step = self._step()
            if kind is TimerKind.SESSION:
                on_session_timer(self.group, step, member_id)
            elif kind is TimerKind.JOIN:
                on_join_timer(self.group, step)
            else:
                on_sync_timer(self.group, step)
            self._carry_out(step)
        self.now_ms = end_ms

    def reload(self) -> None:
        """Restart the broker after a kill: no request waits any more."""
        self.timers.clear()
        self.waiting.clear()
        if self.stored is None:
            self.group = ClassicGroup("g", self.now_ms)
        else:
            self.group = group_of("g", GroupMetadataValue.from_bytes(self.stored))
        step = self._step()
        on_loaded(self.group, step)
        self._carry_out(step)

    def _waiter(self, name: str) -> Waiter:
        waiter = Waiter(name, self)
        self.waiting.append(waiter)
        return waiter

    def _new_id(self, name: str) -> str:
        self._ids[name] = self._ids.get(name, 0) + 1
        return f"{name}-{self._ids[name]}"

    def _step(self) -> Step:
        return Step(self.now_ms, self.settings, self._new_id)

    def _carry_out(self, step: Step) -> None:
        for timer in step.timers:
            if isinstance(timer, StartTimer):
                self.timers[timer.kind, timer.member_id] = self.now_ms + timer.delay_ms
            else:
                self.timers.pop((timer.kind, timer.member_id), None)
        for waiter, answer in step.answers:
            waiter(answer)
        for store in step.stores:
            self._store(store.value, store.done)

    def _store(self, value: GroupMetadataValue, done: Any) -> None:
        error, self.failure = self.failure, None
        members = " ".join(f"{m.member_id}:{m.assignment.decode()}" for m in value.members)
        outcome = "stored" if error is None else f"not stored ({error.name})"
        self.lines.append(f"{outcome}: generation={value.generation} {members or 'nobody'}")
        if error is None:
            self.stored = value.to_bytes(VALUE_VERSION)
        after = self._step()
        done(after, error)
        self._carry_out(after)
