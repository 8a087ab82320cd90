"""A session with ZooKeeper, through kazoo, which the broker imports here alone and when it opens.

Stands below `ZooKeeperTree`, which knows the nodes. This module has the connection, the events of
the session, the calls in their order, and the watches. kazoo works in threads of its own. Each of
its callbacks does one thing, `call_soon_threadsafe`; everything else happens on the loop. A call is
sent at once or refused at once: while there is no connection it raises CoordinationError instead of
waiting for one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.cluster.tree import (
    BadVersion,
    EphemeralParent,
    NodeExists,
    NoNode,
    NotEmpty,
    SessionEvent,
    TreeError,
)
from minibroker.broker.cluster.zookeeper_watches import WatchSet
from minibroker.broker.slices import TimeSlice
from minibroker.client.daemons import mark_retrieved
from minibroker.kafka.errors import AwayError, CoordinationError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from minibroker.broker.cluster.tree import Cancel

logger = logging.getLogger(__name__)


def load_session(path: Path) -> tuple[int, bytes] | None:
    """Return session id and password (16 bytes), None if there is no file or no such line in it."""
    try:
        session_id, password = path.read_text("ascii").split()
        return int(session_id, 16), bytes.fromhex(password)
    except (OSError, ValueError):
        return None


def save_session(path: Path, session_id: int, password: bytes) -> None:
    """Replace the file. Raises OSError."""
    temporary = path.with_name(f"{path.name}.tmp")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(fd, "w", encoding="ascii") as file:
        file.write(f"{session_id:x} {password.hex()}\n")
    temporary.replace(path)


def forget_session(path: Path) -> None:
    """Remove the file, if there is one."""
    with suppress(FileNotFoundError):
        path.unlink()


OPERATION_TIMEOUT_S: Final = 5.0
"""How long an answer may take before the caller is told to try again."""
PIPELINE_MAX: Final = 200
"""Calls that are sent before the first of them is answered."""
RECONNECT_DELAY_S: Final = 0.1
RECONNECT_DELAY_MAX_S: Final = 1.0
CLOSE_TIMEOUT_S: Final = 5.0
NOWHERE: Final = "127.0.0.1:1"


class ZooKeeperSession:
    """One client of a ZooKeeper, over all its connections.

    Args:
        connect: `zookeeper.connect`: `host:port[,host:port…][/chroot]`; the chroot is created.
        session_timeout_ms: `zookeeper.session.timeout.ms`.
        connection_timeout_ms: `zookeeper.connection.timeout.ms`: for `open` only.
        session_file: where the session is kept over a crash (see `session_file`); None: nowhere.
    """

    def __init__(
        self,
        connect: str,
        *,
        session_timeout_ms: int = 18_000,
        connection_timeout_ms: int = 18_000,
        session_file: Path | None = None,
    ) -> None:
        # Constant after construction.
        self._session_file = session_file
        self._connect = connect
        self._hosts, slash, chroot = connect.partition("/")
        self._chroot = f"/{chroot}".rstrip("/") if slash else ""
        self._session_timeout_ms = session_timeout_ms
        self._connection_timeout_ms = connection_timeout_ms
        # Set by `open`, then read by kazoo's threads, too.
        self._kazoo: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        # The loop's.
        self._client: Any = None
        self._is_connected = asyncio.Event()
        self._had_session = False
        self._is_expired = False
        self._session_callbacks: list[Callable[[SessionEvent], None]] = []
        self._watches = WatchSet(
            read=self._read_with_watch,
            send=self._send,
            call_many=self._call_many,
            hop=self._hop,
        )

    @property
    def session_id(self) -> int:
        """Return the number of the ZooKeeper session, 0 while not connected."""
        client_id = self._client.client_id if self._client is not None else None
        return int(client_id[0]) if client_id else 0

    # Session

    async def open(self) -> None:
        """Connect. Raises CoordinationError after `connection_timeout_ms`."""
        import kazoo.client  # noqa: PLC0415 - 60 ms that only this home pays
        import kazoo.exceptions  # noqa: PLC0415
        import kazoo.protocol.serialization  # noqa: PLC0415
        import kazoo.protocol.states  # noqa: PLC0415
        import kazoo.security  # noqa: PLC0415

        self._kazoo = kazoo
        self._loop = asyncio.get_running_loop()
        quiet = logging.getLogger(f"{__name__}.kazoo")  # it repeats itself while ZooKeeper is away
        quiet.setLevel(logging.CRITICAL)
        try:
            self._client = kazoo.client.KazooClient(
                self._hosts,
                timeout=self._session_timeout_ms / 1000,
                client_id=load_session(self._session_file) if self._session_file else None,
                connection_retry={
                    "max_tries": -1,
                    "delay": RECONNECT_DELAY_S,
                    "backoff": 2,
                    "max_delay": RECONNECT_DELAY_MAX_S,
                },
                logger=quiet,
            )
        except (ValueError, kazoo.exceptions.ConfigurationError) as error:
            raise CoordinationError(
                f"zookeeper.connect={self._connect} is not host:port[,host:port…][/chroot]"
            ) from error
        self._client.add_listener(self._on_state)
        logger.info(
            "the start waits for ZooKeeper at %s, %g s at most",
            self._connect,
            self._connection_timeout_ms / 1000,
        )
        self._client.start_async()
        try:
            async with asyncio.timeout(self._connection_timeout_ms / 1000):
                await self._is_connected.wait()
                await self._create_chroot()
        except (TimeoutError, CoordinationError):
            self._stop_client()  # takes as long as kazoo's try to connect; nobody waits for it
            raise CoordinationError(
                f"no answer from ZooKeeper at {self._connect} within "
                f"{self._connection_timeout_ms} ms: is it running, and is zookeeper.connect right?"
            ) from None
        except asyncio.CancelledError:
            self._stop_client()
            raise

    async def _create_chroot(self) -> None:
        if not self._chroot:
            return
        for depth in range(2, self._chroot.count("/") + 2):
            path = "/".join(self._chroot.split("/")[:depth])
            try:
                await self._call(path, self._client.create_async, path, None)
            except NodeExists:
                continue

    async def close(self) -> None:
        """End the session; a server that does not answer is given CLOSE_TIMEOUT_S."""
        if self._client is None:
            return
        stop_event = self._stop_client()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await stop_event.wait()
        except TimeoutError:
            logger.warning("ZooKeeper at %s did not confirm the end of the session", self._connect)
            return  # the next start may take it up
        if self._session_file is not None:
            forget_session(self._session_file)

    async def abandon(self) -> None:
        """Disconnect without ending the session, as a process that dies."""
        if self._client is not None:
            await self._stop_client(_hang_up).wait()

    async def lose_session(self) -> None:
        """Have ZooKeeper end the session behind this client's back, as after a long silence.

        For tests. Raises CoordinationError while not connected.
        """
        client = self._client
        client_id = client.client_id if client is not None else None
        if client_id is None or not self._is_connected.is_set():
            raise self._away()

        def take_over_and_end() -> None:
            thief = self._kazoo.client.KazooClient(self._hosts, client_id=client_id)
            client.set_hosts(NOWHERE)  # or it takes its session back before the thief ended it
            try:
                thief.start(OPERATION_TIMEOUT_S)
                thief.stop()
                thief.close()
            finally:
                client.set_hosts(self._hosts)

        await asyncio.to_thread(take_over_and_end)

    def _stop_client(self, stop_client: Callable[[Any], None] | None = None) -> asyncio.Event:
        """Let a thread of its own stop kazoo, which blocks; the event says that it is done."""
        client, self._client = self._client, None
        self._is_connected.clear()
        self._watches.clear()
        stop_event = asyncio.Event()

        def stop() -> None:
            client.remove_listener(self._on_state)
            if stop_client is None:
                client.stop()
            else:
                stop_client(client)
            client.close()
            self._hop(stop_event.set)

        threading.Thread(target=stop, name="zookeeper-close", daemon=True).start()
        return stop_event

    def _hop(self, callback: Callable[..., object], *arguments: object) -> None:
        """Call from a kazoo thread on the loop; do nothing if the loop is closed."""
        assert self._loop is not None
        try:
            self._loop.call_soon_threadsafe(callback, *arguments)
        except RuntimeError:
            return

    def _on_state(self, state: str) -> None:  # kazoo's thread
        self._hop(self._apply_state, state)

    def _apply_state(self, state: str) -> None:
        if self._client is None:
            return
        states = self._kazoo.protocol.states.KazooState
        if state == states.CONNECTED:
            self._is_connected.set()
            self._save_session()
            if self._had_session:
                self._watches.fire_all()
                self._tell(SessionEvent.RENEWED if self._is_expired else SessionEvent.RESUMED)
            self._had_session = True
            self._is_expired = False
            return
        self._is_connected.clear()
        if not self._had_session:
            return
        if state == states.LOST:
            self._is_expired = True
            self._tell(SessionEvent.EXPIRED)
        else:
            self._tell(SessionEvent.SUSPENDED)

    def _save_session(self) -> None:
        client_id = self._client.client_id
        if self._session_file is None or client_id is None:
            return
        try:
            save_session(self._session_file, *client_id)
        except OSError as error:
            logger.warning("the ZooKeeper session cannot be resumed after a crash: %s", error)

    def _tell(self, event: SessionEvent) -> None:
        for callback in list(self._session_callbacks):
            callback(event)

    def on_session(self, callback: Callable[[SessionEvent], None]) -> None:
        """Call back with every session event from now on."""
        self._session_callbacks.append(callback)

    # Calls

    def _full(self, path: str) -> str:
        if not self._chroot:
            return path
        return self._chroot if path == "/" else self._chroot + path

    def _away(self) -> AwayError:
        return AwayError(f"ZooKeeper at {self._connect} cannot be reached now")

    def _send(self, start: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
        """Start one kazoo operation; return a future of its raw result."""
        client = self._client
        if client is None or not client.connected or not self._is_connected.is_set():
            raise self._away()
        assert self._loop is not None
        future: asyncio.Future[Any] = self._loop.create_future()
        future.add_done_callback(mark_retrieved)  # its waiter may have timed out
        result = start(*arguments)
        result.rawlink(lambda done: self._hop(_settle, future, done))
        return future

    async def _call(self, path: str, start: Callable[..., Any], *arguments: object) -> Any:
        future = self._send(start, *arguments)
        try:
            async with asyncio.timeout(OPERATION_TIMEOUT_S):
                return await future
        except TimeoutError:
            raise self._away() from None
        except self._kazoo.exceptions.KazooException as error:
            raise self._translate(path, error) from error

    async def _call_many(self, calls: Sequence[tuple[str, Callable[[], Any]]]) -> list[Any]:
        """Start calls (path, start) without waiting for each answer; return the answers in order.

        At most PIPELINE_MAX are unanswered at a time. A call that the tree refuses has its
        TreeError in place of an answer. Raises CoordinationError.
        """
        answers: list[Any] = []
        turn = TimeSlice()
        for begin in range(0, len(calls), PIPELINE_MAX):
            batch = calls[begin : begin + PIPELINE_MAX]
            futures = []
            for _, start in batch:
                futures.append(self._send(start))
                if turn.is_over:
                    await turn.pause()
            try:
                async with asyncio.timeout(OPERATION_TIMEOUT_S):
                    results = await asyncio.gather(*futures, return_exceptions=True)
            except TimeoutError:
                raise self._away() from None
            for (path, _), result in zip(batch, results, strict=True):
                answer = result
                if isinstance(result, Exception):
                    answer = self._translate(path, result)
                    if not isinstance(answer, TreeError):
                        raise answer from result
                answers.append(answer)
        return answers

    def _translate(self, path: str, error: Exception) -> Exception:
        exceptions = self._kazoo.exceptions
        for theirs, ours in (
            (exceptions.NoNodeError, NoNode),
            (exceptions.NodeExistsError, NodeExists),
            (exceptions.BadVersionError, BadVersion),
            (exceptions.NotEmptyError, NotEmpty),
            (exceptions.NoChildrenForEphemeralsError, EphemeralParent),
        ):
            if isinstance(error, theirs):
                return ours(path)
        connection = (
            exceptions.ConnectionLoss,
            exceptions.SessionExpiredError,
            exceptions.ConnectionClosedError,
            exceptions.OperationTimeoutError,
        )
        if isinstance(error, connection):
            return self._away()
        return CoordinationError(f"ZooKeeper refused an operation on {path}: {error!r}")

    def _client_method(self, name: str) -> Callable[..., Any]:
        if self._client is None:
            raise self._away()
        method: Callable[..., Any] = getattr(self._client, name)
        return method

    # Watches

    async def watch(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after the node is created, set or deleted."""
        return await self._watches.add((path, False), callback)

    async def watch_many(self, callbacks: Mapping[str, Callable[[], None]]) -> list[Cancel]:
        """Watch each path, pipelined, all or none; return their ends in order."""
        return await self._watches.add_many(
            {(path, False): callback for path, callback in callbacks.items()}
        )

    async def watch_children(self, path: str, callback: Callable[[], None]) -> Cancel:
        """Call back after a child is created or deleted. Raises NoNode."""
        return await self._watches.add((path, True), callback)

    def _read_with_watch(
        self, path: str, of_children: bool, on_event: Callable[[Any], None]
    ) -> Any:
        name = "get_children_async" if of_children else "exists_async"
        return self._client_method(name)(self._full(path), on_event)


def _settle(future: asyncio.Future[Any], result: Any) -> None:
    if future.done():  # timed out or cancelled
        return
    if result.exception is not None:
        future.set_exception(result.exception)
    else:
        future.set_result(result.value)


def _hang_up(client: Any) -> None:
    """Stop a kazoo client without the message that ends its session: kazoo has no call for it."""
    client._stopped.set()  # noqa: SLF001
    connection = client._connection  # noqa: SLF001
    with suppress(AttributeError, OSError):  # between two tries to connect there is none
        connection._socket.shutdown(socket.SHUT_RDWR)  # noqa: SLF001
    connection.stop(OPERATION_TIMEOUT_S)
    client.handler.stop()
