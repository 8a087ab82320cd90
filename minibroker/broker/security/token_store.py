"""Delegation tokens in the tree, and those that this broker knows: for requests and for logins.

A broker writes the node of a token, takes it in, and announces it. Every broker then reads that
token again. The controller removes tokens whose time is over, every
`delegation.token.expiry.check.interval.ms`; they let nobody in before that either.

Source: Kafka DelegationTokenManagerZk, DelegationTokenCache, KafkaController (expireTokens).
Differs from Kafka: a login with an expired token fails; Kafka lets it in and closes the connection
with its first request. A token whose owner is no `User` lets nobody in. A new controller looks for
expired tokens after the interval, not at once.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from minibroker.broker.cluster.announcements import AnnouncementFollower, announcement_of
from minibroker.broker.cluster.tree import Create, Delete, NoNode, Set, TreeError, ensure_node
from minibroker.broker.security import token_nodes as nodes
from minibroker.broker.security.sasl.scram import Login
from minibroker.broker.security.tokens import (
    USER_PREFIX,
    Lifetimes,
    Token,
    expire,
    hmac_of,
    new_token,
    renew,
)
from minibroker.kafka.error_codes import ErrorCode
from minibroker.kafka.errors import CoordinationError, KafkaError
from minibroker.kafka.scram import (
    ITERATIONS_MIN,
    MECHANISMS,
    SALT_BYTES,
    ScramCredential,
    credential,
    credential_of,
    salted_password,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable, Sequence

    from minibroker.broker.cluster.announcements import Announcement
    from minibroker.broker.cluster.tree import Operation, Tree
    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.timers import Timer, Timers
    from minibroker.clock import Clock

logger = logging.getLogger(__name__)

_ID_BYTES: Final = 16


class TokenSettings(NamedTuple):
    """The settings `delegation.token.…`."""

    secret: bytes
    lifetimes: Lifetimes
    check_interval_ms: int

    def __repr__(self) -> str:
        """Return a text without the secret: it may come into a log."""
        return f"TokenSettings({self.lifetimes}, {self.check_interval_ms})"


class KnownToken(NamedTuple):
    """A token with its secret half, and what logins by it are compared with."""

    token: Token
    hmac: bytes
    credentials: dict[str, ScramCredential]
    """Mechanism → credential."""

    def __repr__(self) -> str:
        """Return a text without the HMAC: it may come into a log."""
        return f"KnownToken({self.token})"


def settings_of(config: BrokerConfig) -> TokenSettings | None:
    """Return the settings, None where no secret is set: there are no tokens then."""
    secret = config.text("delegation.token.secret.key")
    if secret is None:
        secret = config.text("delegation.token.master.key")
    if not secret:
        return None
    lifetimes = Lifetimes(
        config.integer("delegation.token.max.lifetime.ms"),
        config.integer("delegation.token.expiry.time.ms"),
    )
    interval_ms = config.integer("delegation.token.expiry.check.interval.ms")
    return TokenSettings(secret.encode(), lifetimes, interval_ms)


class TokenStore:
    """The tokens of the cluster. Belongs to the loop."""

    def __init__(
        self,
        settings: TokenSettings,
        tree: Tree,
        clock: Clock,
        timers: Timers,
        is_controller: Callable[[], bool],
    ) -> None:
        self._settings = settings
        self._tree = tree
        self._clock = clock
        self._timers = timers
        self._is_controller = is_controller
        self._tokens: dict[str, KnownToken] = {}
        """Id → token."""
        self._ids: dict[bytes, str] = {}
        """HMAC → id."""
        self._lock = asyncio.Lock()
        """Held while nodes are read or written, so that an older value never comes last."""
        self._follower = AnnouncementFollower(
            tree,
            clock,
            (nodes.CHANGES,),
            read=self._read_announced,
            read_all=self._read_all,
            log=logger,
        )
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: Timer | None = None
        self._is_closed = False

    # Life

    async def start(self) -> None:
        """Make the nodes that are missing, read every token, follow changes until `close`.

        Raises CoordinationError.
        """
        for path in (nodes.TOKENS, nodes.CHANGES):
            await ensure_node(self._tree, path)
        await self._follower.start()
        await self._read_all()
        self._sweep_due()

    async def close(self) -> None:
        """Stop following and sweeping."""
        self._is_closed = True
        await self._follower.close()
        if self._timer is not None:
            self._timer.cancel()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _run_beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # Questions

    def all(self) -> list[KnownToken]:
        """Return every token, expired ones that were not removed yet included."""
        return list(self._tokens.values())

    def login(self, mechanism: str, token_id: str) -> Login | None:
        """Return the login of a token, None where it lets nobody in."""
        entry = self._tokens.get(token_id)
        if entry is None:
            return None
        token = entry.token
        if token.is_expired(self._clock.now_ms()) or not token.owner.startswith(USER_PREFIX):
            return None
        ends_ms = min(token.expires_ms, token.max_ms)
        name = token.owner.removeprefix(USER_PREFIX)
        return Login(name, entry.credentials[mechanism], ends_ms)

    # Changes by this broker. A failure of the tree raises CoordinationError or TreeError.

    async def create(
        self, owner: str, requester: str, renewers: Sequence[str], max_lifetime_ms: int
    ) -> KnownToken:
        """Make a token. Raises KafkaError for one with too many renewers for a node."""
        token = new_token(
            _new_id(),
            owner,
            requester,
            renewers,
            max_lifetime_ms=max_lifetime_ms,
            lifetimes=self._settings.lifetimes,
            now_ms=self._clock.now_ms(),
        )
        # Beside the loop, as `decode`: a token may have very many renewers.
        value = await asyncio.to_thread(nodes.encode, token)
        if len(value) > nodes.BYTES_MAX:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        async with self._lock:
            await self._change(token.id, Create(nodes.path_of(token.id), value))
            await self._take_in((token,))
        logger.info("created delegation token %s of %s", token.id, owner)
        return self._known_now(token)

    async def renew(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Give a token a later end; return it. Raises KafkaError."""
        async with self._lock:
            token = renew(
                self._find(hmac),
                principal,
                period_ms,
                lifetimes=self._settings.lifetimes,
                now_ms=self._clock.now_ms(),
            )
            await self._write(token)
        logger.info("renewed delegation token %s of %s", token.id, token.owner)
        return token.expires_ms

    async def expire(self, principal: str, hmac: bytes, period_ms: int) -> int:
        """Give a token another end, or remove it; return its end. Raises KafkaError."""
        async with self._lock:
            now_ms = self._clock.now_ms()
            old = self._find(hmac)
            token = expire(old, principal, period_ms, now_ms=now_ms)
            if token is None:
                await self._remove(old)
                return now_ms
            await self._write(token)
        logger.info("changed the end of delegation token %s of %s", token.id, token.owner)
        return token.expires_ms

    def _find(self, hmac: bytes) -> Token:
        """Return the token with this HMAC. Raises KafkaError."""
        token_id = self._ids.get(hmac)
        if token_id is None:
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
        return self._tokens[token_id].token

    async def _write(self, token: Token) -> None:
        """Write a token that stands already. Call it with the lock."""
        path = nodes.path_of(token.id)
        value = await asyncio.to_thread(nodes.encode, token)
        try:
            await self._change(token.id, Set(path, value))
        except NoNode:  # as in Kafka, another broker removed it: the one that changes it wins
            await self._change(token.id, Create(path, value))
        await self._take_in((token,))

    async def _remove(self, token: Token) -> None:
        """Remove a token. Call it with the lock."""
        with suppress(NoNode):  # another broker removed and announced it
            await self._change(token.id, Delete(nodes.path_of(token.id)))
        self._forget(token.id)
        logger.info("removed delegation token %s of %s", token.id, token.owner)

    async def _change(self, token_id: str, change: Operation) -> None:
        """Change a token's node and announce it, both at once."""
        announcement = announcement_of(self._tree, nodes.CHANGE_PATH, token_id.encode())
        await self._tree.multi((change, *announcement))

    # The tokens that are known

    async def _take_in(self, tokens: Iterable[Token]) -> None:
        """Know these tokens from now on. Call it with the lock."""
        for token in tokens:
            if token.id not in self._tokens:
                hmac = hmac_of(self._settings.secret, token.id)
                # Hashing takes milliseconds: it is not done on the loop.
                credentials = await asyncio.to_thread(_credentials, hmac)
                self._tokens[token.id] = KnownToken(token, hmac, credentials)
                self._ids[hmac] = token.id
            else:
                self._tokens[token.id] = self._tokens[token.id]._replace(token=token)

    def _forget(self, token_id: str) -> None:
        token = self._tokens.pop(token_id, None)
        if token is not None:
            del self._ids[token.hmac]

    def _known_now(self, token: Token) -> KnownToken:
        """Return the token with its HMAC, though it may be removed meanwhile."""
        return KnownToken(token, hmac_of(self._settings.secret, token.id), {})

    # Tokens whose time is over

    def _sweep_due(self) -> None:
        if self._is_closed:
            return
        if self._is_controller():
            self._run_beside(self._sweep())
        self._timer = self._timers.after(self._settings.check_interval_ms, self._sweep_due)

    async def _sweep(self) -> None:
        """Remove the tokens whose time is over."""
        try:
            async with self._lock:
                now_ms = self._clock.now_ms()
                for token in self.all():
                    if token.token.is_expired(now_ms):
                        await self._remove(token.token)
        except (CoordinationError, TreeError) as error:
            logger.info("could not remove the delegation tokens that expired: %s", error)

    # Changes by others

    async def _read_all(self) -> None:
        async with self._lock:
            names = await self._tree.children(nodes.TOKENS)
            await self._read_tokens({*names, *self._tokens})

    async def _read_tokens(self, ids: Iterable[str]) -> None:
        """Read these tokens. Call it with the lock."""
        sorted_ids = sorted(token_id for token_id in ids if nodes.is_id(token_id))
        values = await self._tree.get_many([nodes.path_of(token_id) for token_id in sorted_ids])
        for token_id, value in zip(sorted_ids, values, strict=True):
            if value is None:
                self._forget(token_id)
                continue
            try:
                token = await asyncio.to_thread(nodes.decode, token_id, value[0])
            except CoordinationError as error:  # a broken node must not stop this broker
                logger.warning("a delegation token is left out: %s", error)
                self._forget(token_id)
                continue
            await self._take_in((token,))

    async def _read_announced(self, announcements: list[Announcement]) -> None:
        async with self._lock:
            await self._read_tokens(
                {value.decode("utf-8", "replace") for _, value in announcements}
            )


def _new_id() -> str:
    return base64.urlsafe_b64encode(secrets.token_bytes(_ID_BYTES)).decode("ascii").rstrip("=")


def _credentials(hmac: bytes) -> dict[str, ScramCredential]:
    """Return mechanism → credential of the password that a token's HMAC is."""
    password = base64.b64encode(hmac).decode("ascii")
    credentials = {}
    for code, mechanism in MECHANISMS.items():
        salt = secrets.token_bytes(SALT_BYTES)
        salted_bytes = salted_password(code, password, salt, ITERATIONS_MIN)
        credential_value = credential_of(credential(code, salt, salted_bytes, ITERATIONS_MIN))
        assert credential_value is not None, "it was made here"
        credentials[mechanism] = credential_value
    return credentials
