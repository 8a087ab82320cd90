"""A scanner of TLS finds at a listener what it finds at one of Apache Kafka 3.9.1, and no more.

`golden/sslscan.json` has the findings there, with Java 17 and default settings.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.testing import Broker
from tests.golden.record_sslscan import RECORDED
from tests.support.scanning import KEYS, missing_scanner, scan, scanned_settings

if TYPE_CHECKING:
    from pathlib import Path

KAFKA: dict[str, list[str]] = json.loads(RECORDED.read_text())


def test_a_scanner_finds_no_more_than_at_kafka(tmp_path: Path) -> None:
    reason = missing_scanner()
    if reason is not None:
        pytest.skip(reason)
    settings = {
        **scanned_settings(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0,EC://127.0.0.1:0,RSA://127.0.0.1:0",
    }
    with Broker(config=settings) as broker:
        found = {key: set(scan(broker._node.app.ports[key])) for key in KEYS}
    for key, findings in found.items():
        assert "protocol tls 1.3" in findings
        assert findings - set(KAFKA[key]) == set()
