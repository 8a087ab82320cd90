"""`KafkaProxy`: listeners, connections, rules and the log of requests, on one loop.

`testing.Proxy` has one in a thread, `minibroker proxy` has one in a process.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter_ns
from typing import TYPE_CHECKING, Final

from minibroker.kafka.errors import ConfigError
from minibroker.proxy.addresses import name_of
from minibroker.proxy.desk import Desk
from minibroker.proxy.gates import Gates
from minibroker.proxy.link import ClientEnd, Link
from minibroker.proxy.upstream import Upstream
from minibroker.rig.request_log import RequestLog, SeenRequest, UnansweredRequest

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from minibroker.client.settings import ClientSettings
    from minibroker.proxy.addresses import Address
    from minibroker.proxy.gates import Gate
    from minibroker.rig.faults import Fault, FaultSet
    from minibroker.trace.exchange import Exchange
    from minibroker.trace.subject import TopicNames

SERVED_BROKER_FAULTS: Final = ("paused", "killed")
REFUSED_LOGIN_FAULTS: Final = ("tls_cut", "tls_slow")


class KafkaProxy:
    """A proxy between `start` and `stop`. Belongs to the loop."""

    def __init__(
        self,
        settings: ClientSettings,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        advertised_host: str | None = None,
        tls: ssl.SSLContext | None = None,
        keeps_requests: bool = True,
        on_event: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take the settings of a client of Kafka, and where to listen.

        Args:
            settings: addresses of Kafka, and TLS and login where the proxy ends them.
            host: address of all listeners.
            port: that of the first one, 0: a free one.
            advertised_host: what clients are told, None: `host`.
            tls: for the clients' side, None: plaintext.
            keeps_requests: whether `request_log` is kept; then each frame is decoded.
            on_event: gets a sentence about what is unusual.

        Raises ConfigError for settings of TLS that cannot be.
        """
        self._desk = Desk()
        self._desk.on_event = on_event
        self._upstream = Upstream(settings)
        self.request_log = RequestLog()
        """The last requests."""
        self.request_log.open_requests = self._open_requests
        if keeps_requests:
            self.watch(self._log)
            self._desk.on_expect = self.request_log.tell
        self._host = host
        self._advertised_host = advertised_host
        self._links: set[Link] = set()
        self._gates = Gates(
            host,
            port,
            self._upstream.targets,
            advertised_host=advertised_host,
            tls=tls,
            make_end=self._make_end,
            drop_end=lambda end: end.link.abort(),
            report=on_event,
        )
        self.is_running = False
        """True after the start, unless a rule killed it."""

    @property
    def faults(self) -> FaultSet:
        """Return every rule."""
        return self._desk.faults

    @property
    def broker_id(self) -> None:
        """Return None: a proxy is none of the brokers."""
        return

    @property
    def names(self) -> TopicNames:
        """Return topic id → name, as far as answers told it."""
        return self._desk.names

    @property
    def address(self) -> Address:
        """Return host and port for clients."""
        return self._advertised_host or self._host, self._gates.first.port

    @property
    def targets(self) -> str:
        """Return the addresses of Kafka to begin with, as HOST:PORT,…"""
        return ",".join(map(name_of, self._upstream.targets))

    @property
    def bootstrap(self) -> str:
        """Return `HOST:PORT` for a client's bootstrap.servers."""
        return name_of(self.address)

    @property
    def brokers(self) -> list[tuple[int, tuple[Address, ...]]]:
        """Return port → addresses of the broker, of each listener."""
        return [(gate.port, gate.targets) for gate in self._gates.all]

    def watch(self, show: Callable[[Exchange], None]) -> None:
        """Show each exchange from now on."""
        self._desk.onlookers.append(show)

    async def start(self) -> None:
        """Listen. Raises ConfigError where that cannot be."""
        await self._gates.start()
        self.is_running = True

    async def stop(self) -> None:
        """End all connections and listeners."""
        self.is_running = False
        for fault in self.faults:
            self._desk.release(fault)
        self._close()
        await self._gates.finish()
        await self._desk.finish()

    def _close(self) -> None:
        self._gates.close()
        for link in list(self._links):
            link.abort()

    def _make_end(self, gate: Gate) -> ClientEnd:
        link = Link(self._desk, gate, self._gates, self._upstream, on_end=self._end)
        self._links.add(link)
        self._gates.join(gate)
        return link.client

    def _end(self, link: Link) -> None:
        self._links.discard(link)
        self._gates.leave(link.gate)

    def _log(self, exchange: Exchange) -> None:
        self.request_log.note(
            SeenRequest(
                api=exchange.api,
                version=exchange.version,
                client_id=exchange.client_id,
                client_address=exchange.client_address,
                at_ms=int(exchange.at_ms),
                duration_ms=exchange.duration_ms or 0.0,
                error=exchange.error if exchange.answer_bytes is not None else NO_ANSWER,
                correlation_id=exchange.correlation_id,
                request_bytes=exchange.request_bytes,
                answer_bytes=exchange.answer_bytes,
                subject=exchange.subject,
                fault=exchange.fault,
                machine_ms=exchange.at_ms,
                broker=exchange.broker,
                number=exchange.number,
            )
        )

    def _open_requests(self) -> Iterator[UnansweredRequest]:
        """Yield the requests that wait for their answer, as they stand now."""
        now_ns = perf_counter_ns()
        for link in list(self._links):
            for pending in link.pending:
                head = pending.head
                if head is None or pending.frame is None:
                    continue
                client_id = head.client_id
                request = SeenRequest(
                    api=pending.api,
                    version=head.version,
                    client_id=None if client_id is None else client_id.decode("utf-8", "replace"),
                    client_address=link.client_address,
                    at_ms=pending.at_ms,
                    duration_ms=(now_ns - pending.started_ns) / 1_000_000,
                    error=None,
                    correlation_id=pending.correlation_id,
                    request_bytes=pending.request_bytes,
                    fault=None if pending.fault is None else pending.fault.effect,
                    machine_ms=pending.at_ms,
                    broker=link.broker_address,
                )
                yield UnansweredRequest(request, partial(self._desk.describe, pending))

    # Faults.

    async def add(self, fault: Fault) -> None:
        """Apply a rule until `remove`. Raises ConfigError for one that cannot happen here."""
        if fault.broker is not None and fault.broker not in SERVED_BROKER_FAULTS:
            served = " and broker=".join(SERVED_BROKER_FAULTS)
            raise ConfigError(
                f"broker={fault.broker} happens inside of a broker: a proxy has broker={served}"
            )
        if fault.login in REFUSED_LOGIN_FAULTS:
            raise ConfigError(
                f"login={fault.login}: a proxy sees no TLS handshake: use a rule for all requests, "
                "with drop or delay_ms"
            )
        self.faults.add(fault)
        if fault.broker == "killed":
            self.is_running = False
            self._close()

    async def remove(self, fault: Fault) -> None:
        """End a rule; what it holds goes on. Raises OSError where a port is taken meanwhile."""
        fault.is_removed = True
        self._desk.release(fault)
        if fault.broker == "killed" and not any(rule.broker == "killed" for rule in self.faults):
            await self._gates.listen_again()
            self.is_running = True

    async def clear(self) -> None:
        """Remove every rule."""
        for fault in self.faults:
            await self.remove(fault)


NO_ANSWER: Final = "no answer"
"""The error of a request that got none, in the log of requests."""
