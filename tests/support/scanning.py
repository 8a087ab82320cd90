"""`sslscan`: the findings of a stranger about the TLS of a broker's listeners."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree

import trustme

from tests.support.certificates import authority, java_store

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS: Final = 240
KEYS: Final = {"EC": trustme.KeyType.ECDSA, "RSA": trustme.KeyType.RSA}
"""Listener → the key of its certificate; the cipher suites depend on it."""


def missing_scanner() -> str | None:
    """Return that sslscan is not installed, or None."""
    if shutil.which("sslscan") is None:
        return "sslscan is not installed (Debian: apt install sslscan)"
    return None


def scanned_settings(directory: Path) -> dict[str, str]:
    """Return the settings of a broker besides its listeners, which are those of KEYS."""
    settings = {"listener.security.protocol.map": "EC:SSL,RSA:SSL,PLAINTEXT:PLAINTEXT"}
    for name, key in KEYS.items():
        store = directory / f"{name}.pem"
        store.write_text(java_store(authority().issue_cert("localhost", key_type=key)))
        listener = f"listener.name.{name.lower()}"
        settings[f"{listener}.ssl.keystore.type"] = "PEM"
        settings[f"{listener}.ssl.keystore.location"] = str(store)
    return settings


def scan(port: int) -> list[str]:
    """Return versions, cipher suites, groups of keys and known weaknesses, sorted."""
    done = subprocess.run(
        ["sslscan", "--xml=-", f"127.0.0.1:{port}"],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return sorted(set(_findings(ElementTree.fromstring(done.stdout))))


def _findings(report: ElementTree.Element) -> Iterator[str]:
    for element in report.iter():
        get = element.attrib.get
        if element.tag == "protocol" and get("enabled") == "1":
            yield f"protocol {get('type')} {get('version')}"
        elif element.tag == "cipher":
            yield f"cipher {get('sslversion')} {get('cipher')}"
        elif element.tag == "group" and get("sslversion") == "TLSv1.3":
            # Java does not answer the short hellos that ask for the groups of TLS 1.2.
            yield f"group {get('name')}"
        elif element.tag == "heartbleed" and get("vulnerable") == "1":
            yield f"heartbleed {get('sslversion')}"
        elif element.tag == "compression" and get("supported") == "1":
            yield "compression"
        elif element.tag == "renegotiation" and get("supported") == "1":
            yield f"renegotiation secure={get('secure')}"
