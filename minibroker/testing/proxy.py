"""`Proxy`: a proxy in the test's process, before any Kafka: faults, and the log of requests.

    with Proxy("kafka:9092") as proxy:
        run_my_service(bootstrap_servers=proxy.bootstrap)
        proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER", times=2)

The clients of the test take `proxy.bootstrap` for Kafka's address. Each broker of the cluster has a
listener, and the answers of Kafka name these.
"""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from minibroker.client.given_settings import for_reader
from minibroker.client.settings import client_settings
from minibroker.testing.broker_faults import Faults
from minibroker.testing.failure_watch import Watched, fault_snapshots
from minibroker.testing.loop_thread import LoopThread
from minibroker.testing.report import request_lines
from minibroker.testing.request_calls import RequestCalls

if TYPE_CHECKING:
    from collections.abc import (
        AsyncIterator,
        Callable,
        Collection,
        Coroutine,
        Mapping,
        Sequence,
    )
    from pathlib import Path

    from minibroker.proxy.proxy import KafkaProxy
    from minibroker.rig.request_log import RequestLog
    from minibroker.rig.snapshot import Snapshot

_PASSWORDS: Final = re.compile(r'password="([^"]*)"')
"""Passwords in a JAAS entry."""
EVENTS_MAX: Final = 1_000
"""Most sentences of `events` that are kept."""


class Proxy(Watched, RequestCalls):
    """A proxy between `start` and `stop`, or in a `with` block, sync or async. Its loop runs in a
    thread of its own.

    Args:
        to: Kafka's address, `HOST:PORT`, or several with commas.
        config: settings of a Kafka client, where the proxy speaks TLS with Kafka or logs in there:
            `{"security.protocol": "SSL", "ssl.truststore.location": …}`, with the names of Java,
            librdkafka or Spark. Without a login here, those of the clients go on to Kafka.
        host: address of the listeners.
        port: port of the first one, 0: a free one. The other brokers have the ports behind it.
        tls: a PEM file of a private key and its certificates: clients speak TLS with the proxy.
    """

    NOUN = "proxy"

    def __init__(
        self,
        to: str,
        config: Mapping[str, str] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: str | Path | None = None,
    ) -> None:
        """Raises ConfigError for settings that cannot be."""
        self._passwords = {
            password
            for key, value in (config or {}).items()
            for password in ([value] if "password" in key else _PASSWORDS.findall(value))
        }
        settings = {"client.id": "minibroker-proxy", **(config or {}), "bootstrap.servers": to}
        self._settings = client_settings(for_reader(settings))
        self._address = (host, port)
        self._tls = tls
        self._proxy: KafkaProxy
        self._thread = LoopThread(lambda: self._in_sight(self._serving()))
        self.events: list[str] = []
        """Sentences about what was unusual: unreadable bytes, a broker that cannot be reached."""
        self.faults = Faults(self.on_proxy)
        """Faults to inject: `proxy.faults.add("Produce", error="NOT_LEADER_OR_FOLLOWER")`."""

    @asynccontextmanager
    async def _serving(self) -> AsyncIterator[None]:
        from minibroker.proxy.proxy import KafkaProxy  # noqa: PLC0415  only who asks pays

        context = None
        if self._tls is not None:
            from minibroker.proxy.certificate import server_context  # noqa: PLC0415  only with TLS

            context = server_context(self._tls)
        self._proxy = KafkaProxy(
            self._settings, *self._address, tls=context, on_event=self._note_event
        )
        await self._proxy.start()
        yield
        await self._proxy.stop()

    def _note_event(self, sentence: str) -> None:
        if len(self.events) < EVENTS_MAX:
            self.events.append(sentence)

    @property
    def _running(self) -> KafkaProxy:
        self._check_running()
        return self._proxy

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT` for a client's bootstrap.servers."""
        return self._running.bootstrap

    @property
    def brokers(self) -> dict[str, str]:
        """Return the address of each listener → that of the broker behind it."""
        host = self._address[0]
        listeners: list[tuple[int, Any]] = self.call(lambda: self._running.brokers)
        return {
            f"{host}:{port}": ",".join(f"{name}:{number}" for name, number in targets)
            for port, targets in listeners
        }

    @property
    def _request_log(self) -> RequestLog:
        return self._running.request_log

    @property
    def title(self) -> str:
        """Return `Proxy`."""
        return "Proxy"

    def request_logs(self) -> Sequence[RequestLog]:
        """Return the log, for the loop."""
        return [self._proxy.request_log]

    def snapshot(self, since_ms: float = 0.0) -> Snapshot:
        """Return the requests and the faults. Raises RuntimeError.

        `since_ms`: requests that came before are left out, by the machine's clock.
        """
        from minibroker.rig.snapshot import proxy_snapshot  # noqa: PLC0415  only who asks pays

        faults = fault_snapshots(self.faults)
        address, brokers = self.bootstrap, self.brokers
        view: Snapshot = self.call(
            lambda: proxy_snapshot(address, brokers, self._request_log, since_ms, faults)
        )
        return view

    def secrets(self) -> set[str]:
        """Return passwords that no report may show: those of its own login."""
        return set(self._passwords)

    def reset(self) -> None:
        """Remove every fault, and forget the requests so far; clients stay connected."""
        self.faults.clear()
        self.faults.forget()
        self.call(self._running.request_log.clear)

    def report(self, requests: int = 20) -> str:
        """Return the last requests as a table. For the report of a test that failed."""
        return "\n".join(request_lines(self.requests[-requests:]))

    def on_proxy(
        self,
        call: Callable[[KafkaProxy], Coroutine[Any, Any, Any]],
        broker_ids: Collection[int] | None,
    ) -> list[Any]:
        """Do `broker_faults.OnNodes`; the rules are for all brokers."""
        return [self._await(call(self._running))]
