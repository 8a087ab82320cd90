"""`minibroker proxy` as a process: it serves until SIGTERM or SIGINT."""

from __future__ import annotations

import asyncio
import gc
import signal
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, TextIO

from minibroker.broker.event_loop import new_loop, on_signals
from minibroker.broker.system import allow_open_files
from minibroker.cli.errors import EXIT_OK, CommandError
from minibroker.kafka.errors import ConfigError
from minibroker.proxy.certificate import server_context
from minibroker.proxy.proxy import KafkaProxy
from minibroker.verbs.proxy.showing import show_all

if TYPE_CHECKING:
    import ssl

    from minibroker.broker.config.control import ControlOptions
    from minibroker.client.settings import ClientSettings
    from minibroker.control.proxy import ProxyControl
    from minibroker.verbs.proxy.plan import ProxyPlan


def serve(plan: ProxyPlan, settings: ClientSettings, out: TextIO, errors: TextIO) -> int:
    """Serve until a signal comes; return the exit code. Raises CommandError."""
    allow_open_files()
    with asyncio.Runner(loop_factory=lambda: new_loop("auto")) as runner:
        try:
            tls = None if plan.tls is None else server_context(plan.tls)
            return runner.run(_serve(plan, settings, tls, out, errors))
        except ConfigError as error:
            raise CommandError(str(error)) from None


async def _serve(
    plan: ProxyPlan,
    settings: ClientSettings,
    tls: ssl.SSLContext | None,
    out: TextIO,
    errors: TextIO,
) -> int:
    def tell(sentence: str) -> None:
        with suppress(OSError):  # a full disk: clients are served on
            errors.write(f"{sentence}\n")
            errors.flush()

    control_options = plan.control.options()
    proxy = KafkaProxy(
        settings,
        *plan.listen,
        advertised_host=plan.advertise,
        tls=tls,
        keeps_requests=control_options is not None,
        on_event=tell,
    )
    stopping = asyncio.Event()
    lines = []
    with ExitStack() as files, on_signals((signal.SIGTERM, signal.SIGINT), stopping.set):
        show_all(plan.output, proxy, out, files)
        await proxy.start()
        # Objects made at start stay for ever, so the collector need not visit them again.
        gc.freeze()
        lines.append(f"minibroker proxy listening on {proxy.bootstrap}, to {plan.to}\n")
        control = None
        try:
            if control_options is not None:
                control = _control(proxy, control_options)
                await control.start()
                lines.append(f"minibroker control on {control.url}\n")
            out.writelines(lines)
            out.flush()
            await stopping.wait()
        finally:
            if control is not None:
                await control.stop()
            await proxy.stop()
    return EXIT_OK


def _control(proxy: KafkaProxy, options: ControlOptions) -> ProxyControl:
    """Return the control API. Raises CommandError where its libraries are missing."""
    try:
        from minibroker.control.proxy import ProxyControl  # noqa: PLC0415  for --control only
    except ModuleNotFoundError as error:
        raise CommandError(
            f"--control needs {error.name}: pip install 'minibroker[control]'"
        ) from None
    return ProxyControl(proxy, options)
