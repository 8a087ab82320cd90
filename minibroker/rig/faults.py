"""Rules for faults: which requests a rule meets, how often, and what it does to them or to the
broker.

A rule is pure: `Fault.meets` looks at a request's facts and counts; `fault_interceptor` applies the
rule. Rules are tried in the order in which they were added; the first that meets a request applies.

    broker.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", topic="orders", times=2)
    with broker.faults.add("Fetch", delay_ms=500, client_id="slow"):
        ...
    with broker.faults.add(broker="disk_full"):
        ...
    broker.faults.add(login="wrong_password", times=2)
"""

from __future__ import annotations

import asyncio
import random
import threading
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self, get_args

from minibroker.kafka.error_codes import ERROR_CODES, ErrorCode
from minibroker.kafka.protocol.api_keys import (
    APIS,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC_PARTITIONS,
    FIND_COORDINATOR,
    METADATA,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from minibroker.kafka.protocol.api_keys import Api
    from minibroker.rig.names import ApiName, ErrorName

Drop = Literal["before", "after"]
BrokerFault = Literal[
    "disk_full",
    "slow_sync",
    "paused",
    "killed",
    "zookeeper_session_lost",
    "cut_off",
    "slow_follower",
    "stale_metadata",
]
LoginFault = Literal[
    "wrong_password",
    "expired_token",
    "sasl_cut",
    "sasl_slow",
    "tls_cut",
    "tls_slow",
]
BROKER_FAULTS: Final = get_args(BrokerFault)
LOGIN_FAULTS: Final = get_args(LoginFault)
LEAST: Final = {
    "delay_ms": 0,
    "truncate_bytes": 0,
    "bytes_per_s": 1,
    "partition": 0,
    "version": 0,
    "skip": 0,
    "times": 1,
    "peer": 0,
}
"""Argument → the least value that means something."""
DELAY_MS_MAX: Final = 365 * 86_400_000
"""A year."""
STALE_APIS: Final = (METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS)
"""Keys of the APIs that tell where to find something."""
_COUNTING: Final = ("cut_off", "slow_follower", "stale_metadata")
"""Faults of the broker that count what they meet, so a test fails if that is nothing."""
_DELAYING: Final = ("slow_sync", "slow_follower", "sasl_slow", "tls_slow")
_OF_USERS: Final = ("wrong_password", "expired_token")
"""Faults of logins that strike when the user is known."""
_TO_OTHERS: Final = ("cut_off", "slow_follower")
_OF_REQUESTS: Final = (
    "api",
    "error",
    "drop",
    "twice",
    "truncate_bytes",
    "bytes_per_s",
    "hold",
    "topic",
    "partition",
    "group",
    "client_id",
    "version",
)
_OF_CHOICES: Final = ("skip", "times")
"""Arguments of requests and logins, which a fault of the whole broker does not have."""
_APPLIED: Final = frozenset(
    {ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND}
)
"""Errors that a broker also answers when the work is done, or may be."""


class Facts(NamedTuple):
    """Facts of a request that a rule can ask about."""

    api_key: int
    version: int
    client_id: str | None
    group: str | None
    places: frozenset[tuple[str, int | None]]
    """(topic, partition) of every place that it names; a partition of None is the whole topic."""


class Fault:
    """One rule.

    `hits` counts the requests that it met; `remove` or the end of a `with` block ends it.

    Args:
        api: Kafka's name of the request, None: every one.
        error: Kafka's name of the error to answer.
        delay_ms: delay of the answer, by the broker's clock.
        drop: `"before"` the request is handled, or `"after"`: the connection ends unanswered.
        twice: the answer is sent two times.
        truncate_bytes: number of bytes of the answer to send before the connection ends.
        bytes_per_s: the answer's bytes come so slowly; only in a proxy (`minibroker proxy`).
        hold: the connection is not read until the rule is removed.
        applied: with `error`: the request is handled anyway; None: as a broker would for
            this error (REQUEST_TIMED_OUT and NOT_ENOUGH_REPLICAS_AFTER_APPEND come after the work).
        topic: a topic that the request must name.
        partition: a partition that it must name.
        group: the group that it must name.
        client_id: the client id that it must come from.
        version: the version that it must have.
        skip: number of matching requests that pass first.
        times: most requests that it applies to, None: all.
        probability: chance of each matching request, 0 to 1.
        seed: seed of that chance: the same seed meets the same requests.
        broker: a fault of the broker, not of requests: `"disk_full"` until the rule is
            removed, `"slow_sync"` (every fsync takes `delay_ms` longer, by the machine's clock),
            `"paused"` (it accepts connections and does nothing), `"killed"` (as by kill -9; started
            again at the same address with the same data when the rule is removed),
            `"zookeeper_session_lost"` (once). For one of several brokers: `"cut_off"` (its requests
            to another broker fail), `"slow_follower"` (as a follower it fetches `delay_ms` later,
            by the broker's clock), `"stale_metadata"` (it tells clients the topics, leaders and
            brokers of the moment when the rule was added; it leads and follows as usual).
        peer: with `cut_off` and `slow_follower`: id of the other broker, None: all of them.
        login: a fault of logins: `"wrong_password"` (a login by PLAIN or SCRAM is refused as for a
            wrong password, whatever the password is), `"expired_token"` (a login by OAUTHBEARER or
            by a delegation token is refused as for a token that has ended), `"sasl_cut"` (the
            connection ends at the first token of the mechanism), `"sasl_slow"` (the answer to that
            token comes `delay_ms` later, by the broker's clock), `"tls_cut"`, `"tls_slow"` (the
            same for the first bytes of a TLS handshake). `skip`, `times` and `probability` count
            logins; a session that is renewed is one, too. Only clients that connect or renew
            their session after the rule was added meet it.
        user: with `wrong_password` and `expired_token`: the user that it must be.
        may_miss: a test with the pytest fixtures does not fail if the rule never met a request.
    """

    def __init__(
        self,
        api: ApiName | None = None,
        *,
        error: ErrorName | ErrorCode | None = None,
        delay_ms: float = 0,
        drop: Drop | None = None,
        twice: bool = False,
        truncate_bytes: int | None = None,
        bytes_per_s: int | None = None,
        hold: bool = False,
        applied: bool | None = None,
        topic: str | None = None,
        partition: int | None = None,
        group: str | None = None,
        client_id: str | None = None,
        version: int | None = None,
        skip: int = 0,
        times: int | None = None,
        probability: float = 1.0,
        seed: int = 0,
        broker: BrokerFault | None = None,
        peer: int | None = None,
        login: LoginFault | None = None,
        user: str | None = None,
        may_miss: bool = False,
    ) -> None:
        self.api = api
        self._api_key = None if api is None else api_named(api).key
        self.error = None if error is None else error_named(error)
        self.delay_ms = delay_ms
        self.drop = _one_of("drop", drop, get_args(Drop))
        self.twice = twice
        self.truncate_bytes = truncate_bytes
        self.bytes_per_s = bytes_per_s
        self.hold = hold
        self.applied = self.error in _APPLIED if applied is None else applied
        self.topic = topic
        self.partition = partition
        self.group = group
        self.client_id = client_id
        self.version = version
        self.skip = skip
        self.times = times
        self.probability = probability
        self._random = random.Random(seed)
        self.hits = 0
        """Number of requests that it met and applied to."""
        self._met = threading.Condition()
        self._passed = 0
        self.is_removed = False
        self.holders = 0
        """Brokers, or proxies, that have the rule now."""
        self.on_removed: Callable[[Fault], None] | None = None
        self.broker = _one_of("broker", broker, BROKER_FAULTS)
        self.peer = peer
        self.login = _one_of("login", login, LOGIN_FAULTS)
        self.user = user
        self.may_miss = may_miss
        self.links: Collection[tuple[int, int]] = ()
        """With `cut_off`: (sender, receiver) of what fails; empty: as `peer` says."""
        self._check()
        if broker is not None:
            self.hold = broker == "paused"

    def _check(self) -> None:
        """Raise ValueError for arguments that do not go together."""
        if self.peer is not None and self.broker not in _TO_OTHERS:
            others = " and broker=".join(_TO_OTHERS)
            raise ValueError(f"peer {self.peer}: only broker={others} have one")
        for name, least in LEAST.items():
            value = getattr(self, name)
            if value is not None and not least <= value:
                raise ValueError(f"{name} {value}, expected {least} or more")
        if self.delay_ms > DELAY_MS_MAX:
            raise ValueError(f"delay_ms {self.delay_ms}, expected at most {DELAY_MS_MAX}, a year")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"probability {self.probability}, expected 0 to 1")
        if self.user is not None and self.login not in _OF_USERS:
            logins = " and login=".join(_OF_USERS)
            raise ValueError(f"user {self.user}: only login={logins} have one")
        if self.broker is not None:
            self._check_other_fault("broker", self.broker, (*_OF_REQUESTS, *_OF_CHOICES, "login"))
        elif self.login is not None:
            self._check_other_fault("login", self.login, _OF_REQUESTS)
        elif not self._has_effect:
            raise ValueError(
                "a fault needs an effect: error, delay_ms, drop, twice, truncate_bytes, "
                "bytes_per_s or hold"
            )

    @property
    def _has_effect(self) -> bool:
        """Return whether a rule for requests does something to those that it meets."""
        changes_answer = self.error is not None or self.truncate_bytes is not None
        changes_answer = changes_answer or self.bytes_per_s is not None
        return bool(changes_answer or self.delay_ms or self.drop or self.twice or self.hold)

    def _check_other_fault(self, kind: str, value: str, refused: tuple[str, ...]) -> None:
        """Check a fault of the whole broker, or of logins.

        Raises ValueError for arguments in `refused`, which are about requests.
        """
        for name in refused:
            if getattr(self, name) not in (None, False, 0):
                raise ValueError(f"{name} is for requests: leave it out with {kind}={value}")
        if (value in _DELAYING) != (self.delay_ms > 0):
            kinds = BROKER_FAULTS if kind == "broker" else LOGIN_FAULTS
            delaying = f" and {kind}=".join(name for name in _DELAYING if name in kinds)
            raise ValueError(
                f"delay_ms {self.delay_ms:g}: {kind}={delaying} need one, the others have none"
            )

    @property
    def effect(self) -> str:
        """Return what it does to whatever it meets: `error NOT_CONTROLLER`, `delay 50 ms`."""
        kind = self.broker or self.login
        if kind is not None:
            delay = f", delay {self.delay_ms:g} ms" if self.delay_ms else ""
            return f"{str(kind).replace('_', ' ')}{delay}"
        parts = []
        if self.hold:
            parts.append("held")
        if self.delay_ms:
            parts.append(f"delay {self.delay_ms:g} ms")
        if self.drop:
            parts.append(f"dropped {self.drop} it was handled")
        if self.error is not None:
            parts.append(f"error {self.error.name}{', and handled' if self.applied else ''}")
        if self.twice:
            parts.append("answer sent twice")
        if self.truncate_bytes is not None:
            parts.append(f"answer cut after {self.truncate_bytes} bytes")
        if self.bytes_per_s is not None:
            parts.append(f"answer at {self.bytes_per_s} bytes/s")
        return ", ".join(parts)

    def __repr__(self) -> str:
        if self.login is not None:
            return f"Fault(login={self.login!r}, {self.hits} hits)"
        if self.broker is not None:
            hits = f", {self.hits} hits" if self.counts else ""
            return f"Fault(broker={self.broker!r}{hits})"
        return f"Fault({self.api or 'any request'}, {self.hits} hits)"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()

    def remove(self) -> None:
        """End the rule; held requests go on."""
        if not self.is_removed:
            self.is_removed = True
            if self.on_removed is not None:
                self.on_removed(self)

    def wait(self, hits: int = 1, timeout_s: float = 10.0) -> None:
        """Wait until it has met `hits` requests.

        Raises TimeoutError; RuntimeError in a running event loop, which needs `wait_async`.
        """
        refuse_in_loop("wait")
        self._wait(hits, timeout_s)

    async def wait_async(self, hits: int = 1, timeout_s: float = 10.0) -> None:
        """Wait like `wait`, for a test that runs in a loop."""
        await asyncio.to_thread(self._wait, hits, timeout_s)

    def _wait(self, hits: int, timeout_s: float) -> None:
        with self._met:
            if not self._met.wait_for(lambda: self.hits >= hits, timeout_s):
                raise TimeoutError(f"waited {timeout_s:g} s for {hits} requests that meet {self!r}")

    @property
    def counts(self) -> bool:
        """Return whether `hits` says how often it acted; the other faults of a broker always do."""
        return self.broker is None or self.broker in _COUNTING

    def blocks(self, sender: int, receiver: int) -> bool:
        """Return whether it concerns what one broker sends to another one."""
        if self.links:
            return (sender, receiver) in self.links
        return self.peer in (None, receiver)

    def count(self) -> None:
        """Count a hit, and wake those that wait for it."""
        with self._met:
            self.hits += 1
            self._met.notify_all()

    @property
    def alters_bytes(self) -> bool:
        """Return whether the answer's bytes change on their way out."""
        return self.twice or self.truncate_bytes is not None

    def concerns(self, api_key: int) -> bool:
        """Return whether requests of an API may meet it."""
        return self._api_key in (None, api_key)

    def covers(self, topic: str, partition: int | None) -> bool:
        """Return whether a place in a request is one of the rule's; a rule without one covers every
        place.
        """
        if self.topic is not None and topic != self.topic:
            return False
        return self.partition is None or partition is None or partition == self.partition

    def meets(self, facts: Facts) -> bool:
        """Return whether the rule meets this request, and count it."""
        if self.login is not None:
            return False
        if self.broker == "stale_metadata":
            if facts.api_key not in STALE_APIS:
                return False
        elif self.broker is not None and not self.hold:
            return False
        return not self._is_over and self._fits(facts) and self._strikes()

    def meets_login(self, kinds: Collection[str], user: str | None = None) -> bool:
        """Return whether the rule is one of these faults of logins and meets this one, and count
        it. `user`: None where it is not known yet.
        """
        if self.login not in kinds or self._is_over or self.user not in (None, user):
            return False
        return self._strikes()

    @property
    def _is_over(self) -> bool:
        return self.is_removed or (self.times is not None and self.hits >= self.times)

    def _strikes(self) -> bool:
        """Return whether it applies to what fits it, by number and by chance; count a hit."""
        if self._passed < self.skip:
            self._passed += 1
            return False
        if self.probability < 1 and self._random.random() >= self.probability:
            return False
        self.count()
        return True

    def _fits(self, facts: Facts) -> bool:
        fields = (
            (self._api_key, facts.api_key),
            (self.version, facts.version),
            (self.client_id, facts.client_id),
            (self.group, facts.group),
        )
        if any(wish is not None and wish != actual for wish, actual in fields):
            return False
        if self.topic is None and self.partition is None:
            return True
        return any(self.covers(*place) for place in facts.places)


class FaultSet:
    """The rules of one broker. Belongs to its loop."""

    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self.is_empty = True
        """True while there is no rule."""

    def __iter__(self) -> Iterator[Fault]:
        return iter(list(self._rules))

    def __len__(self) -> int:
        return len(self._rules)

    def add(self, fault: Fault) -> None:
        """Add a rule at the end, or at the front if it pauses the broker: then no other matters."""
        self._rules.insert(0 if fault.broker == "paused" else len(self._rules), fault)
        self.is_empty = False
        fault.holders += 1

    def discard(self, fault: Fault) -> None:
        """Remove a rule; do nothing if it is not there."""
        if fault in self._rules:
            self._rules.remove(fault)
            self.is_empty = not self._rules
            fault.holders -= 1

    def first(self, facts: Facts) -> Fault | None:
        """Return the rule that meets this request, None to handle it as usual."""
        for fault in self._rules:
            if fault.meets(facts):
                return fault
        return None

    def first_login(self, kinds: Collection[str], user: str | None = None) -> Fault | None:
        """Return the rule of one of these kinds that meets a login, None to let it go on."""
        for fault in self._rules:
            if fault.meets_login(kinds, user):
                return fault
        return None


def api_named(name: str) -> Api:
    """Return the API of this name, in upper or lower case.

    Raises ValueError, which names the nearest one if any is near.
    """
    for api in APIS.values():
        if api.name.lower() == name.lower():
            return api
    hint = _hint(name, (api.name for api in APIS.values()), "Produce")
    raise ValueError(f"api {name!r} is not a request of Kafka's: {hint}")


def error_named(error: str | ErrorCode) -> ErrorCode:
    """Return the error of this name. Raises ValueError, as `api_named`."""
    if isinstance(error, ErrorCode):
        return error
    try:
        return ERROR_CODES[error]
    except KeyError:
        hint = _hint(error, ERROR_CODES, "NOT_LEADER_OR_FOLLOWER")
        raise ValueError(f"error {error!r} is not one of Kafka's: {hint}") from None


def _hint(name: str, names: Iterable[str], example: str) -> str:
    """Return `did you mean Produce?` for a name that is near, else what a name looks like."""
    from difflib import get_close_matches  # noqa: PLC0415  only where a name is wrong

    by_lower = {each.lower(): each for each in names}
    matches = get_close_matches(name.lower(), by_lower, 1)
    if not matches:
        return f"expected a name of Kafka's protocol, such as {example}"
    return f"did you mean {by_lower[matches[0]]}?"


def refuse_in_loop(call: str) -> None:
    """Raise RuntimeError where a call that blocks would stop the caller's own event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError(
        f"{call} would stop this event loop, and the clients in it: use `await {call}_async(…)`"
    )


def _one_of(name: str, value: Any, allowed: tuple[str, ...]) -> Any:
    if value is not None and value not in allowed:
        raise ValueError(f"{name} {value!r}, expected one of {', '.join(allowed)}")
    return value
