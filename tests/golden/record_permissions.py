"""Records the cases of `tests/support/permission_cases.py` with Apache Kafka 3.9.1 and 4.4.0, and
those between brokers (`broker_permission_cases.py`) with 3.9.1.

    python -m tests.golden.record_permissions

Writes `permissions.json`: case → release → step → what the client is told; null where the release
is not asked. 3.9.1 has AclAuthorizer, 4.4.0 StandardAuthorizer.
"""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

from minibroker.broker.config.authorizers import ACL_AUTHORIZER, STANDARD_AUTHORIZER
from tests.golden.both_kafkas import listeners, of_both
from tests.support.broker_permission_cases import EVERY_CASE
from tests.support.permission_cases import PLAINTEXT, SASL, SETTINGS, World, play
from tests.support.processes import free_port

if TYPE_CHECKING:
    from tests.support.peers import KafkaPeer

RECORDED = Path(__file__).with_name("permissions.json")
AUTHORIZERS = {"3.9.1": ACL_AUTHORIZER, "4.4.0": STANDARD_AUTHORIZER}
SETTLE_S = 0.3


def record(kafka: KafkaPeer) -> dict[str, Any]:
    """Return every case with one Kafka."""
    ports = {PLAINTEXT: kafka.port, SASL: free_port()}
    kafka.settings = {
        **kafka.settings,
        **SETTINGS,
        "authorizer.class.name": AUTHORIZERS[kafka.version],
        **listeners(kafka, ports),
    }
    kafka.start()
    try:
        world = World(
            kafka.host, ports, settle=bool if kafka.zookeeper else partial(Event().wait, SETTLE_S)
        )
        world.prepare()
        outcomes = {}
        for name, case in EVERY_CASE.items():
            if case.only in (None, kafka.version):
                outcomes[name] = play(world, name, case)
                print(kafka.version, name)
        world.close()
    finally:
        kafka.stop()
    return outcomes


def main() -> None:
    """Record both, and write what they said."""
    old, new = of_both(record)
    lines = []
    for name in sorted(EVERY_CASE):
        answers = {"3.9.1": old.get(name), "4.4.0": new.get(name)}
        lines.append(f"{json.dumps(name)}: {json.dumps(answers, sort_keys=True)}")
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
