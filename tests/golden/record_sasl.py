"""Records the dialogues of `tests/support/sasl_dialogues.py` with Apache Kafka 3.9.1 and 4.4.0.

    python -m tests.golden.record_sasl

Writes `sasl.json`: dialogue → what the client saw; release → that, where the two differ.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.both_kafkas import listeners, of_both
from tests.support.mixed_logins import DIALOGUES, LISTENERS, SETTINGS, play
from tests.support.mixed_logins import PROTOCOLS as SECURED
from tests.support.processes import free_port
from tests.support.sasl_dialogues import JWKS_URL, add_scram_users
from tests.support.signed_tokens import write_jwks

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

RECORDED = Path(__file__).with_name("sasl.json")
PLAINTEXT = "PLAINTEXT"
PROTOCOLS = {
    "listener.security.protocol.map": (
        "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
        + ",".join(f"{name}:{protocol}" for name, protocol in SECURED.items())
    )
}
ALLOWED_URLS = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls="
"""Kafka 4 reads only URLs that this property names."""


def record(kafka: KafkaPeer) -> dict[str, Any]:
    """Return every dialogue with one Kafka."""
    ports = {PLAINTEXT: kafka.port, **{name: free_port() for name in LISTENERS}}
    kafka.directory.mkdir(parents=True, exist_ok=True)
    url = write_jwks(kafka.directory).replace("file:///", "file:/")
    kafka.options = [ALLOWED_URLS + url]
    kafka.settings |= {**SETTINGS, JWKS_URL: url, **listeners(kafka, ports), **PROTOCOLS}
    kafka.start()
    try:
        add_scram_users(kafka.host, kafka.port)
        return {name: play(kafka.host, ports, name) for name in DIALOGUES}
    finally:
        kafka.stop()


def main() -> None:
    """Record both, and write what they said."""
    old, new = of_both(record)
    dialogues = {
        name: old[name] if old[name] == new[name] else {"3.9.1": old[name], "4.4.0": new[name]}
        for name in DIALOGUES
    }
    RECORDED.write_text(json.dumps(dialogues, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
