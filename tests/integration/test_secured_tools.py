"""Kafka's tools of 3.9.1 and 4.3.1 on a secured broker print what they print on Kafka 3.9.1.

`golden/secured_tools.json` has it: ACLs, users, quotas, delegation tokens, records, groups and
transactions, allowed and denied.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from minibroker.broker.config.authorizers import ACL_AUTHORIZER
from minibroker.testing import Broker
from tests.golden.record_secured_tools import RECORDED
from tests.support.secured_clients import PROTOCOLS, Stores, broker_settings
from tests.support.secured_tools import RELEASES, SETTINGS, play

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.java, pytest.mark.slow]
HOST = "127.0.0.1"
KAFKA: dict[str, dict[str, list[str]]] = json.loads(RECORDED.read_text())


@pytest.mark.parametrize("release", RELEASES)
def test_the_tools_print_what_they_print_on_kafka(release: str, tmp_path: Path) -> None:
    stores = Stores(tmp_path)
    settings = {
        **broker_settings(stores),
        **SETTINGS,
        "authorizer.class.name": ACL_AUTHORIZER,
        "listeners": ",".join(f"{name}://{HOST}:0" for name in PROTOCOLS),
    }
    with Broker(config=settings) as broker:
        port = broker._node.app.ports["SASLTLS"]
        assert play(release, f"{HOST}:{port}", stores, tmp_path) == KAFKA[release]
