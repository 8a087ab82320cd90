"""The files of the console: small, without a build, and without a way for data to become HTML."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import minibroker.control

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
