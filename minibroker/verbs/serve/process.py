"""A broker as a process: `minibroker serve` from its first line of output to its exit code.

This module handles signals, the line on stdout with the address, `--ready-file` and `--memory`. The
broker itself is `app.Broker`; with `--brokers` several of them are a `local_cluster.LocalCluster`.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, Final

from minibroker.broker.app import CLUSTER_FILE, Broker
from minibroker.broker.config.broker import GENERATED_ID
from minibroker.broker.event_loop import new_loop, on_signals
from minibroker.broker.system import allow_open_files, make_temporary_directory
from minibroker.cli import resume_collector
from minibroker.kafka.errors import ConfigError, MinibrokerError, StorageError
from minibroker.verbs.serve.warm_up import import_rest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from minibroker.broker.config.broker import BrokerConfig
    from minibroker.broker.config.options import ServeOptions
    from minibroker.broker.local_cluster import LocalCluster
    from minibroker.control.broker import ControlledBroker
    from minibroker.registry.service import RegistryService


YOUNG_AT_START: Final = 100_000
"""New objects that the garbage collector waits for while logs are loaded, some 10 MB of them. They
stay, so with its usual 700 it would visit those of 10,000 logs again and again."""


def run(config: BrokerConfig, options: ServeOptions) -> int:
    """Serve until SIGTERM or SIGINT; return the exit code of the process."""
    allow_open_files()
    directory = None
    if options.in_memory:
        directory = make_temporary_directory("minibroker-")
        # No file outlives this process, so no file has to reach a disk.
        never_sync = {"minibroker.log.sync.interval.ms": "0"}
        config = config.with_overrides({"log.dirs": directory, **never_sync})
    try:
        with asyncio.Runner(loop_factory=lambda: _loop(options.loop)) as runner:
            return runner.run(_serve(config, options))
    except ConfigError as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return 1
    finally:
        if directory is not None:
            import shutil  # noqa: PLC0415  the usual stop does without

            shutil.rmtree(directory, ignore_errors=True)


def _loop(name: str) -> asyncio.AbstractEventLoop:
    """Return the loop of `--loop`. Raises ConfigError for one that is not installed."""
    try:
        loop = new_loop(name)
    except ModuleNotFoundError:
        raise ConfigError(
            "--loop uvloop needs the package uvloop: pip install 'minibroker[uvloop]', or leave the"
            " flag out"
        ) from None
    if name == "auto" and isinstance(loop, asyncio.SelectorEventLoop):
        import logging  # noqa: PLC0415  uvloop has nothing to say

        logging.getLogger(__name__).info(
            "asyncio's loop serves, because uvloop is not installed; small requests take a fifth"
            " less CPU with it: pip install 'minibroker[uvloop]'"
        )
    return loop


async def _with_id(config: BrokerConfig) -> BrokerConfig:
    """Return the config with the id of the data, or with a new one from ZooKeeper.

    Raises CoordinationError, StorageError, CorruptionError.
    """
    from minibroker.broker.cluster.registration import generate_broker_id  # noqa: PLC0415  seldom
    from minibroker.broker.cluster.zookeeper import ZooKeeperTree  # noqa: PLC0415  as above
    from minibroker.broker.storage.files import REAL_FILES  # noqa: PLC0415  as above
    from minibroker.broker.storage.log_directory import stored_broker_id  # noqa: PLC0415  as above

    broker_id = stored_broker_id(REAL_FILES, config.log_dirs)
    if broker_id is None:
        assert config.zookeeper_connect is not None
        tree = ZooKeeperTree(
            config.zookeeper_connect,
            session_timeout_ms=config.zookeeper_session_timeout_ms,
            connection_timeout_ms=config.zookeeper_connection_timeout_ms,
        )
        broker_id = await generate_broker_id(tree, config.integer("reserved.broker.max.id"))
    return config.with_generated_id(broker_id)


def _make(config: BrokerConfig, options: ServeOptions) -> LocalCluster | Broker | ControlledBroker:
    """Return what serves. Raises ConfigError if the control API's libraries are missing, or if the
    data directory has the data of one broker where several are wanted, or the reverse;
    StorageError if it cannot be made.
    """
    directory = config.log_dirs[0]
    if options.brokers == 1:
        if os.path.exists(f"{directory}/{CLUSTER_FILE}"):  # noqa: PTH110  a start does without pathlib
            raise ConfigError(
                f"{directory} has the data of several brokers: start them with --brokers, or "
                "give another --data-dir"
            )
        return _controlled(config, options) if options.control is not None else Broker(config)
    if os.path.exists(f"{directory}/meta.properties"):  # noqa: PTH110  as above
        raise ConfigError(
            f"{directory} has the data of one broker: start it without --brokers, or give "
            "another --data-dir"
        )
    return _make_cluster(config, options)


def _make_cluster(config: BrokerConfig, options: ServeOptions) -> LocalCluster:
    # One broker does without these.
    from pathlib import Path  # noqa: PLC0415

    from minibroker.broker.config.members import configs_of  # noqa: PLC0415
    from minibroker.broker.local_cluster import LocalCluster  # noqa: PLC0415
    from minibroker.clock import SystemClock  # noqa: PLC0415

    configs = configs_of(config, options.brokers)
    directory = Path(config.log_dirs[0])
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {directory}: {error.strerror}") from error
    if options.control is None:
        cluster = LocalCluster(directory, clock := SystemClock())
        cluster.members.extend(
            Broker(member, clock=clock, tree=cluster.tree.session()) for member in configs
        )
        return cluster
    from minibroker.rig.clock import MovableClock  # noqa: PLC0415  for --control only
    from minibroker.rig.nodes import Nodes  # noqa: PLC0415  as above

    cluster = LocalCluster(directory, movable := MovableClock())
    shared = {"clock": movable, "new_tree": cluster.tree.session, "nodes": Nodes()}
    cluster.members.extend(
        _controlled(member, options, number, **shared) for number, member in enumerate(configs)
    )
    return cluster


def _controlled(
    config: BrokerConfig, options: ServeOptions, number: int = 0, **shared: Any
) -> ControlledBroker:
    """Return a broker with a control API, whose port is `number` above the one that was given.

    Raises ConfigError.
    """
    try:
        from minibroker.control.broker import ControlledBroker  # noqa: PLC0415  for --control only
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"--control needs {error.name}: pip install 'minibroker[control]'"
        ) from error
    assert options.control is not None
    port = options.control.port
    if port + number > 65535:
        raise ConfigError(
            f"--control {options.control.address}: the ports of the other brokers follow this one, "
            f"and {port + number} is none: give a lower port, or 0 for free ones"
        )
    own = options.control._replace(port=port + number if port else 0)
    return ControlledBroker(config, own, **shared)


def _ready_text(brokers: Sequence[Any], registries: Sequence[RegistryService]) -> str:
    """Return the lines that tell the addresses: of all brokers, then of their control APIs and
    their registries.
    """
    addresses = ",".join("{}:{}".format(*broker.address) for broker in brokers)
    lines = [f"minibroker listening on {addresses}\n"]
    lines += [
        f"minibroker control on {broker.control_url}\n"
        for broker in brokers
        if not isinstance(broker, Broker)
    ]
    lines += [f"minibroker registry on {registry.url}\n" for registry in registries]
    return "".join(lines)


async def _start(
    config: BrokerConfig, options: ServeOptions
) -> tuple[LocalCluster | Broker | ControlledBroker, list[RegistryService]]:
    """Return what serves, started, and the registries beside it. Raises MinibrokerError; then
    nothing is left running.
    """
    if options.registry is not None:
        from minibroker.registry import check_libraries  # noqa: PLC0415  for --registry only

        check_libraries("--registry")
    if config.broker_id == GENERATED_ID:
        config = await _with_id(config)
    broker = _make(config, options)
    resume_collector()  # from here on work of any length may leave garbage
    usual = gc.get_threshold()
    gc.set_threshold(YOUNG_AT_START, *usual[1:])
    try:
        await broker.start(options.topics)
    finally:
        gc.set_threshold(*usual)
    try:
        return broker, await _start_rest(broker, options, config.log_dirs[0])
    except BaseException:
        await broker.stop()
        raise


async def _start_rest(broker: Any, options: ServeOptions, directory: str) -> list[RegistryService]:
    """Load the seeds and start the registries, if the options say so. Raises MinibrokerError."""
    if options.seeds:
        from pathlib import Path  # noqa: PLC0415  for --seed only

        from minibroker.verbs.serve.seeding import load_seeds  # noqa: PLC0415  as above

        await load_seeds(options.seeds, _apps_of(broker), Path(directory))
    if options.registry is None:
        return []
    from minibroker.verbs.serve.registries import start_registries  # noqa: PLC0415  for --registry only

    return await start_registries(_members_of(broker), options.registry)


def _members_of(broker: Any) -> list[Any]:
    """Return the brokers, with what is around each one."""
    members: list[Any] = getattr(broker, "members", [broker])
    return members


def _apps_of(broker: Any) -> list[Broker]:
    """Return the brokers that run, without what is around them."""
    return [member if isinstance(member, Broker) else member.app for member in _members_of(broker)]


async def _serve(config: BrokerConfig, options: ServeOptions) -> int:
    """Serve until a signal comes or the broker fails; return the exit code. A signal during the
    start ends the start, whatever it waits for.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    starting = loop.create_task(_start(config, options))

    def stop() -> None:
        if not stopping.is_set():  # a second signal would disturb the end of the start
            stopping.set()
            starting.cancel()

    with on_signals((signal.SIGTERM, signal.SIGINT), stop):
        return await _serve_until(stopping, starting, options)


async def _serve_until(
    stopping: asyncio.Event, starting: asyncio.Task[Any], options: ServeOptions
) -> int:
    """Serve what starts until the event is set; return the exit code."""
    try:
        broker, registries = await starting
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: {error}\n")
        return 1
    except asyncio.CancelledError:
        if not stopping.is_set():
            raise
        sys.stderr.write("minibroker: stopped before it was ready\n")
        return 0
    # Objects made at start stay for ever, so the collector need not visit them again.
    gc.freeze()
    code = 0
    if _announce(broker, registries, options):
        rest = asyncio.create_task(import_rest())
        broker.failure.add_done_callback(lambda _: stopping.set())
        await stopping.wait()
        rest.cancel()
    else:
        code = 1
    if broker.failure.done():
        sys.stderr.write(f"minibroker: {broker.failure.result()}\n")
        code = 1
    try:
        for registry in registries:
            await registry.stop()
        await broker.stop()
    except MinibrokerError as error:
        sys.stderr.write(f"minibroker: stopped, but not cleanly: {error}\n")
        return 1
    return code


def _announce(broker: Any, registries: Sequence[RegistryService], options: ServeOptions) -> bool:
    """Tell on stdout and in the ready file that the broker serves; return whether both worked."""
    lines = _ready_text(_members_of(broker), registries)
    sys.stdout.write(lines)
    sys.stdout.flush()
    if options.ready_file is not None:
        from minibroker.broker.ready_file import write_ready_file  # noqa: PLC0415  for --ready-file only

        try:
            write_ready_file(options.ready_file, lines)
        except OSError as error:
            sys.stderr.write(f"minibroker: cannot write {options.ready_file}: {error.strerror}\n")
            return False
    sys.stdout.writelines(f"{more}\n" for more in options.ready_lines)
    sys.stdout.flush()
    return True
