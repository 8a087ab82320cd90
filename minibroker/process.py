"""A broker as a process: `minibroker serve` from its first line of output to its exit code.

This module handles signals, the line on stdout with the address, `--ready-file` and `--memory`. The
broker itself is `app.Broker`.
"""

from __future__ import annotations

import asyncio
import gc
import resource
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minibroker.app import Broker
from minibroker.errors import ConfigError, MinibrokerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from minibroker.config.broker import BrokerConfig
    from minibroker.config.options import ServeOptions
    from minibroker.control.broker import ControlledBroker


def run(config: BrokerConfig, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code of the process."""
    _allow_open_files()
    directory = None
    if options.in_memory:
        import tempfile  # noqa: PLC0415  the usual start does without

        directory = tempfile.mkdtemp(prefix="minibroker-")
        # No file outlives this process, so no file has to reach a disk.
        never_sync = {"minibroker.log.sync.interval.ms": "0"}
        config = config.with_overrides({"log.dirs": directory, **never_sync})
    try:
        with asyncio.Runner(loop_factory=_loop_factory(options.loop)) as runner:
            return runner.run(_serve(config, options))
    finally:
        if directory is not None:
            import shutil  # noqa: PLC0415  as above

            shutil.rmtree(directory, ignore_errors=True)


def _allow_open_files() -> None:
    """Raise the soft limit of open files to the hard limit, as the JVM does before Kafka.
    The usual soft limit is 1,024, and each written partition and each connection needs a file. Call
    it before the broker is made, because the broker divides the limit among its parts.
    """
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS refuses an unlimited value; then the limit stays
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _loop_factory(name: str) -> Callable[[], Any]:
    if name == "asyncio":
        return asyncio.new_event_loop
    import uvloop  # noqa: PLC0415  the other loop must not pay for it

    factory: Callable[[], Any] = uvloop.new_event_loop
    return factory


def _write_ready_file(path: str, line: str) -> None:
    """Write the file whole, so that a reader never sees half of it. Raises OSError."""
    file = Path(path)
    if file.exists() and not file.is_file():  # a pipe
        file.write_text(line, encoding="utf-8")
        return
    part = file.with_name(f"{file.name}.part")
    part.write_text(line, encoding="utf-8")
    part.replace(file)


def _make_broker(config: BrokerConfig, options: ServeOptions) -> Broker | ControlledBroker:
    """Return the broker. Raises ConfigError if the control API's libraries are missing."""
    if options.control is None:
        return Broker(config)
    try:
        from minibroker.control.broker import ControlledBroker  # noqa: PLC0415  for --control only
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"--control needs {error.name}: pip install 'minibroker[control]'"
        ) from error
    return ControlledBroker(config, *options.control, options.control_token)


async def _serve(config: BrokerConfig, options: ServeOptions) -> int:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    try:
        broker = _make_broker(config, options)
        await broker.start(options.topics)
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return 1
    # Objects made at start stay for ever, so the collector need not visit them again.
    gc.freeze()
    host, port = broker.address
    line = f"minibroker listening on {host}:{port}\n"
    if not isinstance(broker, Broker):
        line += "minibroker control on http://{}:{}\n".format(*broker.control_address)
    sys.stdout.write(line)
    sys.stdout.flush()
    code = 0
    if options.ready_file is not None:
        try:
            _write_ready_file(options.ready_file, line)
        except OSError as error:
            sys.stderr.write(f"minibroker: cannot write {options.ready_file}: {error.strerror}\n")
            code = 1
    if not code:
        sys.stdout.writelines(f"{more}\n" for more in options.ready_lines)
        sys.stdout.flush()
        broker.failure.add_done_callback(lambda _: stopping.set())
        await stopping.wait()
    if broker.failure.done():
        sys.stderr.write(f"minibroker: {broker.failure.result()}\n")
        code = 1
    try:
        await broker.stop()
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: stopped, but not cleanly: {error}\n")
        return 1
    return code
