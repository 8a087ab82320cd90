"""Records what clients say that prove who they are to Apache Kafka 3.9.1 and 4.4.0.

    python -m tests.golden.record_secured_clients

Writes `secured_clients.json`: client → way → what it read, or its error; release → that, where the
two differ. The ways are those of `tests/support/secured_clients.py`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.both_kafkas import listeners, of_both
from tests.golden.record_permissions import AUTHORIZERS
from tests.golden.record_sasl import ALLOWED_URLS
from tests.support.processes import free_port
from tests.support.secured_clients import (
    ADMIN,
    CLIENTS,
    PROTOCOLS,
    WAYS,
    Stores,
    broker_settings,
    outcomes,
    prepare,
)

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

RECORDED = Path(__file__).with_name("secured_clients.json")


def record(kafka: KafkaPeer) -> dict[str, Any]:
    """Return what every client says of one Kafka."""
    ports = {name: free_port() for name in PROTOCOLS} | {ADMIN: kafka.port}
    with tempfile.TemporaryDirectory() as directory:
        stores = Stores(Path(directory))
        kafka.settings = {
            **kafka.settings,
            **broker_settings(stores),
            "authorizer.class.name": AUTHORIZERS[kafka.version],
            **listeners(kafka, ports),
        }
        kafka.options = [ALLOWED_URLS + stores.jwks_url]
        kafka.start()
        try:
            prepare(kafka.address, list(CLIENTS))
            addresses = {name: f"127.0.0.1:{port}" for name, port in ports.items()}
            return {client: outcomes(client, addresses, stores) for client in CLIENTS}
        finally:
            kafka.stop()


def main() -> None:
    """Record both, and write what they said."""
    old, new = of_both(record)
    outcomes = {
        client: {
            way: old[client][way]
            if old[client][way] == new[client][way]
            else {"3.9.1": old[client][way], "4.4.0": new[client][way]}
            for way in WAYS
        }
        for client in CLIENTS
    }
    RECORDED.write_text(json.dumps(outcomes, indent=1) + "\n")


if __name__ == "__main__":
    main()
