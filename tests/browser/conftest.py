"""One browser for all tests of the folder, and brokers with a console."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.browser.chromium import BrowserWatch, new_driver
from tests.support.processes import ManagedProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from selenium import webdriver

    from tests.browser.chromium import ConsolePage

START_SECONDS = 120.0
CONTROL = "minibroker control on "


class ConsoleBroker(NamedTuple):
    """A broker with a console."""

    address: str
    url: str
    others: tuple[str, ...] = ()
    """The URLs of the other brokers' consoles."""


@pytest.fixture(scope="session")
def downloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of the browser's downloads."""
    return tmp_path_factory.mktemp("downloads")


@pytest.fixture(scope="session")
def driver(downloads: Path) -> Iterator[webdriver.Chrome]:
    """Yield the browser."""
    chromium = new_driver(downloads)
    yield chromium
    chromium.quit()


@pytest.fixture(autouse=True)
def watch(driver: webdriver.Chrome) -> Iterator[BrowserWatch]:
    """Yield the browser. After each test its console has no complaint but those that the test
    expects (`expect`), and no page has asked a server but its own.
    """
    watch = BrowserWatch(driver)
    watch.complaints()  # those of an earlier test that failed
    watch.foreign_requests()
    yield watch
    watch.leave()
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert watch.complaints() == []
    assert watch.foreign_requests() == []


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., ConsoleBroker]]:
    """Yield a function that starts a broker in memory with a console and these options."""
    processes: list[ManagedProcess] = []
    directory = tmp_path_factory.mktemp("console")

    def start(*options: str) -> ConsoleBroker:
        ready_file = directory / f"ready-{len(processes)}"
        command = [sys.executable, "-m", "minibroker", "serve", "--memory"]
        command += ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
        command += ["--ready-file", str(ready_file), *options]
        process = ManagedProcess(command, directory / f"{len(processes)}.log")
        processes.append(process)
        process.wait_until(ready_file.exists, START_SECONDS, "the ready file")
        first, *lines = ready_file.read_text().splitlines()
        url, *others = [line.split()[-1] for line in lines if line.startswith(CONTROL)]
        return ConsoleBroker(first.split()[-1], url, tuple(others))

    yield start
    for process in processes:
        process.stop()


@pytest.fixture
def proxy(
    watch: BrowserWatch, console_broker: ConsoleBroker, tmp_path: Path
) -> Iterator[ConsoleBroker]:
    """Yield a proxy with a console, before the broker that most tests share."""
    command = [sys.executable, "-m", "minibroker", "proxy", "--to", console_broker.address]
    command += ["--listen", "127.0.0.1:0", "--control", "127.0.0.1:0"]
    process = ManagedProcess(command, tmp_path / "proxy.log", stdout_to_pipe=True)
    stdout = process.popen.stdout
    assert stdout is not None
    listening, control = (stdout.readline().decode() for _ in range(2))
    yield ConsoleBroker(listening.split()[4].rstrip(","), control.split()[-1])
    watch.leave()
    process.stop()


@pytest.fixture(scope="session")
def console_broker(start: Callable[..., ConsoleBroker]) -> ConsoleBroker:
    """Return the broker that most tests share; each has topics and groups of its own."""
    # A transaction may hang only where its partitions are not verified.
    return start("--topic", "orders:3", "--set", "transaction.partition.verification.enable=false")


@pytest.fixture(scope="session")
def three_brokers(start: Callable[..., ConsoleBroker]) -> ConsoleBroker:
    """Return the first of three brokers of one process; each test leaves all of them running."""
    return start("--brokers", "3", "--topic", "orders:3")


@pytest.fixture
def page(watch: BrowserWatch, console_broker: ConsoleBroker) -> ConsolePage:
    """Return the console of the broker that most tests share."""
    return watch.page(console_broker.url)
