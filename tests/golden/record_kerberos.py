"""Records the dialogues of `tests/support/kerberos_dialogues.py` with Apache Kafka 3.9.1 and 4.4.0.

    python -m tests.golden.record_kerberos

Writes `kerberos.json`: dialogue → what the client saw; release → that, where the two differ.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.golden.both_kafkas import listeners, of_both
from tests.support.kerberos import Kdc
from tests.support.processes import free_port

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

RECORDED = Path(__file__).with_name("kerberos.json")
PLAINTEXT = "PLAINTEXT"


def record(kafka: KafkaPeer, kdc: Kdc) -> dict[str, Any]:
    """Return every dialogue with one Kafka."""
    from tests.support import kerberos_dialogues as dialogues  # noqa: PLC0415  needs libkrb5

    ports = {PLAINTEXT: kafka.port, dialogues.KERBEROS: free_port()}
    kafka.options = [f"-Djava.security.krb5.conf={kdc.config}"]
    kafka.settings |= {
        **dialogues.settings(kdc),
        **listeners(kafka, ports),
        "listener.security.protocol.map": (
            "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,KERBEROS:SASL_PLAINTEXT"
        ),
    }
    kafka.start()
    try:
        port = ports[dialogues.KERBEROS]
        return {name: dialogues.play(kafka.host, port, kdc, name) for name in dialogues.DIALOGUES}
    finally:
        kafka.stop()


def main() -> None:
    """Record both, and write what they said."""
    with tempfile.TemporaryDirectory() as directory:
        kdc = Kdc(Path(directory))
        kdc.start()
        os.environ.update(kdc.environment)
        try:
            old, new = of_both(lambda kafka: record(kafka, kdc))
        finally:
            kdc.stop()
    dialogues = {
        name: old[name] if old[name] == new[name] else {"3.9.1": old[name], "4.4.0": new[name]}
        for name in old
    }
    RECORDED.write_text(json.dumps(dialogues, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
