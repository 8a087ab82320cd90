"""The files of the console: what they may hold, who gets them, and with which headers."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import minibroker.control
from minibroker.control import page_files
from minibroker.control.access import Access
from minibroker.control.page_files import POLICY
from tests.unit.control.conftest import serve

if TYPE_CHECKING:
    from minibroker.testing import Broker
    from tests.unit.control.conftest import Control


BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of a page with one script."""
    directory = tmp_path / "console"
    directory.mkdir()
    (directory / "index.html").write_text("<!doctype html><title>console</title>")
    (directory / "console.js").write_text("'use strict';")
    (directory / "notes.txt").write_text("no part of the page")
    monkeypatch.setattr(page_files, "files", lambda _: tmp_path)
    monkeypatch.setattr(page_files, "_answers", {})
    return directory


@pytest.mark.usefixtures("page")
def test_the_root_is_the_page_for_a_browser_and_json_for_a_program(control: Control) -> None:
    status, headers, body = control.raw("GET", "/", None, BROWSER)
    assert (status, body) == (200, b"<!doctype html><title>console</title>")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"] == POLICY
    assert "default-src 'none'" in POLICY
    assert "unsafe" not in POLICY
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert "Access-Control-Allow-Origin" not in headers
    assert control.ask("GET", "/")[1]["version"]


@pytest.mark.usefixtures("page")
def test_a_file_is_sent_once_as_long_as_it_is_the_same(control: Control) -> None:
    status, headers, body = control.raw("GET", "/console/console.js")
    assert (status, body) == (200, b"'use strict';")
    assert headers["Content-Type"] == "text/javascript; charset=utf-8"
    cached = {"If-None-Match": headers["ETag"]}
    status, headers, body = control.raw("GET", "/console/console.js", None, cached)
    assert (status, body) == (304, b"")
    assert control.raw("GET", "/console/console.js", None, {"If-None-Match": '"x"'})[0] == 200


@pytest.mark.usefixtures("page")
@pytest.mark.parametrize(
    "name", ["notes.txt", "other.js", "..%2Fapi.py", "%2e%2e", "console.JS", "x" * 90 + ".js"]
)
def test_a_name_that_is_no_file_of_the_page_is_not_found(control: Control, name: str) -> None:
    assert control.ask("GET", f"/console/{name}")[0] == 404


@pytest.mark.usefixtures("page")
def test_the_page_needs_no_token_and_its_data_do(kafka_broker: Broker) -> None:
    control, server = serve(kafka_broker, Access("full", "read"))
    assert control.raw("GET", "/", None, BROWSER)[0] == 200
    assert control.raw("GET", "/console/console.js")[0] == 200
    assert control.ask("POST", "/", None, BROWSER)[0] == 401
    assert control.ask("GET", "/views")[0] == 401
    for token, may_write in (("full", True), ("read", False)):
        status, views = control.ask("GET", "/views", None, {"Authorization": f"Bearer {token}"})
        assert (status, views["may_write"], views["why_not"] is None) == (200, may_write, may_write)
    assert views["why_not"] == (
        "this token only reads (GET): changing something needs the token of --control-token"
    )
    kafka_broker.await_node(lambda _: server.close())


def test_the_views_name_the_brokers_and_the_rights(control: Control) -> None:
    status, views = control.ask("GET", "/views")
    assert (status, views["kind"], views["broker"]) == (200, "broker", 0)
    assert (views["may_write"], views["may_read_records"]) == (True, True)
    assert views["brokers"] == [
        {"id": 0, "address": control.broker.bootstrap, "state": "running", "is_controller": True}
    ]


FOLDER = Path(minibroker.control.__file__).parent / "console"
FILES = sorted(FOLDER.iterdir())
SCRIPTS = [file for file in FILES if file.suffix == ".js"]
BYTES_MAX = 150 << 10
PARSERS = (
    "innerHTML",
    "outerHTML",
    "insertAdjacentHTML",
    "document.write",
    "DOMParser",
    "createContextualFragment",
    "setHTMLUnsafe",
    "eval(",
    "new Function",
    "javascript:",
)


def test_the_page_is_small() -> None:
    assert sum(file.stat().st_size for file in FILES) < BYTES_MAX


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_script_makes_no_html_of_texts(file: Path) -> None:
    text = file.read_text()
    assert [word for word in PARSERS if word in text] == []


@pytest.mark.parametrize("file", SCRIPTS, ids=lambda file: file.name)
def test_a_script_imports_files_of_the_page(file: Path) -> None:
    imports = re.findall(r'^(?:import|export) .*?from "([^"]+)";$', file.read_text(), re.MULTILINE)
    assert [name for name in imports if not (FOLDER / name).is_file()] == []


def test_every_file_is_used() -> None:
    texts = "".join(file.read_text() for file in FILES)
    assert [file.name for file in FILES if file.name not in texts] == ["index.html"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_nothing_is_fetched_from_elsewhere(file: Path) -> None:
    addresses = re.findall(r"(?:https?:)?//[\w.-]+\.\w+[^\s\"']*", file.read_text())
    assert [address for address in addresses if "www.w3.org" not in address] == []


def test_the_page_has_no_script_or_style_in_it() -> None:
    text = (FOLDER / "index.html").read_text()
    assert re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]* src=)", text) == []
