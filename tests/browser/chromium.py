"""A real browser for the tests: Debian's Chromium and its driver, without a window.

Nothing is downloaded: both programs are those of the machine. The browser keeps a log of its
console and of each request, so that a test can show that a page asks nobody but its server.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from selenium import webdriver
from selenium.common.exceptions import (
    ElementNotInteractableException,
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.select import Select
from selenium.webdriver.support.wait import WebDriverWait

from tests.support.build_files import BUILD, MissingError, required

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from selenium.webdriver.remote.webelement import WebElement

DEADLINE_S: Final = 60.0
LOOK_S: Final = 0.05
WORDS_MAX: Final = 3000
"""Characters of a page that a failure shows."""
PROGRAMS: Final = ("chromium", "chromedriver")
_NOT_THERE: Final = (
    NoSuchElementException,
    StaleElementReferenceException,
    ElementNotInteractableException,
)
"""An element has not come yet, has left, or is hidden still."""
_SWITCHES: Final = (
    "--headless=new",
    "--no-sandbox",  # a container has no user namespaces
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--no-default-browser-check",
    "--window-size=1280,900",
)


def new_driver(downloads: Path) -> webdriver.Chrome:
    """Start the browser; it writes downloads there. Raises MissingError with what to install."""
    programs = [shutil.which(name) for name in PROGRAMS]
    if None in programs:
        raise MissingError(
            "no Chromium with its driver here (Debian: apt install chromium chromium-driver)"
        )
    os.environ["SE_OFFLINE"] = "true"
    options = Options()
    options.binary_location = str(programs[0])
    for switch in _SWITCHES:
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    options.add_experimental_option("perfLoggingPrefs", {"enablePage": False})
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    return webdriver.Chrome(options=options, service=Service(executable_path=str(programs[1])))


def accessibility_checker() -> str:
    """Return the script of axe-core. Raises MissingError."""
    required(BUILD / "node" / ".done")
    script = BUILD / "node" / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        raise MissingError("axe-core is missing: run make build/node/.done")
    return script.read_text()


class BrowserWatch:
    """The browser, and what it logs: complaints of its console, and whom its pages ask."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self._origins: set[str] = set()
        self._refusals: list[str] = []

    def page(self, url: str) -> ConsolePage:
        """Return the console at this URL. Its server may be asked from now on."""
        self._origins.add(_origin(url))
        return ConsolePage(self.driver, url)

    def expect(self, status: int, path: str) -> None:
        """Allow the browser to complain of this status, of paths that begin so."""
        self._refusals.append(rf"://[^/]+{re.escape(path)}.* status of {status} ")

    def leave(self) -> None:
        """Show nothing: streams and looks of the page end, so its server may stop."""
        self.driver.get("about:blank")

    def complaints(self) -> list[str]:
        """Return what the console complained of since the last call, without expected refusals."""
        entries: list[dict[str, Any]] = self.driver.get_log("browser")  # type: ignore[no-untyped-call]
        return [
            entry["message"]
            for entry in entries
            if entry["level"] in ("SEVERE", "WARNING")
            and not any(re.search(refusal, entry["message"]) for refusal in self._refusals)
        ]

    def foreign_requests(self) -> list[str]:
        """Return the addresses that were asked since the last call, and are of no server that a
        page is of.
        """
        entries: list[dict[str, Any]] = self.driver.get_log("performance")  # type: ignore[no-untyped-call]
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        urls = [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
        inner = ("data:", "about:", "blob:")
        return [
            url for url in urls if not url.startswith(inner) and _origin(url) not in self._origins
        ]


class ConsolePage:
    """The console of a broker in the browser; `BrowserWatch.page` makes it."""

    def __init__(self, driver: webdriver.Chrome, url: str) -> None:
        self.driver = driver
        self.url = url

    def open(self, view: str) -> None:
        """Show a view, as `topics/orders`, anew; wait for its title."""
        if self.driver.current_url.startswith(f"{self.url}/#/"):
            self.go(view)
        else:
            self.driver.get(f"{self.url}/#/{view}")
            self.until(lambda: self.find("h1").text != "")

    def go(self, view: str) -> None:
        """Show a view as a link on the page does; wait for its title."""
        self.driver.execute_script(_GO, f"#/{view}")
        self.until(lambda: self.find("h1:not([data-left])").text != "")

    def find(self, selector: str) -> WebElement:
        """Return the first element of a CSS selector. Raises NoSuchElementException."""
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def find_all(self, selector: str) -> list[WebElement]:
        """Return the elements of a CSS selector."""
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def button(self, label: str, within: str = "body") -> WebElement:
        """Return the button with this label. Raises NoSuchElementException."""
        for element in self.find_all(f"{within} button"):
            if element.is_displayed() and element.text.strip() == label:
                return element
        raise NoSuchElementException(f"no button {label!r}")

    def press(self, label: str, within: str = "body") -> None:
        """Press a button, once it is there."""
        self._do(lambda: self.button(label, within).click())

    def click(self, selector: str) -> None:
        """Click the first element of a CSS selector, once it is there."""
        self._do(lambda: self.find(selector).click())

    def fill(self, name: str, value: str, within: str = "main") -> None:
        """Write into the field of this name, or choose in it, once it is there."""

        def write() -> None:
            field = self.find(f"{within} [name={name}]")
            if field.tag_name == "select":
                Select(field).select_by_value(value)
            else:
                field.clear()
                field.send_keys(value)

        self._do(write)

    def _do(self, act: Callable[[], object]) -> None:
        """Do something to an element, once it is there and can be used.

        A view that comes in place of another one takes its elements away at any moment; then the
        act is done on the new ones.
        """

        def acts() -> bool:
            act()
            return True

        self.until(acts)

    def unfold(self, summary: str) -> None:
        """Open what stands under a summary, once it is there."""

        def opens() -> bool:
            for element in self.find_all("summary"):
                if element.text == summary:
                    element.click()
                    return True
            return False

        self.until(opens)

    @property
    def words(self) -> str:
        """Return the text that the page shows."""
        return str(self.find("body").text)

    def rows(self, caption: str) -> list[list[str]]:
        """Return the texts of a table's cells, row by row."""
        rows: list[list[str]] = self.driver.execute_script(_ROWS, caption)
        return rows

    def until(self, holds: Callable[[], bool], timeout_s: float = DEADLINE_S) -> None:
        """Wait until something holds. Raises AssertionError with what the page shows."""

        def looks(_: object) -> bool:
            try:
                return holds()
            except (*_NOT_THERE, IndexError):
                return False

        try:
            WebDriverWait(self.driver, timeout_s, LOOK_S).until(looks)
        except TimeoutException:
            text = self.words[:WORDS_MAX]
            raise AssertionError(f"not within {timeout_s} s; the page shows:\n{text}") from None

    def prefer(self, scheme: str) -> None:
        """Take light or dark colours, as the system would say."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def resize(self, width: int, height: int = 900) -> None:
        """Make the window so wide."""
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600},
        )


_GO: Final = """
document.querySelector("h1").dataset.left = "true";
if (location.hash === arguments[0]) dispatchEvent(new HashChangeEvent("hashchange"));
else location.hash = arguments[0];
"""
_ROWS: Final = """
const table = [...document.querySelectorAll("table")]
  .find((one) => one.caption?.textContent === arguments[0] && !one.hidden);
const rows = table ? [...table.tBodies[0].rows] : [];
return rows.map((row) => [...row.cells].map((cell) => cell.innerText));
"""


def _origin(url: str) -> str:
    """Return scheme and server of a URL; a file is its own."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path if parts.scheme == 'file' else ''}"
