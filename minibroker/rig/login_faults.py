"""Applies faults to logins: refused credentials, connections that end, handshakes that take long.

    TLS handshake, first token of SASL ─► LoginFaults.takes ─► a rule meets it? ─► cut · slow
    exchange of a mechanism            ─► FaultyExchange    ─► a rule meets it? ─► refused

A login is refused when it would have succeeded. So the client gets the answers of a real refusal,
in the same order: the mechanism itself fails, as `security/sasl` does for a wrong password. A
delegation token is refused behind its proof, where a token that has really ended is refused before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from minibroker.broker.security.sasl.exchange import CredentialsError, RefusedError
from minibroker.broker.server.interceptor import LoginStage

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.broker.security.sasl.exchange import SaslExchange
    from minibroker.broker.timers import Timer, Timers
    from minibroker.rig.faults import Fault, FaultSet

_KINDS: Final = {
    LoginStage.TLS: ("tls_cut", "tls_slow"),
    LoginStage.SASL: ("sasl_cut", "sasl_slow"),
}
_CUTS: Final = ("tls_cut", "sasl_cut")
_PLAIN: Final = "PLAIN"
_KERBEROS: Final = "GSSAPI"
_OAUTH: Final = "OAUTHBEARER"
_SKEW_MS: Final = 10**10
"""More than any clock skew that a JAAS line can allow."""


class LoginFaults:
    """The `LoginInterceptor` of one broker under test. Belongs to its loop."""

    __slots__ = ("_faults", "_timers", "_timers_by_fault")

    def __init__(self, faults: FaultSet, timers: Timers) -> None:
        """`timers`: of the broker, for what is delayed."""
        self._faults = faults
        """Constant, as is the next."""
        self._timers = timers
        self._timers_by_fault: dict[Fault, dict[Timer, Callable[[], None]]] = {}
        """Rule → the end of each delay → what lets its login go on."""

    def takes(
        self, stage: LoginStage, proceed: Callable[[], None], cut: Callable[[str], None]
    ) -> bool:
        """Do `LoginInterceptor.takes`."""
        fault = self._faults.first_login(_KINDS[stage])
        if fault is None:
            return False
        if fault.login in _CUTS:
            cut(f"{fault!r}")
            return True
        timers = self._timers_by_fault.setdefault(fault, {})

        def end() -> None:
            del timers[timer]
            proceed()

        timer = self._timers.after(fault.delay_ms, end)
        timers[timer] = proceed
        return True

    def exchange(self, mechanism: str, begin: Callable[[], SaslExchange]) -> SaslExchange:
        """Do `LoginInterceptor.exchange`; a ticket of Kerberos is no password and no token."""
        if mechanism == _KERBEROS:
            return begin()
        return FaultyExchange(mechanism, begin, self._faults.first_login)

    def release(self, fault: Fault) -> None:
        """Let the logins that a removed rule delays go on."""
        for timer, proceed in self._timers_by_fault.pop(fault, {}).items():
            timer.cancel()
            proceed()


class FaultyExchange:
    """An exchange that fails at its end where a rule says so. Belongs to the loop."""

    may_block = False

    __slots__ = (
        "_begin",
        "_first_login",
        "_inner",
        "_late_ms",
        "_mechanism",
        "expires_ms",
        "is_complete",
        "is_token",
        "name",
    )

    def __init__(
        self,
        mechanism: str,
        begin: Callable[[], SaslExchange],
        first_login: Callable[[tuple[str, ...], str], Fault | None],
    ) -> None:
        self._mechanism = mechanism
        self._begin = begin
        self._first_login = first_login
        self._inner = begin()
        self._late_ms = 0
        """How much later than now the exchange believes to be: it has met `expired_token`."""
        self.is_complete = False
        """As in the exchange behind this one, like the next three."""
        self.name = ""
        self.expires_ms: int | None = None
        self.is_token = False

    def respond(self, token: bytes, now_ms: int) -> bytes | None:
        """Do `SaslExchange.respond`, and fail as the rules say."""
        answer = self._respond(token, now_ms)
        inner = self._inner
        self.is_complete, self.is_token = inner.is_complete, inner.is_token
        self.name, self.expires_ms = inner.name, inner.expires_ms
        return answer

    def _respond(self, token: bytes, now_ms: int) -> bytes | None:
        answer = self._inner.respond(token, now_ms + self._late_ms)
        if not self._inner.is_complete:
            return answer
        if self._mechanism == _OAUTH:
            if self._first_login(("expired_token",), self._inner.name) is None:
                return answer
            self._late_ms = (self._inner.expires_ms or now_ms) - now_ms + _SKEW_MS
            self._inner = self._begin()
            return self._inner.respond(token, now_ms + self._late_ms)
        if self._inner.is_token:
            self._refuse("expired_token")
        self._refuse("wrong_password")
        return answer

    def _refuse(self, kind: str) -> None:
        """Raise what the mechanism raises for a wrong credential, if a rule meets this login."""
        fault = self._first_login((kind,), self._inner.name)
        if fault is None:
            return
        if self._mechanism == _PLAIN:
            raise RefusedError(
                "Authentication failed: Invalid username or password", f"refused by {fault!r}"
            )
        raise CredentialsError(f"refused by {fault!r}")
