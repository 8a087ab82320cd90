"""`minibroker trace --serve`: a recorded conversation as a broker, until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, TextIO

from minibroker.broker.event_loop import new_loop, on_signals
from minibroker.cli.errors import EXIT_OK, CommandError
from minibroker.clock import SystemClock
from minibroker.proxy.addresses import rewrite_all
from minibroker.trace.batches import count_of
from minibroker.trace.script import Script
from minibroker.trace.scripted_broker import ScriptedBroker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from minibroker.trace.exchange import Exchange

    Address = tuple[str, int]


def serve(
    exchanges: Iterable[Exchange],
    address: Address,
    show: Callable[[Exchange], None],
    out: TextIO,
    errors: TextIO,
) -> int:
    """Serve the exchanges until a signal comes; return the exit code.

    Raises CommandError, and the errors of reading the exchanges.
    """
    script = Script()
    count = 0
    for exchange in exchanges:
        script.add(exchange)
        count += 1
    if not count:
        raise CommandError("the recording has no request, so there is nothing to serve")

    def refuse(sentence: str) -> None:
        errors.write(f"minibroker trace: {sentence}\n")
        errors.flush()

    broker = ScriptedBroker(
        script, rewrite_all, SystemClock().now_ms, on_exchange=show, on_refused=refuse
    )
    with asyncio.Runner(loop_factory=lambda: new_loop("auto")) as runner:
        runner.run(_serve(broker, address, out))
    answered, refused = count_of(broker.answered, "request"), broker.refused
    errors.write(f"minibroker trace: {answered} answered, {refused} not recorded\n")
    return EXIT_OK


async def _serve(broker: ScriptedBroker, address: Address, out: TextIO) -> None:
    """Serve until a signal comes. Raises CommandError for an address that cannot be taken."""
    stopping = asyncio.Event()
    with on_signals((signal.SIGTERM, signal.SIGINT), stopping.set):
        try:
            host, port = await broker.start(*address)
        except OSError as error:
            raise CommandError(f"cannot listen on {address[0]}:{address[1]}: {error}") from None
        try:
            out.write(f"minibroker listening on {host}:{port}\n")
            out.flush()
            await stopping.wait()
        finally:
            await broker.stop()
