"""`minibroker proxy` as a process: it serves until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
import ssl
from typing import TYPE_CHECKING, TextIO

from minibroker.broker.event_loop import new_loop, on_signals
from minibroker.broker.system import allow_open_files
from minibroker.cli.errors import EXIT_OK, CommandError
from minibroker.kafka.errors import ConfigError
from minibroker.proxy.proxy import KafkaProxy
from minibroker.trace.line import to_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.client.settings import ClientSettings
    from minibroker.trace.exchange import Exchange
    from minibroker.verbs.proxy.plan import ProxyPlan


def serve(plan: ProxyPlan, settings: ClientSettings, out: TextIO, errors: TextIO) -> int:
    """Serve until a signal comes; return the exit code. Raises CommandError."""
    allow_open_files()
    tls = None if plan.tls is None else _context(plan.tls)
    with asyncio.Runner(loop_factory=lambda: new_loop("auto")) as runner:
        try:
            return runner.run(_serve(plan, settings, tls, out, errors))
        except ConfigError as error:
            raise CommandError(str(error)) from None


def _context(path: str) -> ssl.SSLContext:
    """Return the TLS of listeners with this certificate. Raises CommandError."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(path, password=b"")
    except (OSError, ValueError) as error:
        raise CommandError(f"--tls {path}: no key with its certificate: {error}") from None
    return context


async def _serve(
    plan: ProxyPlan,
    settings: ClientSettings,
    tls: ssl.SSLContext | None,
    out: TextIO,
    errors: TextIO,
) -> int:
    def tell(sentence: str) -> None:
        errors.write(f"{sentence}\n")
        errors.flush()

    proxy = KafkaProxy(
        settings,
        *plan.listen,
        advertised_host=plan.advertise,
        tls=tls,
        keeps_requests=False,
        on_event=tell,
    )
    if plan.trace:
        proxy.watch(_printer(out))
    stopping = asyncio.Event()
    with on_signals((signal.SIGTERM, signal.SIGINT), stopping.set):
        await proxy.start()
        host, port = proxy.address
        out.write(f"minibroker proxy listening on {host}:{port}, to {plan.to}\n")
        out.flush()
        await stopping.wait()
        await proxy.stop()
    return EXIT_OK


def _printer(out: TextIO) -> Callable[[Exchange], None]:
    """Return a function that writes an exchange as a line."""

    def show(exchange: Exchange) -> None:
        out.write(f"{to_line(exchange)}\n")
        out.flush()

    return show
